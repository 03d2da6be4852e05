"""The tables of the communication page: steps, operations, devices, and the boxes of one step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tb_tpuprof.analysis.comm.activity import CommOp, Traffic
from tb_tpuprof.analysis.comm.join import Comm, OpTimes
from tb_tpuprof.analysis.comm.picture import Boxes
from tb_tpuprof.analysis.device.attainable import known_share
from tb_tpuprof.analysis.pod.collectives import Collective
from tb_tpuprof.tools.comm_costs import is_whole
from tb_tpuprof.tools.communication import declared
from tb_tpuprof.tools.core_names import core_name, unit_of
from tb_tpuprof.tools.payload import Table
from tb_tpuprof.tools.spec import known_texts
from tb_tpuprof.units import counted

TRAFFIC_TEXTS = {
    Traffic.DEVICES: "between devices",
    Traffic.HOST: "to or from the host",
    Traffic.LOCAL: "within the device",
}
_LOWER_BOUND = "bandwidth is a lower bound: from its start to its done"
_MISCOUNTED = "bandwidth unknown: the size and the time give more than the device's memory carries"
_OF_CAPTURE = {"exposed_fraction": "Share of capture"}


def device_name(comm: Comm, device: int) -> str:
    """The device's name as on the pod viewer; a CPU's device with its host."""
    if comm.pod.kind in ("TPU", "GPU"):
        return core_name(comm.pod, device)
    return f"{comm.hosts[int(comm.host_of[device])]} {comm.cores[device].name}"


def unit_word(comm: Comm) -> str:
    """The word for a device: core, GPU, rank, device."""
    return unit_of(comm.pod) if comm.pod.kind in ("TPU", "GPU") else "device"


def steps_table(comm: Comm) -> Table:
    """Each step as a mean over the devices."""
    hidden, partly, exposed = (
        times.sum(axis=2).mean(axis=0) for times in (comm.hidden_ps, comm.partly_ps, comm.exposed_ps)
    )
    step, compute = comm.total_ps.mean(axis=0), comm.compute_ps.mean(axis=0)
    return declared.STEPS.fill(
        {
            "step": comm.step_names,
            "step_ps": step,
            "compute_ps": compute - hidden,
            "hidden_ps": hidden - partly,
            "partly_ps": partly,
            "exposed_ps": exposed,
            "other_ps": step - compute - exposed,
            "waiting_ps": comm.waiting_ps.mean(axis=0),
            "best_ps": step - comm.gain_ps.mean(axis=0),
        },
        note=f"mean over {counted(len(comm.cores), unit_word(comm))}",
        title="The capture" if is_whole(comm) else "",
        titles={"step_ps": "Capture", "step": "Part"} if is_whole(comm) else {},
    )


def ops_table(comm: Comm, hbm_bytes_per_s: float = 0.0) -> Table:
    """The operations that move data, the most exposed first. `hbm_bytes_per_s`: peak of a device's memory, 0
    if unknown.
    """
    rows = comm.ops
    step_ps = float(comm.total_ps.mean()) or 1.0
    rates = [possible_rates(one, hbm_bytes_per_s) for one in rows]

    def numbers(values: Sequence[float | None]) -> np.ndarray:
        return np.array([np.nan if value is None else value for value in values], np.float64)

    exposed = numbers([one.exposed_ps for one in rows])
    per = "per capture" if is_whole(comm) else "per step"
    unit = unit_word(comm)
    base = (
        f"times of the capture, mean per {unit}" if is_whole(comm) else f"times are means per step and {unit}"
    )
    return declared.OPS.fill(
        {
            "op": [one.op.name for one in rows],
            "kind": [one.op.kind for one in rows],
            "traffic": [TRAFFIC_TEXTS[one.op.traffic] for one in rows],
            "group": known_texts([group_text(one.pod, unit_word(comm)) for one in rows]),
            "size_bytes": numbers([size_of(one) or None for one in rows]),
            "bytes_per_s": numbers([algorithm for algorithm, _ in rates]),
            "bus_bytes_per_s": numbers([bus for _, bus in rates]),
            "total_ps": numbers([one.total_ps for one in rows]),
            "hidden_ps": numbers([one.hidden_ps for one in rows]),
            "exposed_ps": exposed,
            "exposed_fraction": exposed / step_ps,
            "wait_ps": numbers(
                [one.pod.wait_ps if one.pod is not None and one.pod.is_wait_known else None for one in rows]
            ),
            "last": known_texts([last_name(comm, one.pod) for one in rows]),
            "last_fraction": numbers([_last_share(one.pod) for one in rows]),
            "elapsed_ps": numbers(
                [one.elapsed_ps / one.n_per_step if one.n_per_step else None for one in rows]
            ),
            "n_per_step": numbers([one.n_per_step for one in rows]),
            "n_hidden": numbers([one.n_runs[0] for one in rows]),
            "n_partly": numbers([one.n_runs[1] for one in rows]),
            "n_exposed": numbers([one.n_runs[2] for one in rows]),
            "remark": known_texts([_remark(one, rate) for one, (rate, _) in zip(rows, rates, strict=True)]),
        },
        base,
        titles={"n_per_step": f"Runs {per}"} | (_OF_CAPTURE if is_whole(comm) else {}),
    )


def possible_rates(one: OpTimes, hbm_bytes_per_s: float) -> tuple[float | None, float | None]:
    """Algorithm and bus bandwidth. A copy within a device reads and writes its memory, so more than half of
    the memory's peak is impossible: then both are unknown.
    """
    rates = one.bytes_per_s
    if one.op.traffic != Traffic.LOCAL or rates[0] is None or not hbm_bytes_per_s:
        return rates
    return rates if known_share(2 * rates[0], hbm_bytes_per_s) is not None else (None, None)


def size_of(one: OpTimes) -> int:
    """Bytes of one run on one device; 0 unknown."""
    return one.op.size_bytes if one.pod is None else one.pod.op.size_bytes


def group_text(collective: Collective | None, unit: str) -> str:
    """`all 16`, `4 × 4 cores`, `16 pairs`, or PyTorch's name of the group; empty if there is none."""
    if collective is None:
        return ""
    if collective.op.process_group:
        return collective.op.process_group
    if len(collective.op.pairs):
        return counted(len(collective.op.pairs), "pair")
    if collective.group_size < 2:
        return ""  # the only participant that was captured
    n_groups, size = collective.n_groups, collective.group_size
    return f"all {size:,}" if n_groups == 1 else f"{n_groups:,} × {counted(size, unit)}"


def last_name(comm: Comm, collective: Collective | None) -> str:
    """The device that most often arrives last at a collective; empty if none is seen to."""
    if collective is None or collective.last_core < 0:
        return ""
    return core_name(comm.pod, collective.last_core)


def _last_share(collective: Collective | None) -> float | None:
    return collective.last_fraction if collective is not None and collective.last_core >= 0 else None


def _remark(one: OpTimes, rate: float | None) -> str:
    """`rate`: the algorithm bandwidth that is shown."""
    collective = one.timed
    if collective is None:
        if one.bytes_per_s[0] and not rate:
            return _MISCOUNTED
        return _LOWER_BOUND if one.op.is_async and rate and one.hidden_ps else ""
    return collective.remark or (_LOWER_BOUND if one.op.is_async and rate else "")


def devices_table(comm: Comm) -> Table:
    """The devices, the most exposed first."""
    exposed = comm.exposed_ps.sum(axis=2).mean(axis=1)
    order = np.argsort(-exposed, kind="stable")
    total = comm.total_ps.mean(axis=1)
    return declared.DEVICES.fill(
        {
            "device": [device_name(comm, row) for row in order.tolist()],
            "host": [comm.hosts[int(comm.host_of[row])] for row in order.tolist()],
            "device_row": order.astype(np.float64),
            "step_ps": total[order],
            "compute_ps": comm.compute_ps.mean(axis=1)[order],
            "hidden_ps": comm.hidden_ps.sum(axis=2).mean(axis=1)[order],
            "exposed_ps": exposed[order],
            "waiting_ps": comm.waiting_ps.mean(axis=1)[order],
            "exposed_fraction": (exposed / np.maximum(total, 1))[order],
        },
        "of the whole capture" if is_whole(comm) else "mean of all steps",
        titles={"step_ps": "Capture"} | _OF_CAPTURE if is_whole(comm) else {},
    )


def boxes_table(boxes: Boxes, ops: Sequence[CommOp], title: str) -> Table:
    """A picture's boxes; `title` names the device and the step."""
    lanes = {-1: "Exposed", 0: "Compute"}
    note = f"{boxes.n_left_out:,} short runs are not drawn" if boxes.n_left_out else ""
    return declared.BOXES.fill(
        {
            "lane": [lanes.get(lane, f"Lane {lane}") for lane in boxes.lane.tolist()],
            "kind": list(boxes.kind),
            "op": known_texts([ops[code].name if code >= 0 else "" for code in boxes.op.tolist()]),
            "start_ps": boxes.start_ps.astype(np.float64),
            "duration_ps": boxes.duration_ps.astype(np.float64),
        },
        note,
        title=title,
    )
