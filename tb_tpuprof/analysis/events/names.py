"""Names of events and operations: the framework, operation and type that a name denotes. Each distinct name
is parsed once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tb_tpuprof.analysis.events.text_cache import text_cache

UNKNOWN, TENSORFLOW, JAX, TF_DATA, MEMCPY = range(5)

_TF_NAME = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_./>-]*")
_TF_TYPE = re.compile(r"[A-Z_][a-zA-Z0-9_]*")
_JAX_TYPE = re.compile(r"[a-z_][a-z0-9_]*(\[.*\])?", re.DOTALL)
# The colon before a type; the two of `aten::mean` belong to a name.
_BEFORE_TYPE = re.compile(r"(?<!:):(?!:)")
_GRAPH_LAUNCH = re.compile(r"((cuda|hip|cu)GraphLaunch)\w*( in .*)?", re.DOTALL)
_FETCH = re.compile(
    r"enumerate\((DataLoader|DataPipe)\)#.*|.*\btorch(data)?/.*(data_?loader|datapipe)\w*\.py\(\d+\): "
    r"__next__",
    re.DOTALL,
)
_COLLECTIVE = re.compile(r"\w+ \(record_param_comms\)")
PYTORCH_NAMESPACES = ("aten::", "c10d::", "torch::", "prim::", "quantized::", "fbgemm::", "torchvision::")
_NUMBER_SUFFIX = re.compile(r"_[+-]?\d+$")
_HLO_SUFFIX = re.compile(r"(\.\d+|\.clone|\.remat\d*)+$")
_MEMCPY_KINDS = ("MemcpyHToD", "MemcpyDToH", "MemcpyDToD", "MemcpyHToH")


@dataclass(frozen=True)
class Op:
    """A framework operation: `scope/dense/MatMul` of type `MatMul`."""

    name: str
    type: str
    category: int = UNKNOWN


@text_cache
def parse_op(full_name: str) -> Op:
    """Parse a traced name such as `scope/name:Type` into an operation.

    A name without a colon is a copy between memories or unknown. `Iterator::…` and `ReduceIterator::…` (a
    loop over a dataset inside a function) are stages of a tf.data pipeline. A capitalized type is
    TensorFlow's, a lower-case one JAX's (its `[parameters]` are cut off); an empty type is derived from the
    last part of the name without its number. A PyTorch operator starts with its namespace (`aten::mm`); the
    rest is its type. The launch of a CUDA or HIP graph (`cudaGraphLaunch in my::operator`) has the launch
    call as its type.
    """
    graph = _GRAPH_LAUNCH.fullmatch(full_name)
    if graph:
        return Op(full_name, graph[1])
    name, colon, type_ = full_name.partition(":")
    if not colon and _COLLECTIVE.fullmatch(full_name):
        return Op(full_name, "collective")
    if not colon:
        kind = _memcpy_kind(full_name)
        return Op(full_name, kind, MEMCPY) if kind else Op(full_name, "")
    if full_name.startswith(("nccl:", "gloo:", "mpi:", "ucc:")) and "/" not in full_name:
        return Op(full_name, full_name.rpartition(":")[2])
    if full_name.startswith(PYTORCH_NAMESPACES):
        return Op(full_name, full_name.rpartition("::")[2])
    if name.endswith("Iterator") and name != "MakeIterator" and full_name.startswith("::", len(name)):
        return Op(full_name, "Dataset", TF_DATA)
    if type_.startswith(":") and "/" in name:  # PyTorch/XLA: `jit(f)/aten::mean.dim/reduce_sum:`
        name, type_, *_ = (*_BEFORE_TYPE.split(full_name, maxsplit=1), ":")
    if _TF_NAME.fullmatch(name) and _TF_TYPE.fullmatch(type_):
        return Op(name, type_, TENSORFLOW)
    derived = type_ or _NUMBER_SUFFIX.sub("", name.rpartition("/")[2])
    if _JAX_TYPE.fullmatch(derived):
        return Op(name, derived.partition("[")[0], JAX)
    return Op(full_name, "") if type_ else Op(name, derived, TENSORFLOW)


def hlo_op_type(hlo_op: str) -> str:
    """The kind of an HLO instruction from its name: `dot.12` → `dot`, `loop_add_fusion.3.clone` →
    `loop_add_fusion`.
    """
    return _HLO_SUFFIX.sub("", hlo_op) or hlo_op


@text_cache
def _memcpy_kind(name: str) -> str:
    if name[:6].lower() != "memcpy":
        return ""
    lower = name.lower().replace("memcpy ", "memcpy", 1)  # PyTorch writes `Memcpy HtoD (Pageable -> Device)`
    return next((kind for kind in _MEMCPY_KINDS if lower.startswith(kind.lower())), "")


def is_fetch(name: str) -> bool:
    """Whether a host event fetches a batch from PyTorch's data loader: PyTorch's own event, or the frame of
    its Python tracer.
    """
    return _FETCH.fullmatch(name) is not None


def is_graph_launch(op_name: str) -> bool:
    """Whether an operation launches a whole CUDA or HIP graph."""
    return _GRAPH_LAUNCH.fullmatch(op_name) is not None


def is_explicit_step(name: str) -> bool:
    """Whether the name marks a step: it starts with `train`, `test` or `TraceContext` and has no slash.

    A Python frame in a file such as `train.py` marks none.
    """
    return name.startswith(("train", "test", "TraceContext")) and "/" not in name and ".py(" not in name


def is_loop_op(name: str) -> bool:
    """Whether the name belongs to a TensorFlow v1 loop, in which grouping by threads is meaningless."""
    return name in _LOOP_OPS


_LOOP_OPS = frozenset(("WhileOp-EvalCond", "WhileOp-StartBody", "ForOp", "ParallelForOp", "ForeverOp"))
