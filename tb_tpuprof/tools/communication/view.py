"""communication: what each step pays for moving data: hidden and exposed communication by step, device and
operation.
"""

from __future__ import annotations

import numpy as np

from tb_tpuprof.analysis.comm.activity import Traffic
from tb_tpuprof.analysis.comm.host import comm_devices, comm_host
from tb_tpuprof.analysis.comm.join import Comm
from tb_tpuprof.analysis.comm.picture import picture
from tb_tpuprof.analysis.dcn.ops import transfers_between_slices
from tb_tpuprof.analysis.device.hardware import hardware
from tb_tpuprof.analysis.device.links import link_of
from tb_tpuprof.analysis.steps.clocks import clock_marks
from tb_tpuprof.analysis.steps.combine import sum_hardware
from tb_tpuprof.errors import BadParameter, ToolUnavailable
from tb_tpuprof.session import Session
from tb_tpuprof.tools.base import Availability, Params, Question
from tb_tpuprof.tools.clocks import Clocks, clocks_of
from tb_tpuprof.tools.comm_costs import EXPOSED_SHARE, Costs, exposed_share, is_whole, joined_comm
from tb_tpuprof.tools.communication import declared
from tb_tpuprof.tools.communication.sentences import verdict
from tb_tpuprof.tools.communication.tables import (
    boxes_table,
    device_name,
    devices_table,
    ops_table,
    steps_table,
    unit_word,
)
from tb_tpuprof.tools.payload import Diagnostic, Payload, Scalar
from tb_tpuprof.tools.spec import Number, fill_scalars
from tb_tpuprof.tools.tool import Tool
from tb_tpuprof.units import counted, format_fraction, format_time, format_value

_HOSTS_TO_CHECK = 4
_REASON = (
    "no device moved any data: the trace has no collective, send, receive, asynchronous copy or copy between "
    "memories in its steps."
)
_REMEDY = (
    "A job on one device that keeps its data there has no communication. Otherwise, capture the devices that "
    "communicate, for at least one step."
)
_BETWEEN_SLICES = "the devices exchange data only between slices, over the data center network."
_SLICES_PAGE = "The page Megascale stats shows these transfers and what they cost."
_APART = "the hosts' steps do not overlap in time."


def view(session: Session, hosts: tuple[str, ...], _params: Params) -> Payload:
    """Hidden and exposed communication of all devices of the chosen hosts."""
    comm, clocks = _comm(session, hosts)
    machine = sum_hardware(session.map(hardware, hosts))
    ops = ops_table(comm, machine.peak_hbm_bytes_per_s)
    tables = {"steps": steps_table(comm), "ops": ops, "devices": devices_table(comm)}
    diagnostics = (*clocks.diagnostics, *_diagnostics(comm, hosts))
    return Payload(TOOL.name, session.run, hosts, tables, _scalars(comm), verdict(comm), diagnostics)


def step_view(session: Session, hosts: tuple[str, ...], params: Params) -> Payload:
    """One step on one device as boxes. Raises BadParameter for a device or a step that does not exist."""
    comm, _clocks = _comm(session, hosts)
    device = _row(params, "device", len(comm.cores), "devices")
    step = _row(params, "step", len(comm.step_names), "steps")
    device = comm.shown[0] if device < 0 else device
    step = comm.median_step(device) if step < 0 else step
    host = int(comm.host_of[device])
    of_host = device - int(np.searchsorted(comm.host_of, host))
    devices = comm_devices(session.trace(comm.hosts[host]))
    row = comm.rows_of_host[host].start + step
    boxes = picture(devices, of_host, row)
    table = boxes_table(boxes, devices.ops, f"{_step_title(comm, step)} on {device_name(comm, device)}")
    scalars = fill_scalars(
        declared.PICTURE_SCALARS,
        {
            "device": device,
            "step": step,
            "begin_ps": int(devices.begin_ps[of_host, row]),
            "step_ps": int(devices.total_ps[of_host, row]),
            "n_left_out": boxes.n_left_out,
        },
    )
    return Payload(TOOL.name, session.run, hosts, {"boxes": table}, scalars)


def _step_title(comm: Comm, step: int) -> str:
    if is_whole(comm):
        return "The whole capture"
    name = comm.step_names[step]
    return name if "step" in name.lower() else f"Step {name}"


def _row(params: Params, name: str, n: int, what: str) -> int:
    row = int(params[name])
    if row >= n:
        raise BadParameter(name, row, f"less than the number of {what}, {n}")
    return row


def _comm(session: Session, hosts: tuple[str, ...]) -> tuple[Comm, Clocks]:
    """The communication of the hosts. Raises ToolUnavailable if nothing moves data in common steps."""
    parts = session.map(comm_host, hosts, hardware)  # before the clocks, so that each host is read once
    clocks = clocks_of(session, hosts)
    comm = joined_comm(session, parts, clocks)
    if not comm.has_traffic:
        is_apart = comm.pod.is_disjoint
        lacking = _without_traffic(session.subset(hosts))
        raise ToolUnavailable(
            TOOL.name,
            _APART if is_apart else lacking.reason,
            "Capture all hosts at the same time." if is_apart else lacking.remedy,
        )
    return comm, clocks


def _scalars(comm: Comm) -> dict[str, Scalar]:
    costs, unit = Costs(comm), unit_word(comm)
    whole = is_whole(comm)
    base = f"of the capture, mean per {unit}" if whole else f"of a step, mean per {unit}"
    exposed = comm.exposed_ps.sum(axis=2).mean(axis=0)
    least, most = format_time(float(exposed.min())), format_time(float(exposed.max()))
    span = "" if least == most else f" · {least} to {most}"
    n_runs = np.array([one.n_runs for one in comm.ops], np.int64).reshape(-1, 3)
    best = f"at best, instead of {format_time(costs.step_ps)}"
    numbers = fill_scalars(
        declared.SCALARS,
        {
            "n_devices_compared": Number(len(comm.cores), comm.pod.device),
            "n_shown_steps": Number(
                0 if whole else len(comm.step_names), "none are marked" if whole else "that all hosts have"
            ),
            "exposed_ps": Number(
                costs.exposed_ps, f"{format_fraction(costs.exposed_fraction)} {base.partition(',')[0]}{span}"
            ),
            "hidden_fraction": Number(
                costs.hidden_ps / costs.moved_ps,
                f"{format_time(costs.hidden_ps)} of {format_time(costs.moved_ps)} of communication",
            ),
            "hidden_ps": Number(costs.hidden_ps, base),
            **(
                {"capture_span_ps": Number(costs.step_ps, f"mean of {counted(len(comm.cores), unit)}")}
                if whole
                else {"step_ps": Number(costs.step_ps, f"mean of all steps and {unit}s")}
            ),
            "best_step_ps": Number(
                costs.step_ps - costs.gain_ps, best, "Capture if fully hidden" if whole else ""
            ),
            "gain_fraction": Number(costs.gain_fraction, "with all communication hidden"),
            "wait_ps": _wait(comm, costs.waiting_ps),
            "bus_bytes_per_s": _bus(comm),
            "exposed_devices_ps": Number(float(costs.by_traffic[Traffic.DEVICES]), base),
            "exposed_host_ps": Number(float(costs.by_traffic[Traffic.HOST]), base),
            "exposed_local_ps": Number(float(costs.by_traffic[Traffic.LOCAL]), base),
            "n_runs": Number(int(n_runs.sum()), "in the whole trace"),
            "n_exposed_runs": Number(int(n_runs[:, 2].sum()), "in the whole trace"),
        },
    )
    return {**numbers, EXPOSED_SHARE.name: exposed_share(comm)}


def _wait(comm: Comm, exposed_ps: float) -> Number:
    """Waiting in collectives as the pod viewer has it, who arrives last in the one that waits most, and how
    much of the exposed time is waiting where that differs.
    """
    if comm.pod_wait_ps is None:
        if comm.pod.collectives:
            return Number(None, "only one participant of each collective was captured")
        return Number(None)
    part = format_time(exposed_ps)
    exposed = "" if part == format_time(comm.pod_wait_ps) else f" · {part} of the exposed time"
    waits = max((one.pod for one in comm.ops if one.pod), key=lambda one: one.wait_ps, default=None)
    if waits is None or waits.last_core < 0:
        return Number(comm.pod_wait_ps, f"in collectives{exposed}")
    last = device_name(comm, waits.last_core)
    if len(comm.step_names) < 2:
        return Number(comm.pod_wait_ps, f"{last} arrives last{exposed}")
    share = format_fraction(waits.last_fraction)
    return Number(comm.pod_wait_ps, f"{last} is last in {share} of the steps{exposed}")


def _bus(comm: Comm) -> Number:
    """Bus bandwidth of the collectives whose size and group are known, weighted by their transfers' time."""
    rates, times = [], []
    for one in comm.ops:
        rate, collective = one.bytes_per_s[1], one.timed
        if rate is not None and collective is not None and one.op.traffic == Traffic.DEVICES:
            rates.append(rate)
            times.append(collective.transfer_ps)
    n_all = sum(one.op.traffic == Traffic.DEVICES for one in comm.ops)
    if not rates:
        return Number(None, "" if n_all else "nothing is exchanged between devices")
    mean = float(np.average(rates, weights=times))
    fastest = format_value(max(rates), "bytes_per_s")
    note = f"up to {fastest}; {len(rates):,} of {counted(n_all, 'collective')}"
    link = link_of(comm.pod.device)
    carries = f"; {link.name}: {format_value(link.bytes_per_s, 'bytes_per_s')} per direction" if link else ""
    return Number(mean, note + carries)


def _diagnostics(comm: Comm, hosts: tuple[str, ...]) -> tuple[Diagnostic, ...]:
    diagnostics = []
    left_out = [host for host in hosts if host not in comm.hosts]
    if left_out:
        names = ", ".join(left_out[:5]) + (" …" if len(left_out) > 5 else "")
        have = "has" if len(left_out) == 1 else "have"
        text = f"{len(left_out):,} of {len(hosts):,} hosts {have} no device in the others' steps: {names}."
        diagnostics.append(Diagnostic("info", text))
    if is_whole(comm):
        text = "The trace has no steps: the whole capture is shown, from the first operation to the last."
        diagnostics.append(Diagnostic("info", text))
    return tuple(diagnostics)


def available(session: Session) -> Availability:
    """Whether a device of one of the first hosts moves data in its steps."""
    for host in session.hosts[:_HOSTS_TO_CHECK]:
        part = session.get(comm_host, host)
        if part.exposed_ps.any() or part.hidden_ps.any():
            return Availability()
    return _without_traffic(session)


def _without_traffic(session: Session) -> Availability:
    if any(session.get(transfers_between_slices, host) for host in session.hosts[:_HOSTS_TO_CHECK]):
        return Availability(_BETWEEN_SLICES, _SLICES_PAGE, "only DCN")
    return Availability(_REASON, _REMEDY, "no traffic")


def badge(session: Session) -> str:
    """The exposed share of the steps, where it is known."""
    parts = session.known(comm_host, session.hosts)
    if not parts or (len(parts) > 1 and not session.known(clock_marks, session.hosts)):
        return ""
    comm = joined_comm(session, parts, clocks_of(session, session.hosts))
    share = Costs(comm).exposed_fraction if comm.has_traffic else 0.0
    return f"{share * 100:.0f}%" if share >= 0.005 else ""


TOOL = Tool(
    name="communication",
    title="Communication",
    group="Time",
    summary="How much communication compute hides, and what the exposed rest costs each step",
    view=view,
    available=available,
    badge=badge,
    tables=declared.PAGE_TABLES,
    scalars=declared.SCALARS,
    tiles=declared.TILES,
    questions=(
        Question(
            "step",
            "One step on one device: its compute, and the operations that move data, hidden or exposed",
            step_view,
            declared.PICTURE_PARAMS,
            (declared.BOXES,),
            declared.PICTURE_SCALARS,
        ),
    ),
)
