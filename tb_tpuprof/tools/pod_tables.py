"""The tables of the pod viewer: cores, steps, parts, cells of the heat map, stragglers, collectives, links."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.pod_join import Pod
from tb_tpuprof.analysis.pod_parts import PART_TEXTS, Part
from tb_tpuprof.analysis.pod_stragglers import Straggler
from tb_tpuprof.tools.base import Column, Table
from tb_tpuprof.tools.columns import text_column

Floats = npt.NDArray[np.float64]
OWN, TOTAL = "own", "total"
_DELAY_HELP = "How long the receiver was ready before the sender"
_OWN_HELP = "The step without waiting for others: in collectives, for data that others send, or idling while nobody waits for it"


def parts_table(pod: Pod) -> Table:
    """Mean time of each part over cores and steps; `column` names it in the other tables."""
    parts = pod.parts
    texts = [PART_TEXTS[part] for part in parts]
    mean = np.array([pod.part_ps[:, :, part].mean() for part in parts])
    whole = float(pod.total_ps.mean()) or 1.0
    return Table("What steps consist of", (
        text_column("column", "Column", [f"{text.name}_ps" for text in texts]),
        text_column("category", "Part", [text.title for text in texts]),
        text_column("color", "Colour", [text.color for text in texts]),
        Column("avg_ps", "Average", mean, "ps"),
        Column("fraction", "Share", mean / whole, "fraction"),
        text_column("meaning", "Meaning", [text.meaning for text in texts]),
    ))  # fmt: skip


def _part_columns(pod: Pod, axis: int, rows: slice) -> list[Column]:
    return [
        Column(
            f"{PART_TEXTS[part].name}_ps", PART_TEXTS[part].title, pod.part_ps[:, rows, part].mean(axis=axis), "ps",
            description=PART_TEXTS[part].meaning,
        )
        for part in pod.parts
    ]  # fmt: skip


def steps_table(pod: Pod) -> Table:
    """Each step: mean over the cores, and the longest own time of any."""
    own = pod.own_ps
    return Table("Step time", (
        text_column("step", "Step", pod.step_names),
        Column("step_ps", "Step time", pod.total_ps.mean(axis=0), "ps"),
        Column("max_own_ps", "Longest own time", own.max(axis=0), "ps"),
        text_column("slowest", "Longest on", [core_name(pod, int(core)) for core in own.argmax(axis=0)]),
        *_part_columns(pod, 0, slice(None)),
    ), note=f"mean of {_count(len(pod.cores), 'core')}")  # fmt: skip


def core_name(pod: Pod, core: int) -> str:
    """`host TPU:0`; the host alone where it is the core."""
    host, name = pod.hosts[int(pod.host_of[core])], pod.cores[core].name
    return host if name == host else f"{host} {name}"


def cores_table(pod: Pod, step: int) -> Table:
    """Each core in one step, -1 the mean of all steps."""
    rows = slice(None) if step < 0 else slice(step, step + 1)
    cores = pod.cores
    largest = pod.part_ps[:, rows].sum(axis=1).argmax(axis=1)
    whole, own = pod.total_ps[:, rows].mean(axis=1), pod.own_ps[:, rows].mean(axis=1)
    ids = {key: np.array([getattr(core, key) for core in cores], np.float64) for key in ("chip", "chip_id")}
    ids["chip_id"][ids["chip_id"] < 0] = np.nan
    return Table("Cores" if step < 0 else f"Cores in step {pod.step_names[step]}", (
        text_column("core", "Core", [core_name(pod, i) for i in range(len(cores))]),
        text_column("host", "Host", [pod.hosts[i] for i in pod.host_of.tolist()]),
        Column("chip", "Chip of host", ids["chip"], "id"),
        Column("chip_id", "Chip", ids["chip_id"], "id"),
        Column("device", "Device of program", pod.device_of.astype(np.float64), "id"),
        Column("total_ps", "Step time", whole, "ps"),
        Column("own_ps", "Own time", own, "ps", description=_OWN_HELP),
        text_column("bottleneck", "Largest part", [PART_TEXTS[Part(i)].title for i in largest.tolist()]),
        *_part_columns(pod, 1, rows),
    ), note="mean of all steps" if step < 0 else "")  # fmt: skip


def measures(pod: Pod) -> dict[str, str]:
    """What the heat map can show, by name, with titles."""
    return {OWN: "Own time", TOTAL: "Step time", **{PART_TEXTS[part].name: PART_TEXTS[part].title for part in pod.parts}}


def cells_table(pod: Pod, measure: str) -> Table:
    """One measure of every core in every step, core after core; single precision is enough for a colour."""
    part = next((part for part in Part if PART_TEXTS[part].name == measure), None)
    values = pod.own_ps if measure == OWN else pod.total_ps if part is None else pod.part_ps[:, :, part]
    return Table(measures(pod)[measure], (Column("value_ps", measures(pod)[measure], values.reshape(-1).astype(np.float32), "ps"),))


def stragglers_table(pod: Pod, found: Sequence[Straggler]) -> Table:
    """Who holds the others up, slowest first."""
    slow = [straggler.slow for straggler in found]
    names = [straggler.host if straggler.core < 0 else core_name(pod, straggler.core) for straggler in found]
    causes = [Column(f"{key}_ps", title, np.array([one.causes.get(key, 0.0) for one in slow]), "ps") for key, title in (
        ("compute", "Of it compute"), ("input", "Of it input"), ("network", "Of it network"), ("idle", "Of it idle"),
    )]  # fmt: skip
    return Table("Stragglers", (
        text_column("straggler", "Host or core", names),
        text_column("host", "Host", [straggler.host for straggler in found]),
        Column("core_row", "Core's row", np.array([straggler.core if straggler.core >= 0 else np.nan for straggler in found]), "id"),
        text_column("since", "Since step", [pod.step_names[one.since] for one in slow]),
        Column("excess_ps", "Slower by", np.array([one.excess_ps for one in slow]), "ps"),
        Column("excess_fraction", "Slower by", np.array([one.excess_fraction for one in slow]), "fraction"),
        text_column("cause", "In", [one.cause for one in slow]),
        Column("gain_ps", "Job's gain per step", np.array([straggler.gain_ps for straggler in found]), "ps"),
        Column("gain_fraction", "Job's gain", np.array([straggler.gain_fraction for straggler in found]), "fraction"),
        *causes,
    ), note="own time beside the median of the others, from that step on")  # fmt: skip


def collectives_table(pod: Pod) -> Table:
    """Operations that cores run together, longest first."""
    rows = pod.collectives
    size = np.array([one.op.size_bytes or np.nan for one in rows], np.float64)
    rate = np.array(
        [
            one.op.size_bytes / one.transfer_ps * 1e12 * max(one.n_per_step, 1) if one.transfer_ps and one.op.size_bytes else np.nan
            for one in rows
        ]
    )
    return Table("Collectives", (
        text_column("op", "Operation", [one.op.name for one in rows]),
        text_column("kind", "Kind", [one.op.kind for one in rows]),
        Column("transfer_ps", "Transfer per step", np.array([one.transfer_ps for one in rows]), "ps"),
        Column("wait_ps", "Waiting per step", np.array([one.wait_ps for one in rows]), "ps"),
        Column("n_per_step", "Times per step", np.array([one.n_per_step for one in rows]), "count"),
        Column("size_bytes", "Data", size, "bytes", description="The result on one device"),
        Column("bytes_per_s", "Data per transfer time", rate, "bytes_per_s"),
        Column("n_groups", "Groups", np.array([one.n_groups for one in rows]), "count"),
        Column("group_size", "Cores in a group", np.array([one.group_size for one in rows]), "count"),
        text_column("groups", "Replica groups", [_groups_text(one.groups) for one in rows]),
        text_column("groups_from", "Groups told by", [one.known_by.value for one in rows]),
        Column("channel_id", "Channel", np.array([one.op.channel_id or np.nan for one in rows], np.float64), "id"),
    ), note="mean over cores; the fastest participant's time is transfer, the rest is waiting")  # fmt: skip


def _groups_text(groups: Sequence[tuple[int, ...]], most: int = 40_000) -> str:
    text = ""
    for group in groups:
        text += "{" + ",".join(map(str, group)) + "} "
        if len(text) > most:
            return text[:most] + "…"
    return text.strip() or "all"


def channels_table(pod: Pod) -> Table:
    """Links between cores, the busiest first. `source_row` and `target_row` are rows of `cores`."""
    rows = pod.channels
    note = f"{pod.n_unplaced:,} more end on cores outside of these hosts" if pod.n_unplaced else ""
    return Table("Links between cores", (
        text_column("source", "From", [core_name(pod, one.source) for one in rows]),
        text_column("target", "To", [core_name(pod, one.target) for one in rows]),
        Column("size_bytes", "Data", np.array([one.size_bytes or np.nan for one in rows], np.float64), "bytes"),
        Column("latency_ps", "Latency", np.array([one.latency_ps for one in rows]), "ps"),
        Column("bytes_per_s", "Bandwidth", np.array([one.bytes_per_s or np.nan for one in rows], np.float64), "bytes_per_s"),
        Column("send_delay_ps", "Send delay", np.array([one.send_delay_ps for one in rows]), "ps", description=_DELAY_HELP),
        Column("n_per_step", "Times per step", np.array([one.n_per_step for one in rows]), "count"),
        text_column("ops", "Operations", [", ".join(one.ops) for one in rows]),
        Column("channel_id", "Channel", np.array([one.channel_id or np.nan for one in rows], np.float64), "id"),
        Column("source_row", "From row", np.array([one.source for one in rows], np.float64), "id"),
        Column("target_row", "To row", np.array([one.target for one in rows], np.float64), "id"),
    ), note=note)  # fmt: skip


def _count(n: int, word: str) -> str:
    return f"{n:,} {word}" + ("" if n == 1 else "s")
