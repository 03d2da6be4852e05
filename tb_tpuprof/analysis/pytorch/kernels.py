"""Kernels of a PyTorch profile → the operator's call that launched each, and its part of that call's work.

    aten::addmm [[768], [788, 768], [768, 768]]     930 MFLOP
      ├ gemm                 ▒▒▒▒▒▒▒▒▒▒▒▒  30 µs      of them 5/6
      └ splitKreduce                     ▒▒  6 µs     of them 1/6

The work of a call is divided by the duration of its kernels, so that each of them has the rate of the whole.
A call within which another one states products has none of its own: `linear` around `addmm`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.device.attainable import excess_of
from tb_tpuprof.analysis.device.hardware import hardware
from tb_tpuprof.analysis.device.precisions import precision_of, relative_peak
from tb_tpuprof.analysis.events.kernel_names import uses_tensor_cores
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.names import is_graph_launch
from tb_tpuprof.analysis.events.nesting import nest_rows
from tb_tpuprof.analysis.events.stat_rows import first_ints, values_at
from tb_tpuprof.analysis.kernels.rows import kernel_mask
from tb_tpuprof.analysis.pytorch.work import has_products, work_of
from tb_tpuprof.trace.distinct_rows import distinct_rows
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]
MAX_PAIRS = 50_000  # distinct (operator, inputs): later ones have unknown work


@dataclass(frozen=True)
class Calls:
    """Calls of operators with the same name and inputs, as rows: `name` and `inputs` are string ids (-1: not
    recorded); FLOPs and bytes of one call, NaN where unknown; the type of the multiplied operands.
    """

    name: Int64s
    inputs: Int64s
    flops: Floats
    n_bytes: Floats
    dtype: tuple[str, ...]
    has_products: Bools


@dataclass(frozen=True)
class KernelWork:
    """`rows`: kernels that a call of an operator launched, ascending. For each: `call`, the event of that
    call; `kind`, its row of `calls`; its part of the call's FLOPs and bytes, NaN where unknown; `roof_flops`,
    the FLOPs × the peak rate at 16 bits ÷ the peak rate at the precision of the operands.

    `flops_excess` and `bytes_excess`: the amount counted for all calls of the kernel's kind ÷ the most that
    the GPU can do in their time, where that is impossible, else 0; the amount is then unknown.
    """

    rows: Rows
    call: Int64s
    kind: Int64s
    flops: Floats
    n_bytes: Floats
    roof_flops: Floats
    flops_excess: Floats
    bytes_excess: Floats
    calls: Calls

    def __len__(self) -> int:
        return len(self.rows)

    def kept(self, mask: Bools) -> KernelWork:
        """The kernels that `mask` marks."""
        columns = {name: column[mask] for name, column in self.__dict__.items() if name != "calls"}
        return KernelWork(**columns, calls=self.calls)


def records_inputs(trace: Trace) -> bool:
    """Whether the file has the inputs of PyTorch's operators (`record_shapes=True`)."""
    return trace.event_stats.has("op_inputs")


def operator_calls(trace: Trace, events: Int64s) -> tuple[Calls, Int64s]:
    """The distinct calls among these events of operators, and the row of each event."""
    name = trace.metadata["name"][trace.events["metadata"][events]].astype(np.int64)
    texts = trace.event_stats.texts("op_inputs")
    inputs = values_at(events, texts.owner, texts.value.astype(np.int64), -1)
    pairs, row = distinct_rows(name, inputs)
    known = [
        work_of(trace.strings.get(a), trace.strings.get(b)) if b >= 0 and i < MAX_PAIRS else work_of("", "")
        for i, (a, b) in enumerate(pairs.tolist())
    ]
    return Calls(
        pairs[:, 0],
        pairs[:, 1],
        np.array([work.flops for work in known], np.float64),
        np.array([work.n_bytes for work in known], np.float64),
        tuple(work.dtype for work in known),
        np.array([has_products(trace.strings.get(a)) for a in pairs[:, 0].tolist()], np.bool_),
    ), row


@once
def kernel_work(trace: Trace) -> KernelWork:
    """The work of all kernels that an operator launched, except those of CUDA and HIP graphs: what is around
    a graph's launch did not run its kernels.
    """
    owner, value = first_ints(trace, "launched_by")
    is_kernel = kernel_mask(trace)[owner] & ~_is_of_graph(trace, owner)
    rows, launched_by = owner[is_kernel].astype(np.intp), value[is_kernel]
    events, code = np.unique(launched_by, return_inverse=True)
    code = code.reshape(-1)
    calls, kind = operator_calls(trace, events)
    flops, n_bytes = call_work(trace, events, calls, kind)
    duration = trace.events["duration_ps"][rows]
    share = _shares(duration, code, len(events))
    uses = _uses_tensor_cores(trace, rows)
    on_tensor_cores = np.bincount(code[uses], minlength=len(events)) > 0
    roof_flops = flops * _factors(trace, calls, kind, on_tensor_cores)
    machine = hardware(trace)
    flops_excess, bytes_excess = (
        _excess(np.bincount(kind, amount, len(calls.name)).astype(np.float64), kind[code], duration, peak)
        for amount, peak in (
            (roof_flops, machine.peak_flops_per_s),
            (n_bytes, machine.peak_hbm_bytes_per_s),
        )
    )
    flops_part, roof_part, bytes_part = (
        np.where(excess > 0, np.nan, amount[code] * share)
        for amount, excess in ((flops, flops_excess), (roof_flops, flops_excess), (n_bytes, bytes_excess))
    )
    return KernelWork(
        rows,
        launched_by,
        kind[code],
        flops_part,
        bytes_part,
        roof_part,
        flops_excess,
        bytes_excess,
        calls,
    )


def _excess(counted: Floats, kind: Int64s, duration: Int64s, peak: float) -> Floats:
    """For each kernel, the excess of what was counted for all calls of its kind over their time."""
    seconds = np.bincount(kind, duration, len(counted)) / 1e12
    return excess_of(counted, seconds, peak)[kind]


def call_work(trace: Trace, events: Int64s, calls: Calls, kind: Int64s) -> tuple[Floats, Floats]:
    """FLOPs and bytes of calls (events, ascending; `kind`: their rows of `calls`), NaN where unknown and for
    calls within which another one states products.
    """
    flops, n_bytes = calls.flops[kind], calls.n_bytes[kind]
    is_around = _around_products(trace, events, calls.has_products[kind] & np.isfinite(flops))
    flops[is_around], n_bytes[is_around] = np.nan, np.nan
    return flops, n_bytes


def _is_of_graph(trace: Trace, rows: npt.NDArray[np.int32]) -> Bools:
    """Whether each kernel was launched as a part of a graph."""
    name = trace.event_stats.texts_at("tf_op", rows)
    graphs = [i for i in np.unique(name).tolist() if i >= 0 and is_graph_launch(trace.strings[i])]
    return np.isin(name, graphs)


def _around_products(trace: Trace, events: Int64s, states_products: Bools) -> Bools:
    """Which of the calls (events, ascending) contain another one that states products."""
    parent, _ = nest_rows(trace, events.astype(np.intp))
    is_around = np.zeros(len(events), np.bool_)
    above = np.unique(parent[states_products])
    while len(above := above[above >= 0]):
        above = above[~is_around[above]]
        is_around[above] = True
        above = np.unique(parent[above])
    return is_around


def _shares(duration: Int64s, code: Int64s, n: int) -> Floats:
    """Each kernel's part of the time of its call's kernels; equal parts where all take 0 ps."""
    total = np.bincount(code, duration, n)
    weight = np.where(total[code] > 0, duration, 1).astype(np.float64)
    shares: Floats = weight / np.bincount(code, weight, n)[code]
    return shares


def _uses_tensor_cores(trace: Trace, rows: Rows) -> Bools:
    name, code = np.unique(trace.metadata["name"][trace.events["metadata"][rows]], return_inverse=True)
    uses = np.array([uses_tensor_cores(trace.strings.get(i)) for i in name.tolist()], np.bool_)
    return uses[code.reshape(-1)]


def _factors(trace: Trace, calls: Calls, kind: Int64s, on_tensor_cores: Bools) -> Floats:
    """For each call, the peak rate at 16 bits ÷ the peak rate at its precision; 1 where that is unknown."""
    machine = hardware(trace)
    is_amd = machine.title.startswith(("AMD", "MI", "gfx"))
    types, code = np.unique(np.array(["", *calls.dtype], np.str_), return_inverse=True)
    table = np.ones((2, len(types)))
    for with_tensor_cores in (0, 1):
        for i, dtype in enumerate(types.tolist()):
            precision = precision_of(dtype, bool(with_tensor_cores), is_amd)
            table[with_tensor_cores, i] = 1 / relative_peak(machine.title, precision)
    return table[on_tensor_cores.astype(np.intp), code.reshape(-1)[1:][kind]]
