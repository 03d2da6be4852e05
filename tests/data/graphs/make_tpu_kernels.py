"""TensorFlow's own registry of compilable operations -> tb_tpuprof/analysis/graphs/tpu_kernels.py.

Needs tensorflow-cpu 2.21 (libtensorflow_cc exports XlaOpRegistry). Kernels of XLA are registered for every
backend that the registry knows when they are first needed. The backend of TPUs, XLA_TPU_JIT, is not linked
into TensorFlow's wheels; so this script registers it, with the types that the wheel's header
core/tpu/tpu_defs.h lists for TPUs, has the kernels registered, and reads which operations got one and for
which types. TensorFlow's filter for TPUs, not in the wheel either, adds strings to Const and Assert; so does
this.

    python make_tpu_kernels.py ../../../tb_tpuprof/analysis/tpu_kernels.py
"""

from __future__ import annotations

import ctypes
import re
import sys
import textwrap
from collections import defaultdict
from pathlib import Path
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import types_pb2
from tensorflow.python.framework import kernels

REGISTRY = "_ZN10tensorflow13XlaOpRegistry"
STRING = "ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
BACKEND = "XLA_TPU_JIT"
# What is registered for TPUs only, in TensorFlow's tree (core/tpu) or in libtpu, and in no wheel, so that no
# script can read it. TensorBoard's graph page names the same.
TPU_ONLY = (
    "AllToAll CollectivePermute CrossReplicaSum InfeedDequeue InfeedDequeueTuple InplaceAdd InplaceUpdate "
    "KthOrderStatistic MakeUnique OutfeedEnqueue OutfeedEnqueueTuple ResizeNearestNeighborGrad TopKUnique "
    "TopKWithUnique XlaHostCompute XlaRecvFromHost XlaSendToHost _ParallelConcatUpdate _XlaHostComputeMlir"
)

HEAD = r'''"""Operations with a kernel for TPUs and the types that their kernels take, as TensorFlow {version} registers them.

Written by tests/data/graphs/make_tpu_kernels.py, which says how; not to be edited by hand.
"""

from __future__ import annotations

VERSION = "{version}"

# TensorFlow's types as users write them; the first has number 1.
_TYPE_NAMES = """
{names}
"""

# Operations by name.
_OPS = """
{ops}
"""

# Operations that exist for TPUs alone, which no wheel registers.
_TPU_ONLY = """
{tpu_only}
"""

# A paragraph: the numbers of types, and below the attributes of operations whose kernels take these types and no others.
_TYPES = """
{types}
"""

TYPE_NAMES = tuple(_TYPE_NAMES.split())
OPS = frozenset(_OPS.split())
TPU_ONLY = frozenset(_TPU_ONLY.split())


def _allowed() -> dict[str, frozenset[int]]:
    result: dict[str, frozenset[int]] = {{}}
    for paragraph in _TYPES.strip().split("\n\n"):
        numbers, _, places = paragraph.partition("\n")
        result.update(dict.fromkeys(places.split(), frozenset(int(number) for number in numbers.split())))
    return result


# `operation.attribute` -> numbers of the types that its kernels take.
ALLOWED = _allowed()
'''


class String(ctypes.Structure):
    """A std::string of at most 15 bytes, which lie within it."""

    _fields_ = (("data", ctypes.c_void_p), ("size", ctypes.c_size_t), ("buffer", ctypes.c_char * 16))


def string(text: str) -> String:
    result = String(size=len(text), buffer=text.encode())
    result.data = ctypes.addressof(result) + String.buffer.offset
    return result


def tpu_types() -> list[int]:
    """The types that the header of TPUs lists."""
    header = Path(tf.sysconfig.get_include(), "tensorflow/core/tpu/tpu_defs.h").read_text("utf-8")
    found = re.search(r"kTpuAllTypes = \{(.*?)\};", header, re.DOTALL)
    assert found
    return [types_pb2.DataType.Value(name) for name in re.findall(r"DT_\w+", found[1])]


def register() -> None:
    """Make XLA_TPU_JIT known and have the kernels registered."""
    library = ctypes.CDLL(str(Path(tf.sysconfig.get_lib(), "libtensorflow_cc.so.2")))
    backend, types = string(BACKEND), tpu_types()
    is_known = getattr(library, f"{REGISTRY}19IsBackendRegistered{STRING}")
    is_known.restype = ctypes.c_bool
    assert not is_known(ctypes.byref(backend)), (
        "this TensorFlow has the backend of TPUs itself: read its kernels without registering"
    )
    accepts = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p)(lambda _kernel: True)
    span = "N4absl12lts_202508144SpanIKNS_8DataTypeEEEPFbPNS_9KernelDefEE"
    add = getattr(library, f"{REGISTRY}15RegisterBackend{STRING}{span}")
    add(ctypes.byref(backend), (ctypes.c_int * len(types))(*types), ctypes.c_size_t(len(types)), accepts)
    assert is_known(ctypes.byref(backend))
    getattr(library, f"{REGISTRY}26RegisterCompilationKernelsEv")()


def registered() -> dict[str, dict[str, set[int]]]:
    """Operation -> attribute -> types, of all its kernels together."""
    result: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for kernel in kernels.get_all_registered_kernels().kernel:
        if kernel.device_type != BACKEND:
            continue
        attributes = result[kernel.op]
        for constraint in kernel.constraint:
            attributes[constraint.name].update(constraint.allowed_values.list.type)
    result["Const"]["dtype"].add(types_pb2.DT_STRING)
    result["Assert"]["T"].add(types_pb2.DT_STRING)
    return result


def wrapped(words: list[str]) -> str:
    return textwrap.fill(" ".join(words), 110, break_on_hyphens=False)


def source(found: dict[str, dict[str, set[int]]]) -> str:
    by_types: dict[tuple[int, ...], list[str]] = defaultdict(list)
    for op, attributes in sorted(found.items()):
        for attribute, types in sorted(attributes.items()):
            by_types[tuple(sorted(types))].append(f"{op}.{attribute}")
    groups = []
    for types, places in sorted(by_types.items()):
        groups.append(f"{' '.join(map(str, types))}\n{wrapped(places)}")
    names = {
        number: name.removeprefix("DT_").lower()
        for name, number in types_pb2.DataType.items()
        if 0 < number < 100
    }
    names |= {1: "float32", 2: "float64", 19: "float16"}
    listed = wrapped([names.get(number, "?") for number in range(1, max(names) + 1)])
    tpu_only = sorted(set(TPU_ONLY.split()) - set(found))
    fields: dict[str, Any] = {
        "version": tf.__version__,
        "ops": wrapped(sorted(found)),
        "types": "\n\n".join(groups),
    }
    return HEAD.format(names=listed, tpu_only=wrapped(tpu_only), **fields)


def main() -> None:
    register()
    found = registered()
    Path(sys.argv[1]).write_text(source(found), "utf-8")
    print(f"{len(found)} operations, TensorFlow {tf.__version__}")


if __name__ == "__main__":
    main()
