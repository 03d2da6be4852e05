"""Operations by which cores exchange data: their bytes and devices, as stated by HLO or by PyTorch's file."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.pod.parts import COLLECTIVES
from tb_tpuprof.errors import ProfilerError
from tb_tpuprof.trace.collectives import SEND_RECEIVE, UNKNOWN_KIND, is_collective_kernel, kind_named
from tb_tpuprof.trace.hlo import HloModule
from tb_tpuprof.trace.hlo_attributes import Attributes, ReplicaGroups
from tb_tpuprof.trace.trace import Trace

Ints = tuple[int, ...]
Int64s = npt.NDArray[np.int64]
KINDS = (*COLLECTIVES, "send", "recv")
_MAX_DEVICES = 1 << 16
_HALF = re.compile(r"-(?:start|done)\b")
_PAIRS = "_xla_send_recv_source_target_pairs"


@dataclass(frozen=True)
class TransferOp:
    """One exchange of data. `kind`: opcode without -start and -done. `starts_as`: for the half that ends an
    exchange, the name of the half that begins it.

    `groups`: devices that take part together; empty: all. `pairs`: (from, to), [n_pairs, 2]. Numbers are the
    program's device numbers. `size_bytes`: of the result on one device, 0 unknown. `has_hlo`: whether the
    trace has more than name and category. For PyTorch: `process_group` is the name of the participating
    ranks' group, `group_size` their number (0 unknown), `size_bytes` the larger of one rank's input and
    output; `ordinal`: the position among the operations of this kind and group in a step, else -1. `is_half`:
    whether it is the start or the done of an asynchronous operation.
    """

    name: str
    kind: str
    size_bytes: int = 0
    channel_id: int = 0
    groups: tuple[Ints, ...] = ()
    pairs: Int64s = field(default_factory=lambda: np.empty((0, 2), np.int64))
    starts_as: str = ""
    has_hlo: bool = False
    process_group: str = ""
    group_size: int = 0
    dtype: str = ""
    ordinal: int = -1
    is_half: bool = False

    @property
    def states_groups(self) -> bool:
        """Whether the trace states which devices run it together, or cannot state it in principle."""
        return self.has_hlo or bool(self.groups) or self.kind == SEND_RECEIVE


def kind_of(text: str) -> str:
    """The kind of transfer of an opcode, a category or a kernel's name; empty for everything else."""
    matched = next((kind for kind in KINDS if text == kind or text.startswith((f"{kind}-", f"{kind} "))), "")
    if not matched and is_collective_kernel(text):
        return kind_named(text) or UNKNOWN_KIND
    return matched


def transfer_ops(trace: Trace, metadata: Int64s) -> tuple[tuple[TransferOp, ...], Int64s]:
    """The transfers among the metadata rows `metadata`, and the transfer of each metadata row, -1 none. The
    halves of asynchronous operations are separate transfers.
    """
    op_of = np.full(len(trace.metadata), -1, np.int64)
    n = len(trace.metadata)
    category = trace.metadata_stats.dense_texts("hlo_category", n)
    program = trace.metadata_stats.dense_ints("program_id", n, 0)
    ops: dict[str, TransferOp] = {}
    index: dict[str, int] = {}
    for row in metadata.tolist():
        full_name = trace.strings.get(int(trace.metadata["name"][row]))
        name = trace.strings.get(int(trace.event_names[row])).removeprefix("%")
        category_text = trace.strings.get(int(category[row]))
        kind = kind_of(category_text) or (
            kind_of(full_name)
            if category[row] < 0
            else kind_of(name)
            if category_text.startswith("async-")
            else ""
        )
        if not kind:
            continue
        if name not in ops:
            is_half = _HALF.search(category_text or name) is not None
            ops[name] = _with_hlo(trace, int(program[row]), TransferOp(name, kind, is_half=is_half))
        op_of[row] = index.setdefault(name, len(index))
    return tuple(ops.values()), op_of


def _with_hlo(trace: Trace, program: int, op: TransferOp) -> TransferOp:
    try:
        module = trace.programs.module(program)
    except ProfilerError:
        return op
    row = -1 if module is None else module.find(op.name)
    if module is None or row < 0:
        return op
    row = _within(module, row)
    kind, starts_as = kind_of(module.opcode(row)) or op.kind, ""
    size = module.shape(row).array_bytes
    if module.opcode(row).endswith("-done"):
        operands = [int(i) for i in module.operands[row] if i >= 0]
        if operands and kind_of(module.opcode(operands[0])):
            row = operands[0]
            starts_as = module.name(row)
    elif module.opcode(row).endswith("-start") or module.opcode(row) in ("send", "recv"):
        leaves = [leaf.size_bytes for leaf in module.shape(row).leaves if leaf.is_array]
        size = max(leaves, default=size)
    attributes = module.attributes(row)
    groups = device_groups(attributes.replica_groups)
    pairs = attributes.source_target_pairs if len(attributes.source_target_pairs) else _pairs(attributes)
    is_half = op.is_half or module.opcode(row).endswith(("-start", "-done"))
    return replace(
        op,
        is_half=is_half,
        kind=kind,
        size_bytes=size,
        channel_id=attributes.channel_id,
        groups=groups,
        pairs=pairs,
        starts_as=starts_as,
        has_hlo=True,
    )


def _within(module: HloModule, row: int) -> int:
    """The collective inside a fusion, else the row itself."""
    if module.opcode(row) != "fusion":
        return row
    inner = (i for called in module.calls[row] if called >= 0 for i in module.rows_of(int(called)))
    return next((i for i in inner if kind_of(module.opcode(i))), row)


def _pairs(attributes: Attributes) -> Int64s:
    """Pairs of a send or receive, written {{0,1},{1,2}} in a frontend attribute."""
    text = attributes.frontend.get(_PAIRS, "")
    numbers = [
        int(word)
        for word in text.replace("{", " ").replace("}", " ").replace(",", " ").split()
        if word.isdecimal() and len(word) < 9
    ]
    return np.array(numbers[: len(numbers) // 2 * 2], np.int64).reshape(-1, 2)


def device_groups(groups: ReplicaGroups | None) -> tuple[Ints, ...]:
    """Devices of each group; empty if all devices are one group, or if a mesh's axes are split and the groups
    are not listed.
    """
    if groups is None:
        return ()
    if groups.groups:
        return groups.groups
    if groups.iota:
        iota = groups.iota
        shape = iota.reshape or iota.dims
        size = _product(shape)
        if not 0 < size <= _MAX_DEVICES or size != _product(iota.dims) or len(iota.dims) != 2:
            return ()
        order = iota.permutation or tuple(range(len(shape)))
        if sorted(order) != list(range(len(shape))):
            return ()
        return _rows(np.arange(size).reshape(shape).transpose(order).reshape(iota.dims))
    if groups.mesh and groups.axes and not any(axis.sub for axis in groups.axes):
        sizes = tuple(size for _, size in groups.mesh.axes)
        total = _product(sizes)
        group_axes = [axis.axis for axis in groups.axes]
        is_sound = (
            0 < total <= _MAX_DEVICES
            and len(groups.mesh.devices) in (0, total)
            and set(group_axes) <= set(range(len(sizes)))
        )
        if not is_sound or len(set(group_axes)) < len(group_axes):
            return ()
        devices = np.array(groups.mesh.devices or range(total)).reshape(sizes)
        others = [axis for axis in range(len(sizes)) if axis not in group_axes]
        return _rows(
            devices.transpose([*others, *group_axes]).reshape(
                -1, _product([sizes[axis] for axis in group_axes])
            )
        )
    return ()


def _product(sizes: Ints | list[int]) -> int:
    result = 1
    for size in sizes:
        result *= max(int(size), 0)
    return result


def _rows(table: npt.NDArray[np.int64]) -> tuple[Ints, ...]:
    return tuple(tuple(row) for row in table.tolist())
