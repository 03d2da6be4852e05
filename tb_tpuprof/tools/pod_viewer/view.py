"""pod_viewer: every core of every host beside the others: what its steps go into, who waits for whom, and who
holds all up.
"""

from __future__ import annotations

from threading import Lock
from weakref import WeakKeyDictionary

import numpy as np

from tb_tpuprof.analysis.pod.collectives import GroupsFrom
from tb_tpuprof.analysis.pod.host import WHOLE, PodHost, pod_host
from tb_tpuprof.analysis.pod.join import Pod, join
from tb_tpuprof.analysis.pod.parts import Part
from tb_tpuprof.analysis.pod.stragglers import Straggler, stragglers
from tb_tpuprof.analysis.steps.diagnostics import annotate_remedy, trace_notices
from tb_tpuprof.analysis.steps.steps import steps
from tb_tpuprof.errors import BadParameter, ToolUnavailable
from tb_tpuprof.session import Session
from tb_tpuprof.tools.base import Availability, Param, Params
from tb_tpuprof.tools.clocks import Clocks, clocks_of
from tb_tpuprof.tools.facts import framework_of
from tb_tpuprof.tools.payload import Diagnostic, Payload, Scalar, Table
from tb_tpuprof.tools.pod_viewer.sentences import apart_text, verdict
from tb_tpuprof.tools.pod_viewer.tables import (
    OWN,
    TOTAL,
    cells_table,
    channels_table,
    collectives_table,
    core_name,
    cores_table,
    measures,
    parts_table,
    steps_table,
    stragglers_table,
)  # fmt: skip
from tb_tpuprof.tools.tool import Tool
from tb_tpuprof.tools.verdicts import limits_of, told

_HOSTS_TO_ASK = 4
_REASON = "the trace has no steps, and no accelerator that ran anything."
_LONGER = "Capture for longer than one step takes."
_GROUPS_REMEDY = "PyTorch 2.3 and later write each collective's process group and size into the trace."
_HLO_REMEDY = "Profile with HLO protos (the default) to see groups and links as the program states them."
_JOINED: WeakKeyDictionary[Session, tuple[list[PodHost], Pod, tuple[Straggler, ...]]] = WeakKeyDictionary()
_LOCK = Lock()


def view(session: Session, hosts: tuple[str, ...], params: Params) -> Payload:
    """All cores of the chosen hosts in the steps that all have."""
    parts = session.map(
        pod_host, hosts
    )  # before the clocks: what is asked of all hosts along with the first question is read once
    clocks = clocks_of(session, hosts)
    pod, found = _joined(session, parts, clocks)
    if not pod.step_names:
        reason = "the hosts' steps do not overlap in time." if pod.is_disjoint else _REASON
        raise ToolUnavailable(
            TOOL.name,
            reason,
            "Capture all hosts at the same time." if pod.is_disjoint else _remedy(session, hosts),
        )
    step, measure = _step(pod, params), str(params["measure"])
    if measure not in measures(pod):
        raise BadParameter("measure", measure, f"one of {', '.join(measures(pod))}")
    tables: dict[str, Table] = {"cores": cores_table(pod, step)}
    if params["cells"]:
        tables["cells"] = cells_table(pod, measure)
    if params["overview"]:
        tables |= {
            "parts": parts_table(pod),
            "steps": steps_table(pod),
            "stragglers": stragglers_table(pod, found),
        }
        tables |= {"collectives": collectives_table(pod), "channels": channels_table(pod)}
    if pod.step_names == (WHOLE,):
        tables.pop("steps", None)
    apart = clocks.diagnostics[
        clocks.n_apart if pod.apart else 0 :
    ]  # who is left out is told below, with the reason
    diagnostics = (*apart, *_diagnostics(session, hosts, pod))
    limits = None if pod.apart else limits_of(session, hosts)
    answer = told(TOOL.name, verdict(pod, found, limits), limits)
    return Payload(TOOL.name, session.run, hosts, tables, _scalars(pod, step), answer, diagnostics)


def _joined(session: Session, parts: list[PodHost], clocks: Clocks) -> tuple[Pod, tuple[Straggler, ...]]:
    """The pod of these hosts, kept for the last choice, so that the step slider need not join hundreds of
    hosts again.

    The same results of analyses have the same clocks: both change with the file only.
    """
    with _LOCK:
        known = _JOINED.get(session)
        if (
            known is None
            or len(known[0]) != len(parts)
            or any(a is not b for a, b in zip(known[0], parts, strict=True))
        ):
            pod = join(parts, clocks.correction_ns)
            known = _JOINED[session] = parts, pod, stragglers(pod)
        return known[1:]


def _step(pod: Pod, params: Params) -> int:
    """Row of the step that is asked for by its place, -1 for the mean of all."""
    step = int(params.get("step", -1))
    if step >= len(pod.step_names):
        raise BadParameter("step", step, f"less than the number of steps, {len(pod.step_names)}")
    return step


def _scalars(pod: Pod, step: int) -> dict[str, Scalar]:
    rows = slice(None) if step < 0 else slice(step, step + 1)
    total = float(pod.total_ps[:, rows].mean())
    job = pod.job_ps() if step < 0 else float(pod.total_ps[:, rows].max())
    own = pod.own_ps[:, rows].mean(axis=1)
    slowest, is_whole = int(own.argmax()), pod.step_names == (WHOLE,)
    what = "mean of all steps" if step < 0 else f"step {pod.step_names[step]}"
    job_title, note = (
        ("Whole capture", _whole_note(pod)) if is_whole else ("Job's step time", f"{what}, slowest core")
    )
    if len(pod.cores) == 1 and not is_whole:
        job_title, note = "Step time", what
    # Of hosts that were captured at different times the run as a whole has no steps; those that are shown do.
    name, title = ("n_shown_steps", "Steps of the hosts shown") if pod.apart else ("n_steps", "Steps")
    n_steps = Scalar(
        0 if is_whole else len(pod.step_names),
        "count",
        title,
        "none are marked" if is_whole else "that all hosts have",
    )
    found = {"n_hosts": Scalar(len(pod.hosts), "count", "Hosts"), **_counted(pod), name: n_steps}
    found["job_step_ps"] = Scalar(job, "ps", job_title, note)
    if len(pod.cores) > 1 and not is_whole:
        found["step_ps"] = Scalar(total, "ps", "Mean step time", f"{what} and cores")
    if pod.is_synchronous and pod.is_wait_known:
        found["max_own_ps"] = Scalar(float(own[slowest]), "ps", "Longest own time", core_name(pod, slowest))
        found["median_own_ps"] = Scalar(
            float(np.median(own)), "ps", "Median own time", "without waiting for others"
        )
    found |= _shares(pod, rows, total or 1.0)
    return found | {"step": Scalar(step, "id", "Place of the step shown, -1 for the mean of all")}


def _whole_note(pod: Pod) -> str:
    return "from the first operation to the last" + (" of any core" if len(pod.cores) > 1 else "")


def _counted(pod: Pod) -> dict[str, Scalar]:
    """Devices that are there, and those that ran something in the steps."""
    n_chips = len({(host, core.chip) for host, core in zip(pod.host_of.tolist(), pod.cores, strict=True)})
    if pod.kind == "TPU":
        return {
            "n_chips": Scalar(n_chips, "count", "Chips"),
            "n_cores": Scalar(len(pod.cores), "count", "Cores", pod.device),
        }
    if pod.kind == "GPU":
        active = Scalar(len(pod.cores), "count", "GPUs active", "ran something in these steps")
        return {"n_chips": Scalar(pod.n_devices, "count", "GPUs present", pod.device), "n_cores": active}
    return {"n_cores": Scalar(len(pod.cores), "count", "Cores", f"each host counts as one: {pod.device}")}


def _shares(pod: Pod, rows: slice, total: float) -> dict[str, Scalar]:
    """Waiting and idling as shares of the step, each with its base."""

    def share(*parts: Part) -> float:
        return float(pod.part_ps[:, rows][:, :, list(parts)].sum(axis=2).mean()) / total

    found = {}
    if pod.collectives and not pod.is_wait_known:
        found["wait_fraction"] = Scalar(
            None, "fraction", "Waiting for others", "unknown: one participant of each collective was captured"
        )
    elif pod.is_synchronous:
        waits = share(Part.COLLECTIVE_WAIT, Part.RECV)
        found["wait_fraction"] = Scalar(
            waits, "fraction", "Waiting for others", "in collectives and receiving"
        )
    if pod.part_ps[:, :, Part.COPY_WAIT].any():
        found["copy_wait_fraction"] = Scalar(
            share(Part.COPY_WAIT), "fraction", "Waiting for copies", "asynchronous ones, mean per core"
        )
    found["idle_fraction"] = Scalar(
        share(Part.IDLE),
        "fraction",
        "Idle or other",
        "mean per core; waits that were traced are parts of their own",
    )
    if pod.kind != "CPU" and len(pod.cores) > len(pod.hosts):
        idle = float(pod.all_idle_ps[rows].mean()) / (float(pod.host_step_ps[rows].mean()) or 1.0)
        found["all_idle_fraction"] = Scalar(
            idle, "fraction", "All idle at once", "nothing runs on any core of a host"
        )
    return found


def _diagnostics(session: Session, hosts: tuple[str, ...], pod: Pod) -> tuple[Diagnostic, ...]:
    notices = [notice for found in session.map(trace_notices, hosts) for notice in found]
    found = [Diagnostic(notice.severity, notice.message, notice.remedy) for notice in notices]
    if pod.apart:
        found.append(Diagnostic("warning", apart_text(pod, len(hosts)), "Choose hosts of one capture."))
    left_out = [host for host in hosts if host not in pod.hosts and host not in dict(pod.apart)]
    if left_out:
        names = ", ".join(left_out[:5]) + (" …" if len(left_out) > 5 else "")
        found.append(
            Diagnostic(
                "info",
                f"{len(left_out):,} of {len(hosts):,} hosts have no part in the steps of the others: "
                f"{names}.",
            )
        )
    if pod.step_names == (WHOLE,):
        found.append(
            Diagnostic("info", "The trace has no steps: the whole capture is shown.", _remedy(session, hosts))
        )
    unknown = [
        one
        for one in pod.collectives
        if one.known_by in (GroupsFrom.ENDS, GroupsFrom.NOTHING) and len(pod.cores) > 1
    ]
    if unknown:
        by_ends = sum(one.known_by is GroupsFrom.ENDS for one in unknown)
        text = (
            f"The trace does not state who runs {len(unknown):,} of {len(pod.collectives):,} collectives "
            "together: "
        )
        text += (
            f"for {by_ends:,}, groups are inferred from which cores finish together; the rest are "
            "treated as one group of all."
        )
        found.append(
            Diagnostic(
                "info", text, _GROUPS_REMEDY if any(one.op.ordinal >= 0 for one in unknown) else _HLO_REMEDY
            )
        )
    return tuple(found)


def available(session: Session) -> Availability:
    """Whether one of the first hosts has steps or an accelerator that ran something."""
    for host in session.hosts[:_HOSTS_TO_ASK]:
        if len(session.get(steps, host)) or len(session.get(pod_host, host).steps):
            return Availability()
    return Availability(_REASON, _remedy(session, session.hosts[:_HOSTS_TO_ASK]))


def _remedy(session: Session, hosts: tuple[str, ...]) -> str:
    """How to mark steps in the framework that the job is written in."""
    return f"{annotate_remedy(framework_of(session, hosts))} {_LONGER}"


TOOL = Tool(
    name="pod_viewer",
    title="Pod viewer",
    group="Fleet",
    summary="Cores compared: where step time goes, which wait, and which is the straggler",
    view=view,
    available=available,
    params=(
        Param(
            "step",
            "Step",
            "int",
            None,
            "Place of a step among those that all hosts have, from 0; absent: the mean of all",
        ),
        Param(
            "measure",
            "Measure",
            "text",
            OWN,
            f"What `cells` holds: {OWN}, {TOTAL}, or the name of a part such as collective_wait",
        ),
        Param(
            "cells",
            "Cells",
            "bool",
            False,
            "Whether to answer `cells`: the measure of every core in every step",
        ),
        Param(
            "overview",
            "Overview",
            "bool",
            True,
            "Whether to answer the tables that do not depend on the step",
        ),
    ),
)
