"""Names of collectives as PyTorch, NCCL and RCCL write them → kinds as HLO names them; sizes of their
elements.

    allreduce_coalesced, ncclDevKernel_AllReduce_Sum_bf16_RING_LL     all-reduce
    _reduce_scatter_base, all_to_allv, ncclKernel_SendRecv            reduce-scatter, all-to-all, send-receive

NCCL has no kernel for an all-to-all: it groups sends and receives. Only the operation that called the kernel
shows which collective it was.
"""

from __future__ import annotations

import re

SEND_RECEIVE, UNKNOWN_KIND = "send-receive", "collective"
# Parts of names (letters only), in the order in which they are tried.
_KINDS = (
    ("alltoall", "all-to-all"),
    ("reducescatter", "reduce-scatter"),
    ("allgather", "all-gather"),
    ("allreduce", "all-reduce"),
    ("barrier", "barrier"),
    ("broadcast", "broadcast"),
    ("gather", "gather"),
    ("scatter", "scatter"),
    ("sendrecv", SEND_RECEIVE),
    ("coalesced", SEND_RECEIVE),
    ("pointtopoint", SEND_RECEIVE),
    ("batch", SEND_RECEIVE),
    ("send", SEND_RECEIVE),
    ("recv", SEND_RECEIVE),
    ("reduce", "reduce"),
)
# mscclKernel…: generated algorithms within RCCL
_KERNEL = re.compile(r"(?:void )?(?:nccl|rccl|msccl)", re.IGNORECASE)
# Bytes per element by c10's name of the type, as written in `dtype` and in `Input type`.
_BYTES = {
    1: (
        "byte",
        "char",
        "bool",
        "unsigned char",
        "signed char",
        "float8_e5m2",
        "float8_e4m3fn",
        "float8_e5m2fnuz",
        "float8_e4m3fnuz",
        "float8_e8m0fnu",
    ),
    2: ("half", "bfloat16", "short", "short int", "uint16", "unsigned short"),
    4: ("float", "int", "uint32", "unsigned int", "complexhalf", "complex<half>"),
    8: ("double", "long", "long int", "uint64", "unsigned long", "complexfloat", "complex<float>"),
    16: ("complexdouble", "complex<double>"),
}
_BYTES_OF = {name: size for size, names in _BYTES.items() for name in names}


def is_collective_kernel(name: str) -> bool:
    """Whether a kernel of this name belongs to NCCL or RCCL."""
    return _KERNEL.match(name) is not None


def kind_named(name: str) -> str:
    """The kind of collective that a name of PyTorch's or NCCL's refers to; empty if it names none
    (`ncclDevKernel_Generic`).
    """
    plain = re.sub(r"[^a-z]", "", name.partition("(")[0].lower())
    return next((kind for part, kind in _KINDS if part in plain), "")


def element_bytes(dtype: str) -> int:
    """Bytes per element of a type as PyTorch writes it (`BFloat16`, `c10::Half`, `long int`); 0 for an
    unknown type.
    """
    return _BYTES_OF.get(dtype.strip().lower().replace("c10::", ""), 0)
