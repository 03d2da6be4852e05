"""A compiled program → the operations by which a TPU exchanges data with other slices.

A transfer is four operations of one rendezvous: `send` hands the data to the host, `send-done` waits until it
is sent, `recv` hands the host an empty buffer, `recv-done` waits until that is filled. The program names the
rendezvous and the kind of collective in frontend attributes of `send` and `recv`; their `-done` halves follow
from the operand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.planes import OP_LINE, line_events, lines_named, planes
from tb_tpuprof.analysis.events.proto_fields import number_field
from tb_tpuprof.errors import ProfilerError
from tb_tpuprof.trace.hlo import HloModule
from tb_tpuprof.trace.trace import Trace
from tb_tpuprof.trace.wire import read_fields

Int64s = npt.NDArray[np.int64]
RENDEZVOUS, TRANSFER_TYPE = "_xla_host_transfer_rendezvous", "_xla_megascale_transfer_type"
_MOST_OPS = 1 << 16
_MOST_INFO_BYTES = 1 << 20  # of one operation's groups; endpoints beyond are not counted


class Half(IntEnum):
    """An operation's role in its transfer."""

    SEND = 0
    SEND_DONE = 1
    RECV = 2
    RECV_DONE = 3


_HALVES = {
    "host send": Half.SEND,
    "host send-done": Half.SEND_DONE,
    "host recv": Half.RECV,
    "host recv-done": Half.RECV_DONE,
}
_OPCODES = {"send": Half.SEND, "send-done": Half.SEND_DONE, "recv": Half.RECV, "recv-done": Half.RECV_DONE}
# The values of `DcnCollectiveInfoProto.transfer_type`.
_TYPES = (
    "",
    "ALL_TO_ALL",
    "ONE_TO_ONE",
    "REDUCE_SCATTER",
    "ALL_GATHER",
    "ALL_REDUCE",
    "RAGGED_ALL_TO_ALL",
)


@dataclass(frozen=True)
class Rendezvous:
    """A collective between slices. `size_bytes`: of the buffer that one core receives, 0 unknown;
    `group_size`: participants, 1 for transfers from one to one, 0 unknown.
    """

    name: str
    transfer_type: str = ""
    size_bytes: int = 0
    group_size: int = 0
    send_op: str = ""
    recv_op: str = ""

    @property
    def network_bytes(self) -> float | None:
        """Bytes that one core sends over the network each time; None if type, size or group is unknown.

        With n the bytes that it receives and g the participants: one to one n · g; all-gather and
        all-to-all n (g − 1) / g; all-reduce twice that; reduce-scatter n (g − 1).
        """
        n, g = self.size_bytes, self.group_size
        if not n or not g:
            return None
        factors = {
            "ONE_TO_ONE": float(g),
            "ALL_GATHER": (g - 1) / g,
            "ALL_TO_ALL": (g - 1) / g,
            "ALL_REDUCE": 2 * (g - 1) / g,
            "REDUCE_SCATTER": float(g - 1),
        }
        factor = factors.get(self.transfer_type)
        return None if factor is None else n * factor


@dataclass(frozen=True)
class DcnOps:
    """`half_of`, `rendezvous_of`: by row of metadata, -1 for operations that transfer nothing between slices.
    `n_unknown`: operations of such categories without a known rendezvous, since the trace lacks the program.
    """

    rendezvous: tuple[Rendezvous, ...]
    half_of: Int64s
    rendezvous_of: Int64s
    n_unknown: int


def dcn_ops(trace: Trace) -> DcnOps:
    """The operations of a trace that transfer data between slices."""
    n = len(trace.metadata)
    half_of, rendezvous_of = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    by_name: dict[str, int] = {}
    facts: list[Rendezvous] = []
    n_unknown = 0
    program = trace.metadata_stats.dense_ints("program_id", n, 0)
    stated = _Stated(trace)
    ops: dict[tuple[int, str], _Op | None] = {}  # each core has its own metadata of the same operations
    for row, half in _candidates(trace):
        key = int(program[row]), trace.strings.get(int(trace.event_names[row])).removeprefix("%")
        if key not in ops:
            ops[key] = _op(trace, *key)
        op = ops[key]
        if op is None:
            n_unknown += 1
            continue
        code = by_name.setdefault(op.rendezvous, len(by_name))
        if code == len(facts):
            facts.append(Rendezvous(op.rendezvous))
        half_of[row], rendezvous_of[row] = half, code
        facts[code] = _with_op(facts[code], half, op, key[1])
        if not facts[code].transfer_type or not facts[code].group_size:
            facts[code] = stated.added(facts[code], row)
    return DcnOps(tuple(facts), half_of, rendezvous_of, n_unknown)


def transfers_between_slices(trace: Trace) -> bool:
    """Whether a trace has operations of the categories that transfer between slices; cheap."""
    category = trace.metadata_stats.dense_texts("hlo_category", len(trace.metadata))
    codes = [code for text in _HALVES if (code := trace.strings.find(text)) >= 0]
    return bool(codes and np.isin(category, codes).any())


def _candidates(trace: Trace) -> Iterator[tuple[int, Half]]:
    """Rows of the metadata that occur on lines of operations, with a category of transfers with the host."""
    category = trace.metadata_stats.dense_texts("hlo_category", len(trace.metadata))
    codes = {trace.strings.find(text): half for text, half in _HALVES.items()}
    codes.pop(-1, None)
    if not codes:
        return
    is_candidate = np.isin(category, list(codes))
    if not is_candidate.any():
        return
    lines = [line for plane in planes(trace).tensor_cores for line in lines_named(trace, plane, (OP_LINE,))]
    used = [trace.events["metadata"][line_events(trace, line)] for line in lines]
    rows = np.unique(np.concatenate([np.empty(0, np.int64), *used])).astype(np.int64)
    for row in rows[is_candidate[rows]][:_MOST_OPS].tolist():
        yield row, codes[int(category[row])]


@dataclass(frozen=True)
class _Op:
    rendezvous: str
    transfer_type: str
    size_bytes: int


def _op(trace: Trace, program: int, name: str) -> _Op | None:
    """The rendezvous of an operation; None if the program is unknown or names none."""
    try:
        module = trace.programs.module(program)
        row = -1 if module is None else module.find(name)
        if module is None or row < 0 or module.opcode(row) not in _OPCODES:
            return None
        size = module.shape(row).array_bytes
        begin = _first_half(module, row)
        frontend = module.attributes(begin).frontend
    except ProfilerError:
        return None
    rendezvous = frontend.get(RENDEZVOUS, "")
    return _Op(rendezvous, frontend.get(TRANSFER_TYPE, ""), size) if rendezvous else None


def _first_half(module: HloModule, row: int) -> int:
    """The send or recv that a -done ends, else the row itself."""
    if not module.opcode(row).endswith("-done"):
        return row
    operands = [int(i) for i in module.operands[row] if i >= 0]
    return operands[0] if operands and module.opcode(operands[0]) in ("send", "recv") else row


def _with_op(known: Rendezvous, half: Half, op: _Op, name: str) -> Rendezvous:
    result = replace(known, transfer_type=known.transfer_type or op.transfer_type)
    if half == Half.SEND:
        return replace(result, send_op=known.send_op or name)
    if half == Half.RECV_DONE:
        return replace(result, recv_op=known.recv_op or name, size_bytes=max(known.size_bytes, op.size_bytes))
    return result


class _Stated:
    """What `dcn_collective_info` states about an operation: a DcnCollectiveInfoProto (1 transfer_type,
    2 endpoint_groups with 1 endpoints, 3 one_to_one_groups).
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        spans = trace.metadata_stats.spans("dcn_collective_info")
        self.places = {row: (position, size) for row, position, size in spans[:_MOST_OPS]}

    def added(self, known: Rendezvous, row: int) -> Rendezvous:
        """The rendezvous with its type and participants where they are unknown. `row`: of the metadata."""
        if row not in self.places:
            return known
        position, size = self.places[row]
        info = self.trace.source.read(position, min(size, _MOST_INFO_BYTES))
        code = number_field(info, 1)
        kind = _TYPES[code] if code < len(_TYPES) else ""
        messages = [(number, value) for number, wire, value in read_fields(info) if wire == 2]
        groups = [value for number, value in messages if number == 2]
        first = groups[0] if groups and isinstance(groups[0], bytes) else b""
        n_endpoints = sum(number == 1 for number, _, _ in read_fields(first))
        is_one_to_one = any(number == 3 for number, _ in messages)
        return replace(
            known,
            transfer_type=known.transfer_type or kind,
            group_size=known.group_size or (1 if is_one_to_one else n_endpoints),
        )
