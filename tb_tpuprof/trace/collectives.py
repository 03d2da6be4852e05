"""Names of collectives as PyTorch, NCCL and RCCL write them → kinds, as HLO calls them; sizes of their
elements.

    allreduce_coalesced, ncclDevKernel_AllReduce_Sum_bf16_RING_LL     all-reduce
    _reduce_scatter_base, all_to_allv, ncclKernel_SendRecv            reduce-scatter, all-to-all, send-receive

NCCL has no kernel of its own for an all-to-all: it groups sends and receives. Only what called it can say
which collective it was.
"""

from __future__ import annotations

import re

SEND_RECEIVE, UNKNOWN_KIND = "send-receive", "collective"
# Parts of names, without anything but letters, in the order in which they are looked for.
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
_KERNEL = re.compile(
    r"(?:void )?(?:nccl|rccl|msccl)", re.IGNORECASE
)  # mscclKernel…: generated algorithms within RCCL
# Bytes of an element by c10's name of its type, as `dtype` and as `Input type` have it.
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
    """Whether a kernel of this name is NCCL's or RCCL's."""
    return _KERNEL.match(name) is not None


def kind_named(name: str) -> str:
    """The kind of collective that PyTorch's or NCCL's name stands for; empty where it names none
    (`ncclDevKernel_Generic`).
    """
    plain = re.sub(r"[^a-z]", "", name.partition("(")[0].lower())
    return next((kind for part, kind in _KINDS if part in plain), "")


def element_bytes(dtype: str) -> int:
    """Bytes of an element of a type as PyTorch writes it (`BFloat16`, `c10::Half`, `long int`); 0 where it is
    not known.
    """
    return _BYTES_OF.get(dtype.strip().lower().replace("c10::", ""), 0)
