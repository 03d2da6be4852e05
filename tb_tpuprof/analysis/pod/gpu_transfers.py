"""Collectives that XLA runs on GPUs: kernels of NCCL and RCCL → the HLO instruction that each ran, with its
kind, bytes and groups.

    kernel   ncclDevKernel_AllReduce_Sum_f32_RING_LL     hlo_op all-reduce-start.3
    HLO      all-reduce-start.3 = (f32[1024], f32[256]) all-reduce-start(…), replica_groups={{0,1},{2,3}}

The kernel runs the whole exchange, whether its instruction is a start or not. A kernel that names no
collective of a program in the trace remains an operation of its own name, with unknown size.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.hlo_links import HloLinks, LinkedOp, hlo_links
from tb_tpuprof.analysis.pod.transfers import TransferOp, device_groups, kind_of, transfer_ops
from tb_tpuprof.errors import ProfilerError
from tb_tpuprof.trace.hlo import HloModule
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
_START = "-start"


def gpu_exchanges(trace: Trace, cores: Sequence[Int64s]) -> tuple[tuple[TransferOp, ...], list[Int64s]]:
    """The transfers among the events (rows) of each GPU, and the transfer of each event, -1 none."""
    metadata = [trace.events["metadata"][rows].astype(np.int64) for rows in cores]
    by_name, op_of_row = transfer_ops(trace, np.unique(np.concatenate([np.empty(0, np.int64), *metadata])))
    op_of = [op_of_row[of_core] for of_core in metadata]
    links = hlo_links(trace)
    if not by_name or not len(links):
        return by_name, op_of
    linked = [_linked(links, rows, op >= 0) for rows, op in zip(cores, op_of, strict=True)]
    used = np.unique(np.concatenate(linked))
    ops = _transfers(trace, links, used[used >= 0].tolist())
    code = np.full(len(links) + 1, -1, np.int64)
    code[list(ops)] = len(by_name) + np.arange(len(ops))
    op_of_events = [np.where(code[link] >= 0, code[link], op) for link, op in zip(linked, op_of, strict=True)]
    return _used((*by_name, *ops.values()), op_of_events)


def _linked(links: HloLinks, rows: Int64s, is_transfer: npt.NDArray[np.bool_]) -> Int64s:
    """The linked operation of each event that transfers data, -1 if it names none."""
    position = np.minimum(np.searchsorted(links.events, rows), len(links.events) - 1)
    is_linked = is_transfer & (links.events[position] == rows)
    return np.where(is_linked, links.op[position], -1)


def _transfers(trace: Trace, links: HloLinks, used: Sequence[int]) -> dict[int, TransferOp]:
    """The collectives among linked operations, by their row. Names include the program where several
    programs have an instruction of one name.
    """
    transfers = {i: transfer for i in used if (transfer := _transfer(trace, links.ops[i])) is not None}
    count = Counter({(links.ops[i].program_id, transfer.name) for i, transfer in transfers.items()})
    programs = Counter(name for _, name in count)
    return {
        i: replace(transfer, name=f"{transfer.name} of {_title(trace, links.ops[i].program_id)}")
        if programs[transfer.name] > 1
        else transfer
        for i, transfer in transfers.items()
    }


def _title(trace: Trace, program: int) -> str:
    entry = trace.programs.get(program)
    return entry.title if entry else str(program)


def _transfer(trace: Trace, op: LinkedOp) -> TransferOp | None:
    """The collective that an instruction is or contains; None without HLO, and for all other instructions: a
    send and its receive share one kernel.
    """
    if op.instruction < 0:
        return None
    try:
        module = trace.programs.module(op.program_id)
    except ProfilerError:  # hlo_links reports it
        return None
    row = -1 if module is None else _collective_in(module, op.instruction)
    if module is None or row < 0 or kind_of(module.opcode(row)) in ("send", "recv"):
        return None
    attributes = module.attributes(row)
    return TransferOp(
        op.name,
        kind_of(module.opcode(row)),
        size_bytes=result_bytes(module, row),
        channel_id=attributes.channel_id,
        groups=device_groups(attributes.replica_groups),
        pairs=attributes.source_target_pairs,
        has_hlo=True,
    )


def _collective_in(module: HloModule, row: int) -> int:
    """The instruction itself, or the only collective in the computations that it calls; -1 for none."""
    rows, entered = [row], set[int]()
    while rows:
        found = [i for i in rows if kind_of(module.opcode(i)) and not module.opcode(i).endswith("-done")]
        if found:
            return found[0] if len(found) == 1 else -1
        called = {int(computation) for i in rows for computation in module.calls[i] if computation >= 0}
        rows = [int(i) for computation in called - entered for i in module.rows_of(computation)]
        entered |= called
    return -1


def result_bytes(module: HloModule, row: int) -> int:
    """Bytes of the result of a collective on one device. A start's own value also contains its operands, and
    may contain flags: its result is as large as its operands, or, of an all-gather, its second part.
    """
    shape = module.shape(row)
    if not module.opcode(row).endswith(_START):
        return shape.array_bytes
    if kind_of(module.opcode(row)) == "all-gather":
        return shape.elements[1].array_bytes if len(shape.elements) == 2 else 0
    return sum(module.shape(int(i)).array_bytes for i in module.operands[row] if i >= 0)


def _used(ops: tuple[TransferOp, ...], op_of: list[Int64s]) -> tuple[tuple[TransferOp, ...], list[Int64s]]:
    """Only the transfers that some event has, renumbered."""
    used = np.unique(np.concatenate([np.empty(0, np.int64), *op_of]))
    used = used[used >= 0]
    code = np.full(len(ops) + 1, -1, np.int64)
    code[used] = np.arange(len(used))
    return tuple(ops[i] for i in used.tolist()), [code[op] for op in op_of]
