"""Shared by the tools of compiled operations: the operations of the chosen hosts, their roofs, and why
there may be none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.hlo.work import CUSTOM_CALL
from tb_tpuprof.analysis.ops.category_sentence import offload_wait_ps
from tb_tpuprof.analysis.ops.device_ops import device_ops
from tb_tpuprof.analysis.ops.expressions import expressions
from tb_tpuprof.analysis.ops.hlo import hlo_ops, merge_hlo_ops
from tb_tpuprof.analysis.ops.hlo_record import HloOps
from tb_tpuprof.analysis.ops.roof_excess import excess_notices, roof_excesses
from tb_tpuprof.analysis.ops.roofline import Roofs, first_roofs, roofs
from tb_tpuprof.analysis.ops.torch_ops import has_torch_ops
from tb_tpuprof.analysis.steps.diagnostics import trace_notices
from tb_tpuprof.errors import ToolUnavailable
from tb_tpuprof.session import Session
from tb_tpuprof.tools.base import Availability
from tb_tpuprof.tools.payload import Diagnostic
from tb_tpuprof.trace.trace import Trace
from tb_tpuprof.units import counted, format_fraction

_HOSTS_TO_CHECK = 4
_MATTERS = 0.001
REASON = "the trace names no operation that XLA compiled."
REMEDY = (
    "Capture while a program compiled by XLA runs: jax.jit, tf.function(jit_compile=True), PyTorch/XLA. "
    "Operations that run without XLA are on the page Framework op stats."
)
TORCH_REASON = "the PyTorch profile does not contain the sizes of operators' inputs."
TORCH_REMEDY = (
    "Profile with torch.profiler.profile(record_shapes=True): FLOPs and bytes follow from the sizes."
)
_NO_PEAKS_CPU = "Peak rates of a CPU are unknown, so rates are shown without shares of a peak."
_NO_PEAKS = "Peak rates of the device are unknown, so rates are shown without shares of a peak."


@dataclass(frozen=True)
class CompiledOps:
    """Compiled operations of the chosen hosts, the roofs of one device, and the time spent waiting for
    transfers to or from the host.
    """

    ops: HloOps
    roofs: Roofs
    hosts: tuple[str, ...]
    offload_ps: int = 0


def find_ops(
    session: Session, hosts: tuple[str, ...], tool: str, *with_them: Callable[[Trace], Any]
) -> CompiledOps:
    """The operations of the hosts; the analyses `with_them` are computed in the same pass. Raises
    ToolUnavailable if there are none.
    """
    ops = merge_hlo_ops(session.map(hlo_ops, hosts, roofs, roof_excesses, offload_wait_ps, *with_them))
    if not len(ops):
        raise ToolUnavailable(tool, REASON, REMEDY)
    return _with_roofs(session, hosts, ops)


def find_device_ops(
    session: Session, hosts: tuple[str, ...], tool: str, *with_them: Callable[[Trace], Any]
) -> CompiledOps:
    """As `find_ops`, with PyTorch's operators where nothing was compiled by XLA."""
    ops = merge_hlo_ops(session.map(device_ops, hosts, roofs, roof_excesses, offload_wait_ps, *with_them))
    if not len(ops):
        lacking = device_ops_available(session.subset(hosts))
        raise ToolUnavailable(tool, lacking.reason or REASON, lacking.remedy or REMEDY)
    return _with_roofs(session, hosts, ops)


def _with_roofs(session: Session, hosts: tuple[str, ...], ops: HloOps) -> CompiledOps:
    return CompiledOps(
        ops, first_roofs(session.map(roofs, hosts)), hosts, sum(session.map(offload_wait_ps, hosts))
    )


def expression_texts(session: Session, compiled: CompiledOps, rows: npt.NDArray[np.intp]) -> list[str]:
    """HLO text of some operations, each from the trace of its host."""
    result = [""] * len(rows)
    for host_index, host in enumerate(compiled.hosts):
        positions = np.flatnonzero(compiled.ops.host[rows] == host_index)
        if len(positions):
            for position, text in zip(
                positions.tolist(),
                expressions(session.trace(host), compiled.ops, rows[positions]),
                strict=True,
            ):
                result[position] = text
    return result


def title_of(ops: HloOps, row: int) -> str:
    """An operation's name for sentences: with its program's, if several programs have one of that name."""
    programs = ops.program[ops.name.codes == ops.name.codes[row]]
    of_program = f" of `{ops.programs[int(ops.program[row])]}`" if len(np.unique(programs)) > 1 else ""
    return f"`{ops.name[row]}`{of_program}"


def every_op_tool(ops: HloOps) -> str:
    """The page that lists all operations of this kind."""
    return "hlo_stats" if ops.has_hlo else "framework_op_stats"


def diagnostics_of(session: Session, compiled: CompiledOps) -> tuple[Diagnostic, ...]:
    """Notices about the traces, the peaks, and operations whose work is unknown."""
    notices = [notice for notices in session.map(trace_notices, compiled.hosts) for notice in notices]
    result = [Diagnostic(notice.severity, notice.message, notice.remedy) for notice in notices]
    ops = compiled.ops
    if not compiled.roofs.is_known:
        text = _NO_PEAKS_CPU if ops.kind == "CPU" else _NO_PEAKS
        result.append(
            Diagnostic(
                "info",
                text,
                "You can specify them in a file: set TPUPROF_PEAKS." if ops.kind != "CPU" else "",
            )
        )
    for program, why in sorted(ops.unreadable.items()):
        title = ops.programs.get(program, str(program))
        result.append(
            Diagnostic(
                "warning",
                f"The HLO of {title} cannot be read: {why}",
                "Its operations have times, but no FLOPs or bytes.",
            )
        )
    result += _unknown_work(ops)
    excesses = [excess for of_host in session.map(roof_excesses, compiled.hosts) for excess in of_host]
    result += [Diagnostic(n.severity, n.message, n.remedy) for n in excess_notices(excesses, compiled.roofs)]
    return tuple(result)


def _unknown_work(ops: HloOps) -> list[Diagnostic]:
    """A notice if operations with a notable share of the time have no work in trace or HLO."""
    unknown = np.flatnonzero(~ops.work.is_known & ~ops.is_container)
    time = int(ops.self_ps[unknown].sum())
    if not ops.has_hlo:
        return [_known_work(ops)]
    if time < _MATTERS * (ops.busy_ps or 1):
        return []
    of_calls = int(ops.self_ps[unknown][ops.category.is_in((CUSTOM_CALL,))[unknown]].sum())
    share = format_fraction(time / (ops.busy_ps or 1))
    have = "has" if len(unknown) == 1 else "have"
    text = (
        f"{counted(len(unknown), 'operation')} ({share} of the operations' time) {have} no FLOP or byte "
        "counts in trace or HLO"
    )
    text += ", most of them custom calls, such as Pallas or FFI kernels." if 2 * of_calls > time else "."
    remedy = (
        "Their FLOPs, bytes and rates are unknown and not included in sums, while their time is, so "
        "overall rates are lower bounds."
    )
    if 2 * of_calls > time and ops.kind == "TPU":
        remedy += " In JAX, `pallas_call(…, cost_estimate=pl.CostEstimate(…))` states a kernel's work."
    return [Diagnostic("info", text, remedy)]


def _known_work(ops: HloOps) -> Diagnostic:
    """How much of the kernels' time is spent in PyTorch's operators with known FLOPs and with known bytes."""
    with_flops, with_bytes = (
        format_fraction(float(ops.self_ps[knows].sum()) / (ops.busy_ps or 1))
        for knows in (ops.work.knows_flops, ops.work.knows_bytes)
    )
    return Diagnostic(
        "info",
        f"Of the kernels' time, {with_flops} is in operators with known FLOPs and {with_bytes} in operators "
        "with known bytes, computed from the sizes of their inputs.",
        "Both are unknown for kernels of CUDA graphs, custom and fused (Triton) operators, collectives, and "
        "lists of tensors. They are not included in sums, while their time is, so overall rates are lower "
        "bounds.",
    )


def device_ops_available(session: Session) -> Availability:
    """Whether one of the first hosts names compiled operations or states inputs of PyTorch's operators."""
    hosts = session.hosts[:_HOSTS_TO_CHECK]
    if any(session.get(_has_device_ops, host) for host in hosts):
        return Availability()
    if any(session.get(_is_torch_on_gpus, host) for host in hosts):
        return Availability(TORCH_REASON, TORCH_REMEDY, "no shapes")
    return Availability(REASON, REMEDY, "no XLA ops")


def _has_device_ops(trace: Trace) -> bool:
    return _names_any(trace) or has_torch_ops(trace)


def _is_torch_on_gpus(trace: Trace) -> bool:
    return trace.event_stats.has("launched_by")


def available(session: Session) -> Availability:
    """Whether one of the first hosts names compiled operations."""
    if any(session.get(_names_any, host) for host in session.hosts[:_HOSTS_TO_CHECK]):
        return Availability()
    return Availability(REASON, REMEDY, "no XLA ops")


def _names_any(trace: Trace) -> bool:
    """Whether events or their metadata name HLO operations."""
    return trace.event_stats.has("hlo_op") or trace.metadata_stats.has("symbol_id")
