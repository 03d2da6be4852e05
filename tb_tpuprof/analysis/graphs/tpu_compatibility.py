"""A TensorFlow graph -> which of its operations a TPU can run, which not and why, and which are not for a TPU
at all.

The list of operations and types with a kernel stands in `tpu_kernels.py`. What is placed on a CPU or GPU,
marked for outside compilation, makes input or writes checkpoints, or is called by such nodes only, runs on
the host whatever the device: it is not checked. If the graph marks its TPU computation (`_tpu_replicate`),
what lies outside of it is not checked either; else all is taken to be meant for it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.graphs.tpu_kernels import ALLOWED, OPS, TPU_ONLY, TYPE_NAMES
from tb_tpuprof.trace.graph import Graph

VALID, INVALID, NOT_CHECKED = 0, 1, 2
STATUSES = ("valid", "incompatible", "not checked")
# Gone before XLA compiles: inputs, handles of variables, loops and branches of TensorFlow 1, what TPU
# computations are made of.
_RESOLVED = frozenset(
    "Placeholder PlaceholderV2 VarHandleOp _VarHandlesOp _ReadVariablesOp Switch Merge Enter Exit "  # noqa: SIM905
    "NextIteration LoopCond "
    "TPUReplicateMetadata TPUReplicatedInput TPUReplicatedOutput TPUPartitionedInput TPUPartitionedInputV2 "
    "TPUPartitionedOutput TPUPartitionedOutputV2 TPUPartitionedCall TPUReplicate TPUCompile TPUExecute "
    "TPUExecuteAndUpdateVariables TPUCompilationResult TPUOrdinalSelector TPUEmbeddingActivations "
    "ConfigureDistributedTPU ShutdownDistributedTPU _TPUReplicate _TPUCompile _TPUExecute "
    "_RecvTPUEmbeddingActivations _RecvTPUEmbeddingDeduplicationData _SendTPUEmbeddingGradients".split()
)
_INPUT = re.compile(
    r"Dataset(V\d+|Op)?$|Iterator|SeedGenerator|MemoryCache|^Infeed(Enqueue|Prelinearize)|^Prelinearize|"
    r"^Queue|Queue(V2)?$|^Reader|Reader(V2)?$"
)
# What AutoGraph makes of a loop over a dataset: the body is a function of the dataset, but the user's step is
# in it.
_LOOP_BODY = re.compile(r"_(scan|reduce)_body_\d+$")
_CHECKPOINT = re.compile(
    r"^(Save(V2|Slices)?|Restore(V2|Slice)?|MergeV2Checkpoints|ShardedFilename|ShardedFilespec)$"
)
_CHECKPOINT_FUNCTION = re.compile(r"(^|_)traced_(save|restore)(_|$)")
_CHECKPOINT_SCOPE = re.compile(r"^save(_\d+)?(/|$)")
_TABLE_FUNCTION = re.compile(r"^__inference__(creator|initializer|destroyer)_\d+$")
_DEVICE = re.compile(r"(?:/|^)(?:device:)?(?!(?:job|replica|task):)([A-Za-z_]+):(?:\d+|\*)$")
_FILE_NAME = "saver_filename"
_MOST_INPUTS = 10_000
_MAX_TYPES = 256
REFERENCE = "a reference variable"

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Compatibility:
    """By node of the graph: its status and the code of its reason in `reasons`."""

    graph: Graph
    status: npt.NDArray[np.int8]
    reason: npt.NDArray[np.int32]
    reasons: tuple[str, ...]

    def count(self, status: int) -> int:
        """How many operations have a status."""
        return int((self.status == status).sum())

    @property
    def valid_fraction(self) -> float | None:
        """Valid ones among those checked; None where none is."""
        n_valid, n_invalid = self.count(VALID), self.count(INVALID)
        return n_valid / (n_valid + n_invalid) if n_valid + n_invalid else None


class _Verdicts:
    """Status and reason of nodes; the first reason given to a node stays."""

    def __init__(self, n_nodes: int) -> None:
        self.status = np.full(n_nodes, VALID, np.int8)
        self.reason = np.full(n_nodes, -1, np.int32)
        self.codes: dict[str, int] = {}

    def give(self, nodes: Bools, status: int, reason: str) -> None:
        """To those that have none yet."""
        nodes = nodes & (self.reason < 0)
        self.status[nodes] = status
        self.reason[nodes] = self.codes.setdefault(reason, len(self.codes))


def compatibility(graph: Graph) -> Compatibility:
    """Each operation's status."""
    verdicts = _Verdicts(len(graph))
    _place(graph, verdicts)
    _reach(graph, verdicts)
    ops = graph.op.strings
    bad_type = _bad_types(graph)
    known = np.array([op in OPS or op in TPU_ONLY or op in graph.functions for op in ops], np.bool_)
    resolved = np.array([op in _RESOLVED for op in ops], np.bool_)
    verdicts.give(~(known | resolved)[graph.op.codes], INVALID, "no kernel for TPUs")
    for number in np.unique(bad_type[bad_type >= 0]).tolist():
        verdicts.give(
            bad_type == number,
            INVALID,
            REFERENCE if 100 < number < _MAX_TYPES - 1 else f"no kernel for {type_name(number)}",
        )
    verdicts.give(resolved[graph.op.codes], VALID, "resolved before XLA compiles")
    verdicts.give(np.ones(len(graph), np.bool_), VALID, "has a kernel")
    return Compatibility(graph, verdicts.status, verdicts.reason, tuple(verdicts.codes))


def type_name(number: int) -> str:
    """What users call a type."""
    if 0 < number <= len(TYPE_NAMES):
        return TYPE_NAMES[number - 1]
    return f"type {number}"


def _place(graph: Graph, verdicts: _Verdicts) -> None:
    """What runs on the host wherever it is called: by its device, its mark, or what it is."""
    kinds = [(_DEVICE.search(device) or ("", ""))[1].upper() for device in graph.device.strings]
    for kind in sorted({kind for kind in kinds if kind and not kind.startswith("TPU")}):
        verdicts.give(
            np.array([kind == other for other in kinds], np.bool_)[graph.device.codes],
            NOT_CHECKED,
            f"placed on {kind}",
        )
    verdicts.give(graph.is_outside_compilation, NOT_CHECKED, "outside compilation")
    ops = graph.op.strings
    verdicts.give(
        np.array([bool(_INPUT.search(op)) for op in ops], np.bool_)[graph.op.codes],
        NOT_CHECKED,
        "makes input, on the host",
    )
    writes = np.array([bool(_CHECKPOINT.search(op)) for op in ops], np.bool_)[graph.op.codes]
    saver = np.array([bool(_CHECKPOINT_SCOPE.search(scope)) for scope in graph.scope.strings], np.bool_)[
        graph.scope.codes
    ]
    functions = np.array(
        [*(bool(_CHECKPOINT_FUNCTION.search(name)) for name in graph.functions), False], np.bool_
    )[graph.function]
    saver &= (graph.function < 0) & bool(writes.any())
    verdicts.give(
        writes | saver | functions | _file_names(graph), NOT_CHECKED, "saves or restores, on the host"
    )
    tables = np.array([*(bool(_TABLE_FUNCTION.search(name)) for name in graph.functions), False], np.bool_)[
        graph.function
    ]
    verdicts.give(tables, NOT_CHECKED, "sets a table up, on the host")


def _file_names(graph: Graph) -> Bools:
    """The input of a SavedModel by which it is told where to save."""
    result = np.zeros(len(graph), np.bool_)
    inputs = np.array([op == "Placeholder" for op in graph.op.strings], np.bool_)[graph.op.codes]
    of_size = np.flatnonzero(inputs & (graph.name_size == len(_FILE_NAME)) & (graph.function < 0))[
        :_MOST_INPUTS
    ]
    result[[node for node in of_size.tolist() if graph.name(node) == _FILE_NAME]] = True
    return result


def _reach(graph: Graph, verdicts: _Verdicts) -> None:
    """What is called from the host only, and what lies outside of a marked TPU computation."""
    is_host = verdicts.reason >= 0
    is_marked = bool(graph.is_tpu.any())
    calls = _calls(graph)
    callers = graph.function[calls[:, 0]]
    n = len(graph.functions)
    # 2: called by the TPU; 1: by code around it, or by nobody; 0: by the host only. The last is the graph
    # itself.
    level = np.zeros(n + 1, np.int8)
    called = np.zeros(n + 1, np.bool_)
    called[calls[callers != calls[:, 1]][:, 1]] = True
    level[~called] = 1
    level[-1] = 1
    is_body = np.array([bool(_LOOP_BODY.search(name)) for name in graph.functions], np.bool_)
    host_call = is_host[calls[:, 0]] & ~(is_body[calls[:, 1]] if n else np.zeros(0, np.bool_))
    on_tpu = graph.is_tpu[calls[:, 0]] if is_marked else np.ones(len(calls), np.bool_)
    while True:
        of_caller = level[callers]
        given = np.where(host_call | (of_caller == 0), 0, np.where((of_caller == 2) | on_tpu, 2, 1)).astype(
            np.int8
        )
        before = level.copy()
        np.maximum.at(level, calls[:, 1], given)
        if np.array_equal(before, level):
            break
    of_node = level[graph.function]
    verdicts.give(of_node == 0, NOT_CHECKED, "called by the host only")
    if is_marked:
        verdicts.give((of_node == 1) & ~graph.is_tpu, NOT_CHECKED, "outside of the TPU computation")


def _calls(graph: Graph) -> Ints:
    """(node, function): those that an attribute names, and nodes whose operation is the function itself."""
    index = {name: i for i, name in enumerate(graph.functions)}
    direct = np.array([index.get(op, -1) for op in graph.op.strings], np.int64)
    function = direct[graph.op.codes] if len(direct) else np.empty(0, np.int64)
    nodes = np.flatnonzero(function >= 0)
    return np.concatenate([graph.calls, np.stack([nodes, function[nodes]], 1)]).astype(np.int64)


def _bad_types(graph: Graph) -> Ints:
    """By node a type that its operation has no kernel for, -1 where there is none."""
    node, key, number = graph.types.T
    result = np.full(len(graph), -1, np.int64)
    if not len(node):
        return result
    number = np.where((number > 0) & (number < _MAX_TYPES - 1), number, _MAX_TYPES - 1)
    pair = graph.op.codes[node].astype(np.int64) * len(graph.attributes) + key
    pairs, which = np.unique(pair, return_inverse=True)
    allowed = np.ones((len(pairs), _MAX_TYPES), np.bool_)
    for row, code in enumerate(pairs.tolist()):
        op = graph.op.strings[code // len(graph.attributes)]
        place = (
            "_Arg.T"
            if op in ("Placeholder", "PlaceholderV2", "VarHandleOp")
            else f"{op}.{graph.attributes[code % len(graph.attributes)]}"
        )
        if place in ALLOWED:
            allowed[row] = False
            allowed[row, list(ALLOWED[place])] = True
    bad = ~allowed[which.reshape(-1), number]
    np.maximum.at(result, node[bad], number[bad])
    return result
