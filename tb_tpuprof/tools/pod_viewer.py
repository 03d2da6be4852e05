"""pod_viewer: every core of every host beside the others: what its steps go into, who waits for whom, and who holds all up."""

from __future__ import annotations

from threading import Lock
from weakref import WeakKeyDictionary

import numpy as np

from tb_tpuprof.analysis.diagnostics import trace_notices
from tb_tpuprof.analysis.pod import WHOLE, PodHost, pod_host
from tb_tpuprof.analysis.pod_join import GroupsFrom, Pod, join
from tb_tpuprof.analysis.pod_parts import PART_TEXTS, Part
from tb_tpuprof.analysis.pod_stragglers import LEAST_EXCESS, MIN_STEPS, Straggler, stragglers
from tb_tpuprof.analysis.steps import steps
from tb_tpuprof.errors import BadParameter, ToolUnavailable
from tb_tpuprof.session import Session
from tb_tpuprof.tools.base import Availability, Diagnostic, NextStep, Param, Params, Payload, Scalar, Table, Tool, Verdict
from tb_tpuprof.tools.clocks import Clocks, clocks_of
from tb_tpuprof.tools.pod_tables import (
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
from tb_tpuprof.units import format_fraction, format_time

_HOSTS_TO_ASK = 4
_MUCH_WAITING = 0.1
_REASON = "the trace has no steps."
_REMEDY = (
    "Mark steps, with jax.profiler.StepTraceAnnotation or tf.profiler.experimental.Trace (Keras' TensorBoard callback does it), and "
    "capture for longer than one step."
)
_HLO_REMEDY = "Profile with HLO protos (JAX and TensorFlow have them on) to see groups and links as the program states them."
_CAUSE_WORDS = {"compute": "compute", "input": "input and output", "network": "sending data", "idle": "idling: its host keeps it waiting"}
_CAUSE_COLORS = {"compute": "compute", "input": "input", "network": "collective", "idle": "idle"}
_JOINED: WeakKeyDictionary[Session, tuple[list[PodHost], Pod, tuple[Straggler, ...]]] = WeakKeyDictionary()
_LOCK = Lock()


def view(session: Session, hosts: tuple[str, ...], params: Params) -> Payload:
    """All cores of the chosen hosts in the steps that all have."""
    parts = session.map(pod_host, hosts)  # before the clocks: what is asked of all hosts along with the first question is read once
    clocks = clocks_of(session, hosts)
    pod, found = _joined(session, parts, clocks)
    if not pod.step_names:
        reason = "the hosts' steps do not overlap in time." if pod.is_disjoint else _REASON
        raise ToolUnavailable(TOOL.name, reason, "Capture all hosts at the same time." if pod.is_disjoint else _REMEDY)
    step, measure = _step(pod, params), str(params["measure"])
    if measure not in measures(pod):
        raise BadParameter("measure", measure, f"one of {', '.join(measures(pod))}")
    tables: dict[str, Table] = {"cores": cores_table(pod, step)}
    if params["cells"]:
        tables["cells"] = cells_table(pod, measure)
    if params["overview"]:
        tables |= {
            "parts": parts_table(pod), "steps": steps_table(pod), "stragglers": stragglers_table(pod, found),
            "collectives": collectives_table(pod), "channels": channels_table(pod),
        }  # fmt: skip
    diagnostics = (*clocks.diagnostics, *_diagnostics(session, hosts, pod))
    return Payload(TOOL.name, session.run, hosts, tables, _scalars(pod, step), _verdict(pod, found), diagnostics)


def _joined(session: Session, parts: list[PodHost], clocks: Clocks) -> tuple[Pod, tuple[Straggler, ...]]:
    """The pod of these hosts, kept for the last choice, so that the step slider need not join hundreds of hosts again.

    The same results of analyses have the same clocks: both change with the file only.
    """
    with _LOCK:
        known = _JOINED.get(session)
        if known is None or len(known[0]) != len(parts) or any(a is not b for a, b in zip(known[0], parts, strict=True)):
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
    own = pod.own_ps[:, rows].mean(axis=1)
    wait = float(pod.part_ps[:, rows][:, :, [Part.COLLECTIVE_WAIT, Part.RECV]].sum(axis=2).mean()) / (total or 1.0)
    slowest, n_chips = int(own.argmax()), len({(host, core.chip) for host, core in zip(pod.host_of.tolist(), pod.cores, strict=True)})
    what = "mean of all steps" if step < 0 else f"step {pod.step_names[step]}"
    return {
        "n_hosts": Scalar(len(pod.hosts), "count", "Hosts"),
        "n_chips": Scalar(n_chips, "count", "Chips" if pod.kind == "TPU" else "Devices"),
        "n_cores": Scalar(len(pod.cores), "count", "Cores", pod.device),
        "n_steps": Scalar(len(pod.step_names), "count", "Steps", "that all hosts have"),
        "step_ps": Scalar(total, "ps", "Step time", f"{what}, mean of all cores"),
        "max_own_ps": Scalar(float(own[slowest]), "ps", "Longest own time", core_name(pod, slowest)),
        "median_own_ps": Scalar(float(np.median(own)), "ps", "Median own time", "step time without waiting for others"),
        "wait_fraction": Scalar(wait, "fraction", "Waiting for others", "in collectives and receiving"),
        "step": Scalar(step, "id", "Place of the step shown, -1 for the mean of all"),
    }


def _verdict(pod: Pod, found: tuple[Straggler, ...]) -> Verdict:
    """Who holds all up, or what the pod's time goes into."""
    n, unit = len(pod.hosts), "hosts" if len(pod.hosts) > 1 else "cores"
    n_units = n if n > 1 else len(pod.cores)
    mean = pod.part_ps.mean(axis=(0, 1))
    largest = Part(int(mean.argmax()))
    share = format_fraction(float(mean[largest]) / (float(pod.total_ps.mean()) or 1.0))
    goes = f"Of {format_time(float(pod.total_ps.mean()))} a step, the largest part is {PART_TEXTS[largest].title} with {share}."
    waits = float(mean[Part.COLLECTIVE_WAIT] + mean[Part.RECV]) / (float(pod.total_ps.mean()) or 1.0)
    details = [goes] + ([f"Cores wait for one another for {format_fraction(waits)} of their time."] if waits >= _MUCH_WAITING else [])
    if found:
        details += [straggler_text(pod, one) for one in found[1:4]]
        details += [f"{len(found) - 4:,} more are in the table."] if len(found) > 4 else []
        links = (NextStep("See what it does on the timeline", "trace_viewer", {"hosts": found[0].host}),)
        is_bad = found[0].gain_fraction >= LEAST_EXCESS
        return Verdict(
            "bad" if is_bad else "warn", straggler_text(pod, found[0]), _CAUSE_COLORS[found[0].slow.cause], tuple(details), links
        )
    if n_units < 2:
        return Verdict("unknown", f"One {unit[:-1]}: there is nobody to compare it with.", "", tuple(details))
    if len(pod.step_names) < MIN_STEPS:
        text = f"{n_units:,} {unit} share {_steps(len(pod.step_names))}; it takes {MIN_STEPS} steps to tell a straggler from chance."
        return Verdict("unknown", text, "", tuple(details))
    text = f"No straggler: none of {n_units:,} {unit} is lastingly slower than the others by {LEAST_EXCESS * 100:g} % or more."
    return Verdict("good", text, "", tuple(details))


def straggler_text(pod: Pod, one: Straggler) -> str:
    """One straggler in words."""
    slow, name = one.slow, one.host if one.core < 0 else core_name(pod, one.core)
    since = "" if slow.since == 0 else f" since step {pod.step_names[slow.since]}"
    text = f"`{name}` is slower than the others by {format_fraction(slow.excess_fraction)} ({format_time(slow.excess_ps)} a step){since}, "
    text += f"mostly in {_CAUSE_WORDS[slow.cause]}. "
    if one.gain_fraction < 0.005:
        return text + "The job would gain next to nothing if it were like the median: others take as long."
    return (
        text + f"If it were like the median, the job would save {format_fraction(one.gain_fraction)} ({format_time(one.gain_ps)} a step)."
    )


def _diagnostics(session: Session, hosts: tuple[str, ...], pod: Pod) -> tuple[Diagnostic, ...]:
    notices = [notice for found in session.map(trace_notices, hosts) for notice in found]
    found = [Diagnostic(notice.severity, notice.message, notice.remedy) for notice in notices]
    left_out = [host for host in hosts if host not in pod.hosts]
    if left_out:
        names = ", ".join(left_out[:5]) + (" …" if len(left_out) > 5 else "")
        found.append(Diagnostic("info", f"{len(left_out):,} of {len(hosts):,} hosts have no part in the steps of the others: {names}."))
    if pod.step_names == (WHOLE,):
        found.append(Diagnostic("info", "The trace has no steps: the whole capture counts as one.", _REMEDY))
    unknown = [one for one in pod.collectives if one.known_by is not GroupsFrom.PROGRAM and len(pod.cores) > 1]
    if unknown:
        by_ends = sum(one.known_by is GroupsFrom.ENDS for one in unknown)
        text = f"The HLO of {len(unknown):,} of {len(pod.collectives):,} collectives is not in the trace: "
        text += f"groups of {by_ends:,} are told by which cores leave them together, the others count as one group of all."
        found.append(Diagnostic("info", text, _HLO_REMEDY))
    if len(pod.cores) > 1 and not pod.is_synchronous:
        text = "No collectives or transfers between cores were traced: steps count as independent of one another."
        found.append(Diagnostic("info", text))
    return tuple(found)


def _steps(n: int) -> str:
    return "1 step" if n == 1 else f"{n:,} steps"


def available(session: Session) -> Availability:
    """Whether one of the first hosts has steps or a TPU."""
    for host in session.hosts[:_HOSTS_TO_ASK]:
        if len(session.get(steps, host)) or len(session.get(pod_host, host).steps):
            return Availability()
    return Availability(_REASON, _REMEDY)


TOOL = Tool(
    name="pod_viewer",
    title="Pod viewer",
    group="Fleet",
    summary="Every core beside the others: where its steps go, who waits, who holds all up",
    view=view,
    available=available,
    params=(
        Param("step", "Step", "int", None, "Place of a step among those that all hosts have, from 0; absent: the mean of all"),
        Param("measure", "Measure", "text", OWN, f"What `cells` holds: {OWN}, {TOTAL}, or the name of a part such as collective_wait"),
        Param("cells", "Cells", "bool", False, "Whether to answer `cells`: the measure of every core in every step"),
        Param("overview", "Overview", "bool", True, "Whether to answer the tables that do not depend on the step"),
    ),
)
