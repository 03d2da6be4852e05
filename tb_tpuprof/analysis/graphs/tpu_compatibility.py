"""A TensorFlow graph -> the operations that a TPU can run, those it cannot with the reason, and those that
are not meant for a TPU.

`tpu_kernels.py` lists the operations and types that have a kernel. Nodes that are placed on a CPU or GPU,
marked for outside compilation, produce input or write checkpoints, or are called only by such nodes run on
the host whatever the device: they are not checked. If the graph marks its TPU computation (`_tpu_replicate`),
nodes outside it are not checked either; otherwise all nodes count as meant for the TPU.
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
# Resolved before XLA compiles: inputs, handles of variables, loops and branches of TensorFlow 1, building
# blocks of TPU computations.
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
# AutoGraph turns a loop over a data set into a function of the data set; its body contains the user's step.
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
    """For each node of the graph, its status and the code of its reason in `reasons`."""

    graph: Graph
    status: npt.NDArray[np.int8]
    reason: npt.NDArray[np.int32]
    reasons: tuple[str, ...]

    def count(self, status: int) -> int:
        """Number of operations with a status."""
        return int((self.status == status).sum())

    @property
    def valid_fraction(self) -> float | None:
        """Share of valid operations among those checked; None if none is checked."""
        n_valid, n_invalid = self.count(VALID), self.count(INVALID)
        return n_valid / (n_valid + n_invalid) if n_valid + n_invalid else None


class _Verdicts:
    """Status and reason of nodes; the first reason given to a node stays."""

    def __init__(self, n_nodes: int) -> None:
        self.status = np.full(n_nodes, VALID, np.int8)
        self.reason = np.full(n_nodes, -1, np.int32)
        self.codes: dict[str, int] = {}

    def give(self, nodes: Bools, status: int, reason: str) -> None:
        """Give status and reason to those of the nodes that have no reason yet."""
        nodes = nodes & (self.reason < 0)
        self.status[nodes] = status
        self.reason[nodes] = self.codes.setdefault(reason, len(self.codes))


def compatibility(graph: Graph) -> Compatibility:
    """The status of each operation."""
    verdicts = _Verdicts(len(graph))
    _check_placement(graph, verdicts)
    _check_callers(graph, verdicts)
    ops = graph.op.strings
    bad_type = _bad_types(graph)
    is_known = np.array([op in OPS or op in TPU_ONLY or op in graph.functions for op in ops], np.bool_)
    is_resolved = np.array([op in _RESOLVED for op in ops], np.bool_)
    verdicts.give(~(is_known | is_resolved)[graph.op.codes], INVALID, "no kernel for TPUs")
    for number in np.unique(bad_type[bad_type >= 0]).tolist():
        verdicts.give(
            bad_type == number,
            INVALID,
            REFERENCE if 100 < number < _MAX_TYPES - 1 else f"no kernel for {type_name(number)}",
        )
    verdicts.give(is_resolved[graph.op.codes], VALID, "resolved before XLA compiles")
    verdicts.give(np.ones(len(graph), np.bool_), VALID, "has a kernel")
    return Compatibility(graph, verdicts.status, verdicts.reason, tuple(verdicts.codes))


def type_name(number: int) -> str:
    """A type's name as users write it."""
    if 0 < number <= len(TYPE_NAMES):
        return TYPE_NAMES[number - 1]
    return f"type {number}"


def _check_placement(graph: Graph, verdicts: _Verdicts) -> None:
    """Mark nodes that run on the host wherever they are called: by device, by mark, or by kind."""
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
        "produces input, on the host",
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
    verdicts.give(tables, NOT_CHECKED, "sets up a table, on the host")


def _file_names(graph: Graph) -> Bools:
    """The input of a SavedModel that receives the path for saving."""
    result = np.zeros(len(graph), np.bool_)
    inputs = np.array([op == "Placeholder" for op in graph.op.strings], np.bool_)[graph.op.codes]
    candidates = np.flatnonzero(inputs & (graph.name_size == len(_FILE_NAME)) & (graph.function < 0))[
        :_MOST_INPUTS
    ]
    result[[node for node in candidates.tolist() if graph.name(node) == _FILE_NAME]] = True
    return result


def _check_callers(graph: Graph, verdicts: _Verdicts) -> None:
    """Mark functions called only from the host, and nodes outside a marked TPU computation."""
    is_host = verdicts.reason >= 0
    is_marked = bool(graph.is_tpu.any())
    calls = _calls(graph)
    callers = graph.function[calls[:, 0]]
    n = len(graph.functions)
    # 2: called by the TPU; 1: by code around it, or without a caller; 0: only by the host. The last entry is
    # the graph itself.
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
        new_level = np.where(
            host_call | (of_caller == 0), 0, np.where((of_caller == 2) | on_tpu, 2, 1)
        ).astype(np.int8)
        previous = level.copy()
        np.maximum.at(level, calls[:, 1], new_level)
        if np.array_equal(previous, level):
            break
    of_node = level[graph.function]
    verdicts.give(of_node == 0, NOT_CHECKED, "called only by the host")
    if is_marked:
        verdicts.give((of_node == 1) & ~graph.is_tpu, NOT_CHECKED, "outside the TPU computation")


def _calls(graph: Graph) -> Ints:
    """(node, function): functions named in an attribute, and nodes whose operation is the function itself."""
    index = {name: i for i, name in enumerate(graph.functions)}
    direct = np.array([index.get(op, -1) for op in graph.op.strings], np.int64)
    function = direct[graph.op.codes] if len(direct) else np.empty(0, np.int64)
    nodes = np.flatnonzero(function >= 0)
    return np.concatenate([graph.calls, np.stack([nodes, function[nodes]], 1)]).astype(np.int64)


def _bad_types(graph: Graph) -> Ints:
    """For each node, a type for which its operation has no kernel, -1 if there is none."""
    node, key, number = graph.types.T
    result = np.full(len(graph), -1, np.int64)
    if not len(node):
        return result
    number = np.where((number > 0) & (number < _MAX_TYPES - 1), number, _MAX_TYPES - 1)
    pair = graph.op.codes[node].astype(np.int64) * len(graph.attributes) + key
    pairs, pair_index = np.unique(pair, return_inverse=True)
    allowed = np.ones((len(pairs), _MAX_TYPES), np.bool_)
    for row, code in enumerate(pairs.tolist()):
        op = graph.op.strings[code // len(graph.attributes)]
        attribute = (
            "_Arg.T"
            if op in ("Placeholder", "PlaceholderV2", "VarHandleOp")
            else f"{op}.{graph.attributes[code % len(graph.attributes)]}"
        )
        if attribute in ALLOWED:
            allowed[row] = False
            allowed[row, list(ALLOWED[attribute])] = True
    bad = ~allowed[pair_index.reshape(-1), number]
    np.maximum.at(result, node[bad], number[bad])
    return result
