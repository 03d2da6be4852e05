"""What the tools of compiled operations share: the operations of the chosen hosts, their roofs, and why there
may be none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.hlo.work import CUSTOM_CALL
from tb_tpuprof.analysis.ops.category_sentence import offload_wait_ps
from tb_tpuprof.analysis.ops.expressions import expressions
from tb_tpuprof.analysis.ops.hlo import hlo_ops, merge_hlo_ops
from tb_tpuprof.analysis.ops.hlo_record import HloOps
from tb_tpuprof.analysis.ops.roof_excess import excess_notices, excesses
from tb_tpuprof.analysis.ops.roofline import Roofs, first_roofs, roofs
from tb_tpuprof.analysis.steps.diagnostics import trace_notices
from tb_tpuprof.errors import ToolUnavailable
from tb_tpuprof.session import Session
from tb_tpuprof.tools.base import Availability
from tb_tpuprof.tools.payload import Diagnostic
from tb_tpuprof.trace.trace import Trace
from tb_tpuprof.units import format_fraction

_HOSTS_TO_ASK = 4
_MATTERS = 0.001
REASON = "nothing in the trace names an operation that XLA compiled."
REMEDY = (
    "Capture while a program compiled by XLA runs: jax.jit, tf.function(jit_compile=True), PyTorch/XLA. "
    "What TensorFlow runs without XLA is on the page of framework operations."
)
_NO_PEAKS_CPU = "A CPU states no peak rates, so shares of a peak are unknown; rates are shown."
_NO_PEAKS = "Peak rates of the device are unknown, so shares of a peak are unknown; rates are shown."


@dataclass(frozen=True)
class Found:
    """Operations of the chosen hosts together, the roofs of one device, and the time spent waiting for
    transfers with the host.
    """

    ops: HloOps
    roofs: Roofs
    hosts: tuple[str, ...]
    offload_ps: int = 0


def find_ops(
    session: Session, hosts: tuple[str, ...], tool: str, *with_them: Callable[[Trace], Any]
) -> Found:
    """The operations of the hosts, read once for the analyses `with_them` too. Raises ToolUnavailable where
    there are none.
    """
    ops = merge_hlo_ops(session.map(hlo_ops, hosts, roofs, offload_wait_ps, *with_them))
    if not len(ops):
        raise ToolUnavailable(tool, REASON, REMEDY)
    return Found(ops, first_roofs(session.map(roofs, hosts)), hosts, sum(session.map(offload_wait_ps, hosts)))


def expression_texts(session: Session, found: Found, rows: npt.NDArray[np.intp]) -> list[str]:
    """HLO text of some operations, each from the trace of its host."""
    result = [""] * len(rows)
    for i, host in enumerate(found.hosts):
        mine = np.flatnonzero(found.ops.host[rows] == i)
        if len(mine):
            for place, text in zip(
                mine.tolist(), expressions(session.trace(host), found.ops, rows[mine]), strict=True
            ):
                result[place] = text
    return result


def diagnostics_of(session: Session, found: Found) -> tuple[Diagnostic, ...]:
    """What to know of the traces, of the peaks, and of operations whose work nobody tells."""
    notices = [notice for notices in session.map(trace_notices, found.hosts) for notice in notices]
    result = [Diagnostic(notice.severity, notice.message, notice.remedy) for notice in notices]
    ops = found.ops
    if not found.roofs.is_known:
        text = _NO_PEAKS_CPU if ops.kind == "CPU" else _NO_PEAKS
        result.append(
            Diagnostic(
                "info",
                text,
                "A file of your own can state them: set TPUPROF_PEAKS." if ops.kind != "CPU" else "",
            )
        )
    for program, why in sorted(ops.unreadable.items()):
        title = ops.programs.get(program, str(program))
        result.append(
            Diagnostic(
                "warning",
                f"The HLO of {title} cannot be read: {why}",
                "Its operations have times, but no FLOPs and bytes.",
            )
        )
    result += _unknown_work(ops)
    result += [
        Diagnostic(n.severity, n.message, n.remedy)
        for n in excess_notices(excesses(ops, found.roofs), found.roofs)
    ]
    return tuple(result)


def _unknown_work(ops: HloOps) -> list[Diagnostic]:
    """That neither trace nor HLO states the work of operations that take a part of the time worth telling."""
    unknown = np.flatnonzero(~ops.work.is_known & ~ops.is_container)
    time = int(ops.self_ps[unknown].sum())
    if time < _MATTERS * (ops.busy_ps or 1):
        return []
    of_calls = int(ops.self_ps[unknown][ops.category.is_in((CUSTOM_CALL,))[unknown]].sum())
    share = format_fraction(time / (ops.busy_ps or 1))
    count = "1 operation" if len(unknown) == 1 else f"{len(unknown):,} operations"
    text = (
        f"{count} ({share} of the operations' time) {'has' if len(unknown) == 1 else 'have'} no FLOP or "
        "byte counts in trace or HLO"
    )
    text += ", most of them custom calls, such as Pallas or FFI kernels." if 2 * of_calls > time else "."
    remedy = (
        "Their FLOPs, bytes and rates are unknown and in no sum; sums over time include theirs, so "
        "rates of the whole are lower bounds."
    )
    if 2 * of_calls > time and ops.kind == "TPU":
        remedy += " In JAX, `pallas_call(…, cost_estimate=pl.CostEstimate(…))` states a kernel's work."
    return [Diagnostic("info", text, remedy)]


def available(session: Session) -> Availability:
    """Whether one of the first hosts names compiled operations."""
    if any(session.get(_names_any, host) for host in session.hosts[:_HOSTS_TO_ASK]):
        return Availability()
    return Availability(REASON, REMEDY)


def _names_any(trace: Trace) -> bool:
    """Whether events or their metadata name HLO operations."""
    return trace.event_stats.has("hlo_op") or trace.metadata_stats.has("symbol_id")
