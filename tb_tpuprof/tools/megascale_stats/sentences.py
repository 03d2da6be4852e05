"""Transfers between slices as sentences: what they cost, which one costs most, and why."""

from __future__ import annotations

from typing import Literal

import numpy as np

from tb_tpuprof.analysis.dcn.ops import Half
from tb_tpuprof.analysis.dcn.summary import Summary
from tb_tpuprof.tools.payload import NextStep, Subject, Verdict
from tb_tpuprof.units import format_fraction, format_time, format_value

Level = Literal["good", "warn", "bad", "unknown"]
_BAD, _WARN = 0.1, 0.02
_UNEVEN = 1.5
_WHY = {
    Half.SEND: "handing the data to the host (send)",
    Half.SEND_DONE: "waiting until the data is sent (send-done)",
    Half.RECV: "handing an empty buffer to the host (recv)",
    Half.RECV_DONE: "waiting for the data (recv-done)",
}


def verdict(total: Summary, where: dict[str, str]) -> Verdict:
    """What transfers cost, and the rendezvous that costs most. `where`: the part of the timeline with its
    longest transfer.
    """
    share = total.stall_fraction
    if not total.rendezvous:
        text = "No transfer between slices completed: their sends and receives are not all in the trace."
        return Verdict("unknown", text, "collective")
    name, of_all = total.rendezvous[0].name, float(total.total_stall_ps.sum())
    part = float(total.total_stall_ps[0]) / of_all if of_all else 0.0
    text = f"Transfers between slices stall the TPUs for {format_fraction(share)} of their time"
    text += f", {format_fraction(part)} of it in `{name}`." if of_all else "."
    stall = float(total.stall_ps[0].sum())
    subject = Subject("rendezvous", "rendezvous", name, {"total_stall_ps": float(total.total_stall_ps[0])})
    links = (NextStep("See its longest transfer on the timeline", "trace_viewer", where),) if where else ()
    details = (*_worst_text(total, stall), *_bandwidth_text(total), *_uneven_text(total))
    level: Level = "bad" if share >= _BAD else "warn" if share >= _WARN else "good"
    return Verdict(level, text, "collective", details, links, (subject,))


def _worst_text(total: Summary, stall: float) -> tuple[str, ...]:
    """How long the first rendezvous stalls a core each time, and in which operation."""
    if not stall:
        return ()
    longest = Half(int(total.stall_ps[0].argmax()))
    one = total.rendezvous[0]
    kind = f" ({one.transfer_type})" if one.transfer_type else ""
    return (
        f"`{one.name}`{kind} stalls a core for {format_time(stall)} each time, "
        f"{format_fraction(float(total.stall_ps[0, longest]) / stall)} of it {_WHY[longest]}.",
    )


def _bandwidth_text(total: Summary) -> tuple[str, ...]:
    """The bandwidth that the first rendezvous needs."""
    size, required = float(total.network_bytes[0]), float(total.required_bytes_per_s[0])
    if np.isnan(size):
        return ()
    if not np.isfinite(required):
        return (
            "It has no slack: its recv-done follows its send without other work in between, so the whole "
            "transfer stalls the core. Move work that does not need the data in between.",
        )
    cores = int(total.most_on_host[0])
    per_host = (
        f", {format_value(required * cores, 'bytes_per_s')} for the {cores} cores of a host"
        if cores > 1
        else ""
    )
    slack = format_time(float(total.slack_ps[0]))
    return (
        f"To send {format_value(size, 'bytes')} within its slack of {slack}, a core needs "
        f"{format_value(required, 'bytes_per_s')}{per_host}. If the network delivers less, send less or "
        "schedule more work between send and recv-done.",
    )


def _uneven_text(total: Summary) -> tuple[str, ...]:
    """The host that waits much longer than the others."""
    per_core = total.host_stall_ps.sum(axis=1) / np.maximum(total.host_cores, 1)
    if len(per_core) < 2:
        return ()
    worst = int(per_core.argmax())
    others = float(np.median(np.delete(per_core, worst)))
    if per_core[worst] < _UNEVEN * others or not per_core[worst]:
        return ()
    return (
        f"`{total.hosts[worst]}` is stalled longest: {format_time(float(per_core[worst]))} per core, the "
        f"median of the others is {format_time(others)}.",
    )
