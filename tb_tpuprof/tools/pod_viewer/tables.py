"""The tables of the pod viewer: cores, steps, parts, cells of the heat map, stragglers,
collectives, links.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.pod.collectives import Collective
from tb_tpuprof.analysis.pod.host import WHOLE
from tb_tpuprof.analysis.pod.join import Pod
from tb_tpuprof.analysis.pod.parts import PART_TEXTS, Part, PartText
from tb_tpuprof.analysis.pod.stragglers import Straggler
from tb_tpuprof.tools.columns import text_column
from tb_tpuprof.tools.payload import Column, Table

Floats = npt.NDArray[np.float64]
OWN, TOTAL = "own", "total"
_MOST_PLACES = 4
_DELAY_HELP = "How long the receiver was ready before the sender"
_ALGORITHM_HELP = "Bytes of the larger side of one participant by the transfer time (nccl-tests: algbw)"
_SIZE_HELP = "The result on one device; of PyTorch the larger of a rank's input and output"
_BUS_HELP = (
    "What the links carry, comparable with their peak: algorithm bandwidth by 2(n-1)/n, (n-1)/n or 1 "
    "(nccl-tests: busbw)"
)
_OWN_HELP = (
    "The step without waiting for others: in collectives, for data that others send, or idling while nobody "
    "waits for it"
)


def part_text(pod: Pod, part: Part) -> PartText:
    """What a part is called in this pod: a collective of which one participant was captured has waiting in
    it.
    """
    text = PART_TEXTS[part]
    if part == Part.COLLECTIVE and pod.collectives and not pod.is_wait_known:
        return replace(
            text,
            title="Collectives",
            meaning="Transferring and waiting for others, which cannot be told apart here",
        )
    return text


def total_title(pod: Pod) -> str:
    """What the time that parts sum up to is called."""
    return "Whole capture" if pod.step_names == (WHOLE,) else "Step time"


def parts_table(pod: Pod) -> Table:
    """Mean time of each part over cores and steps; `column` names it in the other tables."""
    parts = pod.parts
    texts = [part_text(pod, part) for part in parts]
    mean = np.array([pod.part_ps[:, :, part].mean() for part in parts])
    whole = float(pod.total_ps.mean()) or 1.0
    what = "the capture consists" if pod.step_names == (WHOLE,) else "steps consist"
    return Table(f"What {what} of", (
        text_column("column", "Column", [f"{text.name}_ps" for text in texts]),
        text_column("category", "Part", [text.title for text in texts]),
        text_column("color", "Colour", [text.color for text in texts]),
        Column("avg_ps", "Average", mean, "ps"),
        Column("fraction", "Share", mean / whole, "fraction"),
        text_column("meaning", "Meaning", [text.meaning for text in texts]),
    ), note=f"mean of {count(len(pod.cores), 'core')}")  # fmt: skip


def _part_columns(pod: Pod, axis: int, rows: slice) -> list[Column]:
    return [
        Column(
            f"{PART_TEXTS[part].name}_ps",
            part_text(pod, part).title,
            pod.part_ps[:, rows, part].mean(axis=axis),
            "ps",
            description=part_text(pod, part).meaning,
        )
        for part in pod.parts
    ]


def steps_table(pod: Pod) -> Table:
    """Each step: mean over the cores, the longest of any, and the longest own time."""
    own = pod.own_ps
    return Table("Step time", (
        text_column("step", "Step", pod.step_names),
        Column("step_ps", "Step time", pod.total_ps.mean(axis=0), "ps"),
        Column("max_ps", "Slowest core's", pod.total_ps.max(axis=0), "ps"),
        Column("max_own_ps", "Longest own time", own.max(axis=0), "ps"),
        text_column("slowest", "Longest on", [core_name(pod, int(core)) for core in own.argmax(axis=0)]),
        *_part_columns(pod, 0, slice(None)),
    ), note=f"mean of {count(len(pod.cores), 'core')}")  # fmt: skip


def core_name(pod: Pod, core: int) -> str:
    """`rank 3` where cores are a job's processes, else `host TPU:0`; the host alone where it is the core."""
    if pod.has_ranks:
        return f"rank {pod.cores[core].rank}"
    host, name = pod.hosts[int(pod.host_of[core])], pod.cores[core].name
    return host if name == host else f"{host} {name}"


def host_name(pod: Pod, host: str) -> str:
    """A host, or the rank that it is where it has a single core."""
    mine = [core for core, row in enumerate(pod.host_of.tolist()) if pod.hosts[row] == host]
    return core_name(pod, mine[0]) if pod.has_ranks and len(mine) == 1 else host


def cores_table(pod: Pod, step: int) -> Table:
    """Each core in one step, -1 the mean of all steps."""
    rows = slice(None) if step < 0 else slice(step, step + 1)
    cores = pod.cores
    largest = pod.part_ps[:, rows].sum(axis=1).argmax(axis=1)
    whole, own = pod.total_ps[:, rows].mean(axis=1), pod.own_ps[:, rows].mean(axis=1)
    ids = {key: np.array([getattr(core, key) for core in cores], np.float64) for key in ("chip", "chip_id")}
    ids["chip_id"][ids["chip_id"] < 0] = np.nan
    return Table(
        "Cores" if step < 0 else f"Cores in step {pod.step_names[step]}",
        (
            text_column("core", "Core", [core_name(pod, i) for i in range(len(cores))]),
            text_column("host", "Host", [pod.hosts[i] for i in pod.host_of.tolist()]),
            Column("chip", "Chip of host", ids["chip"], "id"),
            Column("chip_id", "Chip", ids["chip_id"], "id"),
            Column(
                "device",
                "Rank" if pod.has_ranks else "Device of program",
                pod.device_of.astype(np.float64),
                "id",
            ),
            Column("total_ps", total_title(pod), whole, "ps"),
            Column("own_ps", "Own time", own, "ps", description=_OWN_HELP),
            text_column(
                "bottleneck", "Largest part", [part_text(pod, Part(i)).title for i in largest.tolist()]
            ),
            *_part_columns(pod, 1, rows),
        ),
        note="" if step >= 0 else "whole capture" if pod.step_names == (WHOLE,) else "mean of all steps",
    )


def measures(pod: Pod) -> dict[str, str]:
    """What the heat map can show, by name, with titles."""
    return {
        OWN: "Own time",
        TOTAL: total_title(pod),
        **{PART_TEXTS[part].name: part_text(pod, part).title for part in pod.parts},
    }


def cells_table(pod: Pod, measure: str) -> Table:
    """One measure of every core in every step, core after core; single precision is enough for a colour."""
    part = next((part for part in Part if PART_TEXTS[part].name == measure), None)
    values = pod.own_ps if measure == OWN else pod.total_ps if part is None else pod.part_ps[:, :, part]
    return Table(
        measures(pod)[measure],
        (Column("value_ps", measures(pod)[measure], values.reshape(-1).astype(np.float32), "ps"),),
    )


def straggler_name(pod: Pod, one: Straggler) -> str:
    """The host or core that holds the others up."""
    return host_name(pod, one.host) if one.core < 0 else core_name(pod, one.core)


def stragglers_table(pod: Pod, found: Sequence[Straggler]) -> Table:
    """Who holds the others up, slowest first."""
    slow = [straggler.slow for straggler in found]
    names = [straggler_name(pod, straggler) for straggler in found]
    causes = [
        Column(f"{key}_ps", title, np.array([one.causes.get(key, 0.0) for one in slow]), "ps")
        for key, title in (
            ("compute", "Extra compute"),
            ("input", "Extra input"),
            ("network", "Extra transfers"),
            ("idle", "Extra idle"),
        )
    ]
    return Table(
        "Stragglers",
        (
            text_column("straggler", "Host or core", names),
            text_column("host", "Host", [straggler.host for straggler in found]),
            Column(
                "core_row",
                "Core's row",
                np.array([straggler.core if straggler.core >= 0 else np.nan for straggler in found]),
                "id",
            ),
            text_column("since", "Since step", [pod.step_names[one.since] for one in slow]),
            Column("own_ps", "Own time", np.array([one.own_ps for one in slow]), "ps"),
            Column("usual_ps", "Median of the others", np.array([one.usual_ps for one in slow]), "ps"),
            Column("excess_ps", "Slower by", np.array([one.excess_ps for one in slow]), "ps"),
            Column(
                "excess_fraction",
                "Slower by (share)",
                np.array([one.excess_fraction for one in slow]),
                "fraction",
                description="Of the median of the others",
            ),
            text_column("cause", "Cause", [one.cause for one in slow]),
            Column(
                "job_ps",
                "Job's step",
                np.array([straggler.job_ps for straggler in found]),
                "ps",
                description="Its slowest core's",
            ),
            Column(
                "gain_ps",
                "Saved per step",
                np.array([straggler.gain_ps for straggler in found]),
                "ps",
                description="Of the job's step",
            ),
            Column(
                "gain_fraction",
                "Share saved",
                np.array([straggler.gain_fraction for straggler in found]),
                "fraction",
                description="Of the job's step",
            ),
            *causes,
        ),
        note="own time beside the median of the others, from that step on",
    )


def collectives_table(pod: Pod) -> Table:
    """Operations that cores run together, longest first."""
    rows = pod.collectives
    size = np.array([one.op.size_bytes or np.nan for one in rows], np.float64)
    wait = [one.wait_ps if one.is_wait_known else np.nan for one in rows]
    rates = {
        name: [getattr(one, name) for one in rows] for name in ("algorithm_bytes_per_s", "bus_bytes_per_s")
    }
    algorithm, bus = (
        np.array([np.nan if rate is None else rate for rate in found], np.float64) for found in rates.values()
    )
    per = _per(pod)
    return Table(
        "Collectives",
        (
            text_column("op", "Operation", [_operation(one) for one in rows]),
            text_column("kind", "Kind", [one.op.kind for one in rows]),
            _optional("process_group", "Process group", [one.op.process_group for one in rows]),
            Column(
                "transfer_ps",
                f"Transfer {per}" if pod.is_wait_known else f"Time {per}",
                np.array([one.transfer_ps for one in rows]),
                "ps",
            ),
            Column("wait_ps", f"Waiting {per}", np.array(wait, np.float64), "ps"),
            Column("n_per_step", f"Times {per}", np.array([one.n_per_step for one in rows]), "count"),
            Column("size_bytes", "Data", size, "bytes", description=_SIZE_HELP),
            Column(
                "bytes_per_s", "Algorithm bandwidth", algorithm, "bytes_per_s", description=_ALGORITHM_HELP
            ),
            Column("bus_bytes_per_s", "Bus bandwidth", bus, "bytes_per_s", description=_BUS_HELP),
            Column("n_groups", "Groups", np.array([one.n_groups for one in rows]), "count"),
            Column("group_size", "Cores in a group", np.array([one.group_size for one in rows]), "count"),
            text_column("groups", "Replica groups", [_groups_text(one.groups) for one in rows]),
            text_column("groups_from", "Groups told by", [one.known_by.value for one in rows]),
            Column(
                "channel_id",
                "Channel",
                np.array([one.op.channel_id or np.nan for one in rows], np.float64),
                "id",
            ),
            _optional("dtype", "Data type", [one.op.dtype for one in rows]),
            _optional("remark", "Remark", [one.remark for one in rows]),
        ),
        note=_collectives_note(rows),
    )


def _collectives_note(rows: Sequence[Collective]) -> str:
    """How to read the table; with what is to be remarked of all of its rows."""
    remarks = {one.remark for one in rows}
    told = [
        "mean over cores; the fastest participant's time is transfer, the rest is waiting",
        *(remarks if len(remarks) == 1 else ()),
    ]
    return "; ".join(text for text in told if text)


def _optional(name: str, title: str, texts: Sequence[str]) -> Column:
    """A column of texts of which some are not known, or have nothing to say."""
    made = text_column(name, title, texts)
    return replace(
        made,
        values=np.where(np.array([bool(text) for text in texts], np.bool_), made.values, -1).astype(np.int32),
    )


def _operation(one: Collective) -> str:
    """An instruction's name; of PyTorch's the kind and which of a step's they are."""
    places = [place + 1 for place in one.ordinals]
    if not places:
        return one.op.name
    shown = ", ".join(f"#{place}" for place in places[:_MOST_PLACES])
    return f"{one.op.kind} {shown}" + (
        f" and {len(places) - _MOST_PLACES:,} more" if len(places) > _MOST_PLACES else ""
    )


def _per(pod: Pod) -> str:
    return "per capture" if pod.step_names == (WHOLE,) else "per step"


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
    return Table(
        "Links between cores",
        (
            text_column("source", "From", [core_name(pod, one.source) for one in rows]),
            text_column("target", "To", [core_name(pod, one.target) for one in rows]),
            Column(
                "size_bytes",
                "Data",
                np.array([one.size_bytes or np.nan for one in rows], np.float64),
                "bytes",
            ),
            Column("latency_ps", "Latency", np.array([one.latency_ps for one in rows]), "ps"),
            Column(
                "bytes_per_s",
                "Bandwidth",
                np.array([one.bytes_per_s or np.nan for one in rows], np.float64),
                "bytes_per_s",
            ),
            Column(
                "send_delay_ps",
                "Send delay",
                np.array([one.send_delay_ps for one in rows]),
                "ps",
                description=_DELAY_HELP,
            ),
            Column("n_per_step", f"Times {_per(pod)}", np.array([one.n_per_step for one in rows]), "count"),
            text_column("ops", "Operations", [", ".join(one.ops) for one in rows]),
            Column(
                "channel_id",
                "Channel",
                np.array([one.channel_id or np.nan for one in rows], np.float64),
                "id",
            ),
            Column("source_row", "From row", np.array([one.source for one in rows], np.float64), "id"),
            Column("target_row", "To row", np.array([one.target for one in rows], np.float64), "id"),
        ),
        note=note,
    )


def count(n: int, word: str) -> str:
    """`1 core`, `1,024 cores`."""
    return f"{n:,} {word}" + ("" if n == 1 else "s")
