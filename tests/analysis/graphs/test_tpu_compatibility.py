"""Statuses of hand-made graphs, TensorFlow's own ones, the list itself against TensorBoard's, advice, and the
tree of scopes.
"""

from __future__ import annotations

import re
import time
import zipfile
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from tb_tpuprof.analysis.graphs.scopes import MAX_DEPTH, MAX_SCOPES, scopes
from tb_tpuprof.analysis.graphs.tpu_advice import advice
from tb_tpuprof.analysis.graphs.tpu_compatibility import (
    INVALID,
    NOT_CHECKED,
    REFERENCE,
    STATUSES,
    VALID,
    Compatibility,
    compatibility,
)
from tb_tpuprof.analysis.graphs.tpu_kernels import ALLOWED, OPS, TPU_ONLY, TYPE_NAMES
from tb_tpuprof.ingest.graphs.files import find_graphs, read_place
from tb_tpuprof.ingest.graphs.graph_def import read_graph
from tests.graph_files import DOUBLE, FLOAT, INT32, RESOURCE, STRING, graph_def, node

DATA = Path(__file__).resolve().parents[2] / "data" / "graphs"


def checked(nodes: list[bytes], functions: dict[str, list[bytes]] | None = None) -> Compatibility:
    data = graph_def(nodes, functions)
    return compatibility(read_graph(np.frombuffer(data, np.uint8), 0, len(data)))


def said(found: Compatibility) -> dict[str, tuple[str, str]]:
    graph = found.graph
    return {
        graph.name(i): (STATUSES[found.status[i]], found.reasons[found.reason[i]]) for i in range(len(graph))
    }


def one(data: bytes) -> tuple[str, str]:
    (result,) = said(checked([data])).values()
    return result


@pytest.mark.parametrize(
    ("data", "status", "reason"),
    [
        (node("MatMul", T=FLOAT), "valid", "has a kernel"),
        (node("MatMul", T=STRING), "incompatible", "no kernel for string"),
        (node("Betainc", T=DOUBLE), "valid", "has a kernel"),
        (node("Betainc", T=INT32), "incompatible", "no kernel for int32"),
        (node("Identity", T=RESOURCE), "valid", "has a kernel"),
        (node("Identity", T=STRING), "incompatible", "no kernel for string"),
        (node("Identity", T=100 + FLOAT), "incompatible", REFERENCE),
        (node("Identity", T=2**62), "incompatible", "no kernel for type 255"),
        (node("Const", dtype=STRING), "valid", "has a kernel"),
        (node("StringLower"), "incompatible", "no kernel for TPUs"),
        (node("NoSuchOperation"), "incompatible", "no kernel for TPUs"),
        (node("CrossReplicaSum", T=FLOAT), "valid", "has a kernel"),
        (node("Placeholder", dtype=FLOAT), "valid", "resolved before XLA compiles"),
        (node("Placeholder", dtype=STRING), "incompatible", "no kernel for string"),
        (node("VarHandleOp", dtype=FLOAT), "valid", "resolved before XLA compiles"),
        (
            node("StringLower", device="/job:worker/replica:0/task:0/device:CPU:0"),
            "not checked",
            "placed on CPU",
        ),
        (node("StringLower", device="/cpu:0"), "not checked", "placed on CPU"),
        (node("StringLower", device="/device:CPU:*"), "not checked", "placed on CPU"),
        (node("StringLower", device="/device:GPU:1"), "not checked", "placed on GPU"),
        (node("StringLower", device="/device:TPU:1"), "incompatible", "no kernel for TPUs"),
        (node("StringLower", device="/job:worker/replica:0/task:0"), "incompatible", "no kernel for TPUs"),
        (node("StringLower", marks=["_xla_outside_compilation"]), "not checked", "outside compilation"),
        (node("MapDataset"), "not checked", "produces input, on the host"),
        (node("ParallelMapDatasetV2"), "not checked", "produces input, on the host"),
        (node("IteratorGetNext"), "not checked", "produces input, on the host"),
        (node("SaveV2"), "not checked", "saves or restores, on the host"),
    ],
)
def test_one_operation(data: bytes, status: str, reason: str) -> None:
    assert one(data) == (status, reason)


def test_functions_run_where_they_are_called() -> None:
    nodes = [
        node("StatefulPartitionedCall", "step", calls=["on_tpu"]),
        node("MapDataset", "map", calls=["mapped"]),
        node("PartitionedCall", "host", calls=["on_host"], device="/cpu:0"),
        node("legacy", "legacy_call"),
    ]
    bad = [node("StringLower", "s")]
    found = checked(nodes, {
        "on_tpu": [node("AsString", "t")],
        "mapped": [node("PyFunc", "p"), node("PartitionedCall", "deeper", calls=["below"])],
        "below": [node("DecodeJpeg", "d")],
        "on_host": bad,
        "legacy": [node("Substr", "l")],
        "nobody_calls": [node("Print", "n")],
        "__inference__traced_save_12": [node("StringJoin", "j")],
        "__inference__initializer_3": [node("LookupTableImportV2", "i")],
    })  # fmt: skip
    by_name = {name: status for name, (status, _) in said(found).items()}
    assert {name: by_name[name] for name in "tpdslnji"} == {
        "t": "incompatible",
        "p": "not checked",
        "d": "not checked",
        "s": "not checked",
        "l": "incompatible",
        "n": "incompatible",
        "j": "not checked",
        "i": "not checked",
    }
    assert said(found)["p"][1] == "called only by the host"


def test_a_function_that_both_call_is_checked() -> None:
    nodes = [node("MapDataset", "map", calls=["shared"]), node("PartitionedCall", "call", calls=["shared"])]
    assert said(checked(nodes, {"shared": [node("AsString", "s")]}))["s"][0] == "incompatible"


def test_functions_that_call_themselves_end() -> None:
    found = checked(
        [],
        {
            "f": [node("PartitionedCall", "a", calls=["g"]), node("PyFunc", "p")],
            "g": [node("PartitionedCall", "b", calls=["f"])],
        },
    )
    assert said(found)["p"][0] in STATUSES
    assert (
        said(checked([], {"f": [node("PartitionedCall", "a", calls=["f"]), node("PyFunc", "p")]}))["p"][0]
        == "incompatible"
    )


def test_the_body_of_a_loop_over_a_dataset_is_checked() -> None:
    nodes = [
        node("ScanDataset", "scan", calls=["__inference_Dataset_scan_scan_body_9"]),
        node("MapDataset", "map", calls=["augment_3"]),
    ]
    functions = {
        "__inference_Dataset_scan_scan_body_9": [node("PrintV2", "print")],
        "augment_3": [node("PyFunc", "python")],
    }
    by_name = said(checked(nodes, functions))
    assert (by_name["print"][0], by_name["python"][0]) == ("incompatible", "not checked")


def test_where_a_tpu_computation_is_marked_the_rest_is_not_checked() -> None:
    nodes = [
        node("StringLower", "before"),
        node("AsString", "marked", marks=["_tpu_replicate"]),
        node("PartitionedCall", "call", calls=["inner"], marks=["_tpu_replicate"]),
        node("PartitionedCall", "host_call", calls=["outer"]),
    ]
    functions = {
        "inner": [node("Substr", "inside")],
        "outer": [node("Print", "around"), node("PyFunc", "within", marks=["_tpu_replicate"])],
    }
    by_name = said(checked(nodes, functions))
    assert by_name["before"] == ("not checked", "outside the TPU computation")
    assert {name: by_name[name][0] for name in ("marked", "inside", "around", "within")} == {
        "marked": "incompatible", "inside": "incompatible", "around": "not checked", "within": "incompatible",
    }  # fmt: skip


def test_shares() -> None:
    found = checked(
        [
            node("Add", "a"),
            node("Sub", "b"),
            node("Mul", "c"),
            node("PyFunc", "d"),
            node("PyFunc", "e", device="/cpu:0"),
        ]
    )
    assert [found.count(status) for status in (VALID, INVALID, NOT_CHECKED)] == [3, 1, 1]
    assert found.valid_fraction == 0.75
    assert checked([node("PyFunc", device="/cpu:0")]).valid_fraction is None


WANTED = {
    "function.tfevents.0": {"train/python/PyFunc": "no kernel for TPUs"},
    "version1.tfevents.0": {
        "reference": "no kernel for TPUs",
        "reference/Assign": "no kernel for TPUs",
        "total": "no kernel for TPUs",
    },
    "words": {
        "hash_table": "no kernel for TPUs",
        "serving_default_words": "no kernel for string",
        "lookup/StringLower": "no kernel for TPUs",
        "lookup/None_Lookup/LookupTableFindV2": "no kernel for TPUs",
    },
}


@pytest.mark.parametrize("name", sorted(WANTED))
def test_tensorflow_s_own_graphs(name: str) -> None:
    (place,) = (place for place in find_graphs(str(DATA), {}).places if place.name == name)
    found = compatibility(read_place(place))
    graph = found.graph
    invalid = {graph.name(i): found.reasons[found.reason[i]] for i in np.flatnonzero(found.status == INVALID)}
    assert invalid == WANTED[name]


def test_the_list_holds_what_everybody_knows() -> None:
    assert {
        "MatMul",
        "Conv2D",
        "While",
        "If",
        "TopKV2",
        "Where",
        "ResourceApplyAdam",
        "StatefulPartitionedCall",
        "XlaSharding",
    } <= OPS
    assert not OPS & {
        "PyFunc",
        "StringSplit",
        "HashTableV2",
        "DecodeJpeg",
        "VariableV2",
        "IteratorGetNext",
        "PrintV2",
        "SparseTensorDenseMatMul",
    }
    assert not OPS & TPU_ONLY
    assert len(OPS) > 450
    assert TYPE_NAMES[FLOAT - 1] == "float32"
    assert TYPE_NAMES[STRING - 1] == "string"
    assert STRING not in ALLOWED["Identity.T"]
    assert {place.split(".")[0] for place in ALLOWED} <= OPS


# TensorBoard's graph page calls these compatible, by a list of an older TensorFlow. They run on the host
# beside the TPU, or before XLA compiles (checkpoints, summaries, variables of TensorFlow 1, what TPU
# computations are made of); none has a kernel for TPUs.
_THEIRS = (
    "Abort Assign AudioSummary AudioSummaryV2 DebugNumericSummary Enter Exit GetItem HistogramSummary "
    "ImageSummary LoopCond Merge MergeSummary MergeV2Checkpoints NextIteration Placeholder PlaceholderV2 "
    "RestoreV2 SaveV2 ScalarSummary ShardedFilename StatsAggregatorSummary StringJoin Switch "
    "TPUCompilationResult TPUEmbeddingActivations TPUReplicateMetadata TPUReplicatedInput "
    "TPUReplicatedOutput VarHandleOp Variable VariableV2 _RecvTPUEmbeddingActivations "
    "_RecvTPUEmbeddingDeduplicationData _SendTPUEmbeddingGradients _TPUCompile _TPUExecute"
)
THEIRS = set(_THEIRS.split())


def test_the_list_against_tensorboard_s() -> None:
    with (
        resources.as_file(resources.files("tensorboard") / "webfiles.zip") as path,
        zipfile.ZipFile(path) as files,
    ):
        source = files.read("index.js").decode("utf-8", "replace")
    at = source.find("TPUReplicateMetadata")
    if at < 0:
        pytest.skip("this TensorBoard has no such list")
    theirs = set(re.findall(r'"(\w+)"', source[source.rfind("[", 0, at) : source.find("]", at)]))
    assert len(theirs) > 400
    assert theirs - OPS - TPU_ONLY <= THEIRS
    assert len(OPS - theirs) < 80  # kernels that TensorFlow has got since


@pytest.mark.parametrize(
    ("op", "reason", "kind"),
    [
        ("PyFunc", "no kernel for TPUs", "Python code"),
        ("EagerPyFunc", "no kernel for TPUs", "Python code"),
        ("ScalarSummary", "no kernel for TPUs", "summary"),
        ("WriteSummary", "no kernel for TPUs", "summary"),
        ("PrintV2", "no kernel for TPUs", "printing"),
        ("LookupTableFindV2", "no kernel for TPUs", "lookup table"),
        ("HashTableV2", "no kernel for TPUs", "lookup table"),
        ("DecodeJpeg", "no kernel for TPUs", "decoding"),
        ("ReadFile", "no kernel for TPUs", "file"),
        ("StringSplitV2", "no kernel for TPUs", "string"),
        ("RegexReplace", "no kernel for TPUs", "string"),
        ("Identity", "no kernel for string", "string"),
        ("SparseTensorDenseMatMul", "no kernel for TPUs", "sparse tensor"),
        ("RaggedGather", "no kernel for TPUs", "ragged tensor"),
        ("NonMaxSuppressionV5", "no kernel for TPUs", "data-dependent shape"),
        ("CTCLoss", "no kernel for TPUs", "data-dependent shape"),
        ("ResizeBicubic", "no kernel for TPUs", "image resizing"),
        ("CropAndResize", "no kernel for TPUs", "image resizing"),
        ("RandomGamma", "no kernel for TPUs", "random numbers"),
        ("CudnnRNNV3", "no kernel for TPUs", "cuDNN"),
        ("NcclAllReduce", "no kernel for TPUs", "communication"),
        ("Lu", "no kernel for TPUs", "linear algebra"),
        ("VariableV2", "no kernel for TPUs", "variable of TensorFlow 1"),
        ("Identity", REFERENCE, "variable of TensorFlow 1"),
        ("Cholesky", "no kernel for complex128", "type"),
        ("Identity", "no kernel for resource", "handle"),
        ("SomethingElse", "no kernel for TPUs", "other"),
    ],
)
def test_advice_is_of_the_operation_s_kind(op: str, reason: str, kind: str) -> None:
    found = advice(op, reason)
    assert found.kind == kind
    assert found.text.endswith(".")


def test_the_tree_counts_what_lies_below() -> None:
    found = checked(
        [
            node("Add", "top"),
            node("Add", "a/x"),
            node("PyFunc", "a/b/y"),
            node("Add", "a/b/z"),
            node("PyFunc", "c/y", device="/cpu:0"),
        ],
        {"f": [node("PyFunc", "s/p")]},
    )
    tree = scopes(found)
    rows = {(tree.function[i], tree.path[i]): tree.counts[i].tolist() for i in range(len(tree.name))}
    assert rows == {
        ("", "(graph)"): [3, 2, 1], ("", "a"): [2, 1, 0], ("", "a/b"): [1, 1, 0], ("", "c"): [0, 0, 1],
        ("", "(functions)"): [0, 1, 0], ("f", "f"): [0, 1, 0], ("f", "s"): [0, 1, 0],
    }  # fmt: skip
    assert tree.parent[0] == -1
    assert all(tree.parent[i] < i for i in range(len(tree.name)))
    assert tree.n_merged == 0


def test_hostile_scopes_are_bounded() -> None:
    deep = "/".join("x" * 5000)
    tree = scopes(checked([node("Add", f"{deep}/add")]))
    assert len(tree.name) == MAX_DEPTH + 1
    assert (tree.n_merged, tree.counts[0].tolist()) == (1, [1, 0, 0])
    many = scopes(checked([node("PyFunc" if i == 29_999 else "Add", f"s{i}/add") for i in range(30_000)]))
    assert len(many.name) == MAX_SCOPES
    assert "s29999" in many.path  # what is incompatible has its place
    assert many.counts[0].tolist() == [29_999, 1, 0]
    assert many.n_merged == 30_000 - MAX_SCOPES + 1


def test_a_large_graph_takes_seconds() -> None:
    body = [node("MatMul", f"layer_{i % 100}/block/matmul_{i}", T=FLOAT) for i in range(5_000)]
    data = graph_def([node("PartitionedCall", calls=["f0"])], {f"f{i}": body for i in range(20)})
    start = time.perf_counter()
    tree = scopes(compatibility(read_graph(np.frombuffer(data, np.uint8), 0, len(data))))
    assert tree.counts[0].sum() == 100_001
    assert time.perf_counter() - start < 30  # without compiled loops; with them a few tenths
