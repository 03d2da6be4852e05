"""pod_viewer: the cores of all hosts compared: how their steps spend time, which ones wait, and which is
the straggler.
"""

from __future__ import annotations

import numpy as np

from tb_tpuprof.analysis.pod.collectives import GroupsFrom
from tb_tpuprof.analysis.pod.host import WHOLE, PodHost, pod_host
from tb_tpuprof.analysis.pod.join import Pod, join
from tb_tpuprof.analysis.pod.link_times import channel_steps, link_times, times_in_step
from tb_tpuprof.analysis.pod.parts import Part
from tb_tpuprof.analysis.pod.process_groups import process_groups, sum_process_groups
from tb_tpuprof.analysis.pod.stragglers import Straggler, stragglers
from tb_tpuprof.analysis.pod.topology import topology
from tb_tpuprof.analysis.steps.clocks import clock_marks
from tb_tpuprof.analysis.steps.diagnostics import annotate_remedy, trace_notices
from tb_tpuprof.analysis.steps.steps import steps
from tb_tpuprof.errors import BadParameter, ToolUnavailable
from tb_tpuprof.session import Session
from tb_tpuprof.tools.base import Availability, Params, Question
from tb_tpuprof.tools.clocks import Clocks, clocks_of
from tb_tpuprof.tools.core_names import core_name, unit_of
from tb_tpuprof.tools.facts import framework_of
from tb_tpuprof.tools.payload import Diagnostic, Payload, Scalar, Table
from tb_tpuprof.tools.pod_viewer import declared
from tb_tpuprof.tools.pod_viewer.channel_tables import (
    CHANNEL_PARAMS,
    CHANNEL_STEPS,
    channel_steps_table,
    channels_table,
)
from tb_tpuprof.tools.pod_viewer.sentences import apart_text, are_alike, verdict
from tb_tpuprof.tools.pod_viewer.tables import (
    cells_table,
    collectives_table,
    cores_table,
    measures,
    parts_table,
    process_groups_table,
    steps_table,
    stragglers_table,
)
from tb_tpuprof.tools.pod_viewer.topology_tables import topology_table
from tb_tpuprof.tools.spec import Number, fill_scalars
from tb_tpuprof.tools.tool import Tool
from tb_tpuprof.tools.verdicts import limits_of, with_limits

Numbers = dict[str, Number | float | None]
_HOSTS_TO_CHECK = 4
_REASON = "the trace has no steps and no accelerator that ran anything."
_LONGER = "Capture for longer than one step takes."
_GROUPS_REMEDY = "PyTorch 2.3 and later write each collective's process group and size into the trace."
_HLO_REMEDY = "Profile with HLO protos (the default) to see groups and links as defined by the program."


def view(session: Session, hosts: tuple[str, ...], params: Params) -> Payload:
    """All cores of the chosen hosts in the steps that all have."""
    pod, slow_ones, clocks = _pod(session, hosts)
    step, slice_of_pod = _step(pod, params), topology(pod)
    tables: dict[str, Table] = {
        "cores": cores_table(pod, slice_of_pod, step),
        "parts": parts_table(pod),
        **({} if pod.step_names == (WHOLE,) else {"steps": steps_table(pod)}),
        "stragglers": stragglers_table(pod, slow_ones),
        "collectives": collectives_table(pod),
        "channels": channels_table(pod, slice_of_pod),
        **topology_table(pod, slice_of_pod),
    }
    if groups := sum_process_groups(session.map(process_groups, hosts)):
        tables["process_groups"] = process_groups_table(groups)
    apart = clocks.diagnostics[
        clocks.n_apart if pod.apart else 0 :
    ]  # hosts that are left out are reported below, with the reason
    diagnostics = (*apart, *_diagnostics(session, hosts, pod))
    limits = None if pod.apart else limits_of(session, hosts)
    answer = with_limits(TOOL.name, verdict(pod, slow_ones, limits), limits, is_first=len(pod.cores) == 1)
    return Payload(TOOL.name, session.run, hosts, tables, _scalars(pod, step), answer, diagnostics)


def cores_view(session: Session, hosts: tuple[str, ...], params: Params) -> Payload:
    """The part of the answer that depends on the step: the cores and the numbers."""
    pod, _, _ = _pod(session, hosts)
    step = _step(pod, params)
    tables = {"cores": cores_table(pod, topology(pod), step)}
    return Payload(TOOL.name, session.run, hosts, tables, _scalars(pod, step))


def cells_view(session: Session, hosts: tuple[str, ...], params: Params) -> Payload:
    """One measure of every core in every step. Raises BadParameter for a measure that the pod does not
    have.
    """
    pod, _, _ = _pod(session, hosts)
    measure = str(params["measure"])
    if measure not in measures(pod):
        raise BadParameter("measure", measure, f"one of {', '.join(measures(pod))}")
    return Payload(TOOL.name, session.run, hosts, {"cells": cells_table(pod, measure)})


def channels_view(session: Session, hosts: tuple[str, ...], params: Params) -> Payload:
    """The channels in one step, or their means, in the order of the page's table."""
    pod, _, _ = _pod(session, hosts)
    step, in_step = _step(pod, params), None
    if step >= 0:
        in_step = step, times_in_step(pod, step, session.map(link_times, pod.hosts))
    tables = {"channels": channels_table(pod, topology(pod), in_step)}
    return Payload(TOOL.name, session.run, hosts, tables)


def channel_view(session: Session, hosts: tuple[str, ...], params: Params) -> Payload:
    """One channel step by step. Raises BadParameter for a row that the table does not have."""
    pod, _, _ = _pod(session, hosts)
    row = int(params["channel"])
    if row >= len(pod.channels):
        raise BadParameter("channel", row, f"less than the number of channels, {len(pod.channels):,}")
    channel = pod.channels[row]
    ends = [pod.hosts[int(pod.host_of[core])] for core in (channel.source, channel.target)]
    times = dict(zip(dict.fromkeys(ends), session.map(link_times, list(dict.fromkeys(ends))), strict=True))
    by_step = channel_steps(pod, channel, [times[host] for host in ends])
    return Payload(TOOL.name, session.run, hosts, {"channel_steps": channel_steps_table(pod, by_step)})


def _pod(session: Session, hosts: tuple[str, ...]) -> tuple[Pod, tuple[Straggler, ...], Clocks]:
    """The pod of the hosts, its stragglers, and the hosts' clocks. Raises ToolUnavailable if nothing ran."""
    parts = session.map(pod_host, hosts, process_groups)  # before the clocks, so that each host is read once
    clocks = clocks_of(session, hosts)
    pod, slow_ones = _joined(session, parts, clocks)
    if not pod.step_names:
        reason = "the hosts' steps do not overlap in time." if pod.is_disjoint else _REASON
        raise ToolUnavailable(
            TOOL.name,
            reason,
            "Capture all hosts at the same time." if pod.is_disjoint else _remedy(session, hosts),
        )
    return pod, slow_ones, clocks


def _joined(session: Session, parts: list[PodHost], clocks: Clocks) -> tuple[Pod, tuple[Straggler, ...]]:
    """The pod of these hosts. The last one is kept, so that the step slider need not join hundreds of hosts
    again. Equal results imply equal clocks: both change only with the file.
    """

    def joined() -> tuple[Pod, tuple[Straggler, ...]]:
        pod = join(parts, clocks.correction_ns)
        return pod, stragglers(pod)

    return session.joined.get("pod", parts, joined)


def _step(pod: Pod, params: Params) -> int:
    """Row of the requested step, -1 for the mean of all."""
    step = int(params.get("step", -1))
    if step >= len(pod.step_names):
        raise BadParameter("step", step, f"less than the number of steps, {len(pod.step_names)}")
    return step


def _scalars(pod: Pod, step: int) -> dict[str, Scalar]:
    rows = slice(None) if step < 0 else slice(step, step + 1)
    total = float(pod.total_ps[:, rows].mean())
    job = pod.job_ps() if step < 0 else float(pod.total_ps[:, rows].max())
    own_ps = pod.own_ps[:, rows].mean(axis=1)
    slowest, is_whole = int(own_ps.argmax()), pod.step_names == (WHOLE,)
    base = "mean of all steps" if step < 0 else f"step {pod.step_names[step]}"
    job_title, note = (
        ("Whole capture", _whole_note(pod))
        if is_whole
        else ("Job's step time", f"{base}, slowest {unit_of(pod)}")
    )
    if len(pod.cores) == 1 and not is_whole:
        job_title, note = "Step time", base
    # If hosts were captured at different times, the run as a whole has no steps, but the hosts shown do.
    n_steps = Number(
        0 if is_whole else len(pod.step_names), "none are marked" if is_whole else "that all hosts have"
    )
    numbers: Numbers = {
        "n_hosts": len(pod.hosts),
        **_counted(pod),
        "n_shown_steps" if pod.apart else "n_steps": n_steps,
        "job_step_ps": Number(job, note, job_title),
    }
    if len(pod.cores) > 1 and not is_whole:
        numbers["step_ps"] = Number(total, f"{base} and {unit_of(pod)}s")
    if pod.is_synchronous and pod.is_wait_known:
        numbers["max_own_ps"] = Number(float(own_ps[slowest]), core_name(pod, slowest))
        numbers["median_own_ps"] = Number(float(np.median(own_ps)), "without waiting for others")
    numbers |= _shares(pod, rows, total or 1.0)
    return fill_scalars(declared.SCALARS, {**numbers, "is_alike": are_alike(pod), "step": step})


def _whole_note(pod: Pod) -> str:
    return "from the first operation to the last" + (f" of any {unit_of(pod)}" if len(pod.cores) > 1 else "")


def _counted(pod: Pod) -> Numbers:
    """Devices present, and those that ran something in the steps, or in the capture if it has none."""
    n_cores, where = len(pod.cores), "the capture" if pod.step_names == (WHOLE,) else "these steps"
    if pod.kind == "TPU":
        chips = {(host, core.chip) for host, core in zip(pod.host_of.tolist(), pod.cores, strict=True)}
        return {"n_chips": len(chips), "n_cores": Number(n_cores, pod.device)}
    if pod.kind == "GPU":
        return {
            "n_chips": Number(pod.n_devices, pod.device, "GPUs present"),
            "n_cores": Number(n_cores, f"ran something in {where}", "GPUs active"),
        }
    return {"n_cores": Number(n_cores, f"each host counts as one: {pod.device}")}


def _shares(pod: Pod, rows: slice, total: float) -> Numbers:
    """Waiting and idling as shares of the step, each with its base."""

    def share(*parts: Part) -> float:
        return float(pod.part_ps[:, rows][:, :, list(parts)].sum(axis=2).mean()) / total

    unit = unit_of(pod)
    numbers: Numbers = {}
    if pod.collectives and not pod.is_wait_known:
        numbers["wait_fraction"] = Number(None, "only one participant of each collective was captured")
    elif pod.is_synchronous:
        waits = share(Part.COLLECTIVE_WAIT, Part.RECV)
        numbers["wait_fraction"] = Number(waits, "in collectives and receives")
    if pod.part_ps[:, :, Part.COPY_WAIT].any():
        numbers["copy_wait_fraction"] = Number(share(Part.COPY_WAIT), f"asynchronous copies, mean per {unit}")
    numbers["idle_fraction"] = Number(share(Part.IDLE), f"mean per {unit}; traced waits are separate parts")
    if pod.kind != "CPU" and len(pod.cores) > len(pod.hosts):
        idle = float(pod.all_idle_ps[rows].mean()) / (float(pod.host_step_ps[rows].mean()) or 1.0)
        numbers["all_idle_fraction"] = Number(idle, f"nothing runs on any {unit} of a host")
    return numbers


def _diagnostics(session: Session, hosts: tuple[str, ...], pod: Pod) -> tuple[Diagnostic, ...]:
    notices = [notice for of_host in session.map(trace_notices, hosts) for notice in of_host]
    diagnostics = [Diagnostic(notice.severity, notice.message, notice.remedy) for notice in notices]
    if pod.apart:
        diagnostics.append(Diagnostic("warning", apart_text(pod, len(hosts)), "Choose hosts of one capture."))
    left_out = [host for host in hosts if host not in pod.hosts and host not in dict(pod.apart)]
    if left_out:
        names = ", ".join(left_out[:5]) + (" …" if len(left_out) > 5 else "")
        do = "does" if len(left_out) == 1 else "do"
        text = f"{len(left_out):,} of {len(hosts):,} hosts {do} not share the steps of the others: {names}."
        diagnostics.append(Diagnostic("info", text))
    if pod.step_names == (WHOLE,):
        diagnostics.append(
            Diagnostic("info", "The trace has no steps: the whole capture is shown.", _remedy(session, hosts))
        )
    ungrouped = [
        collective
        for collective in pod.collectives
        if collective.known_by in (GroupsFrom.ENDS, GroupsFrom.NOTHING) and len(pod.cores) > 1
    ]
    if ungrouped:
        by_ends = sum(collective.known_by is GroupsFrom.ENDS for collective in ungrouped)
        text = (
            f"The trace does not say which cores run {len(ungrouped):,} of {len(pod.collectives):,} "
            "collectives "
            "together: "
        )
        text += (
            f"for {by_ends:,}, groups are inferred from which cores finish together; the rest are "
            "treated as one group of all."
        )
        diagnostics.append(
            Diagnostic(
                "info",
                text,
                _GROUPS_REMEDY
                if any(collective.op.ordinal >= 0 for collective in ungrouped)
                else _HLO_REMEDY,
            )
        )
    return tuple(diagnostics)


def available(session: Session) -> Availability:
    """Whether one of the first hosts has steps or an accelerator that ran something."""
    for host in session.hosts[:_HOSTS_TO_CHECK]:
        if len(session.get(steps, host)) or len(session.get(pod_host, host).steps):
            return Availability()
    return Availability(_REASON, _remedy(session, session.hosts[:_HOSTS_TO_CHECK]), "no steps")


def badge(session: Session) -> str:
    """How many hosts or cores hold the job up, where the pod is known."""
    parts = session.known(pod_host, session.hosts)
    if not parts or (len(parts) > 1 and not session.known(clock_marks, session.hosts)):
        return ""
    pod, slow_ones = _joined(session, parts, clocks_of(session, session.hosts))
    return f"{len(slow_ones)} slow" if pod.step_names and slow_ones else ""


def _remedy(session: Session, hosts: tuple[str, ...]) -> str:
    """How to mark steps in the job's framework."""
    return f"{annotate_remedy(framework_of(session, hosts))} {_LONGER}"


TOOL = Tool(
    name="pod_viewer",
    title="Pod viewer",
    group="Fleet",
    summary="Cores compared: how they spend step time, which ones wait, and which is the straggler",
    view=view,
    available=available,
    badge=badge,
    params=declared.PAGE_PARAMS,
    tables=declared.PAGE_TABLES,
    scalars=declared.SCALARS,
    tiles=declared.TILES,
    questions=(
        Question(
            "cores",
            "The cores in one step, and the numbers of that step",
            cores_view,
            declared.CORES_PARAMS,
            (declared.CORES,),
            declared.SCALARS,
        ),
        Question(
            "cells",
            "One measure of every core in every step, for the heat map",
            cells_view,
            declared.CELLS_PARAMS,
            (declared.CELLS,),
        ),
        Question(
            "channels",
            "The channels in one step",
            channels_view,
            declared.CORES_PARAMS,
            (declared.CHANNELS,),
        ),
        Question(
            "channel",
            "One channel in every step",
            channel_view,
            CHANNEL_PARAMS,
            (CHANNEL_STEPS,),
        ),
    ),
)
