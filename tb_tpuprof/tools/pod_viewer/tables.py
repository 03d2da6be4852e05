"""The tables of the pod viewer: cores, steps, parts, cells of the heat map, stragglers,
collectives, links.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tb_tpuprof.analysis.pod.collectives import Collective
from tb_tpuprof.analysis.pod.host import WHOLE
from tb_tpuprof.analysis.pod.join import Pod
from tb_tpuprof.analysis.pod.parts import PART_TEXTS, Part, PartText
from tb_tpuprof.analysis.pod.stragglers import Straggler
from tb_tpuprof.tools.payload import Table
from tb_tpuprof.tools.pod_viewer import declared
from tb_tpuprof.tools.pod_viewer.declared import OWN, TOTAL
from tb_tpuprof.tools.spec import Values, known_texts

_MOST_PLACES = 4


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
    return declared.PARTS.fill(
        {
            "column": [f"{text.name}_ps" for text in texts],
            "category": [text.title for text in texts],
            "color": [text.color for text in texts],
            "avg_ps": mean,
            "fraction": mean / whole,
            "meaning": [text.meaning for text in texts],
        },
        note=f"mean of {count(len(pod.cores), 'core')}",
        title=f"What {what} of",
    )


def _part_values(pod: Pod, axis: int, rows: slice) -> dict[str, Values]:
    return {f"{PART_TEXTS[part].name}_ps": pod.part_ps[:, rows, part].mean(axis=axis) for part in pod.parts}


def _part_titles(pod: Pod) -> dict[str, str]:
    return {f"{PART_TEXTS[part].name}_ps": part_text(pod, part).title for part in pod.parts}


def _part_meanings(pod: Pod) -> dict[str, str]:
    return {f"{PART_TEXTS[part].name}_ps": part_text(pod, part).meaning for part in pod.parts}


def steps_table(pod: Pod) -> Table:
    """Each step: mean over the cores, the longest of any, and the longest own time."""
    own = pod.own_ps
    return declared.STEPS.fill(
        {
            "step": pod.step_names,
            "step_ps": pod.total_ps.mean(axis=0),
            "max_ps": pod.total_ps.max(axis=0),
            "max_own_ps": own.max(axis=0),
            "slowest": [core_name(pod, int(core)) for core in own.argmax(axis=0)],
            **_part_values(pod, 0, slice(None)),
        },
        note=f"mean of {count(len(pod.cores), 'core')}",
        titles=_part_titles(pod),
        descriptions=_part_meanings(pod),
    )


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
    ids = {key: np.array([getattr(core, key) for core in cores], np.float64) for key in ("chip", "chip_id")}
    ids["chip_id"][ids["chip_id"] < 0] = np.nan
    device = {"device": "Rank"} if pod.has_ranks else {}
    return declared.CORES.fill(
        {
            "core": [core_name(pod, i) for i in range(len(cores))],
            "host": [pod.hosts[i] for i in pod.host_of.tolist()],
            "chip": ids["chip"],
            "chip_id": ids["chip_id"],
            "device": pod.device_of.astype(np.float64),
            "total_ps": pod.total_ps[:, rows].mean(axis=1),
            "own_ps": pod.own_ps[:, rows].mean(axis=1),
            "bottleneck": [part_text(pod, Part(i)).title for i in largest.tolist()],
            **_part_values(pod, 1, rows),
        },
        "" if step >= 0 else "whole capture" if pod.step_names == (WHOLE,) else "mean of all steps",
        title="" if step < 0 else f"Cores in step {pod.step_names[step]}",
        titles={**_part_titles(pod), **device, "total_ps": total_title(pod)},
        descriptions=_part_meanings(pod),
    )


def measures(pod: Pod) -> dict[str, str]:
    """What the heat map can show, by name, with titles."""
    return {
        OWN: "Own time",
        TOTAL: total_title(pod),
        **{PART_TEXTS[part].name: part_text(pod, part).title for part in pod.parts},
    }


def cells_table(pod: Pod, measure: str) -> Table:
    """One measure of every core in every step, core after core; single precision is enough for a color."""
    part = next((part for part in Part if PART_TEXTS[part].name == measure), None)
    values = pod.own_ps if measure == OWN else pod.total_ps if part is None else pod.part_ps[:, :, part]
    title = measures(pod)[measure]
    cells = values.reshape(-1).astype(np.float32)
    return declared.CELLS.fill({"value_ps": cells}, title=title, titles={"value_ps": title})


def straggler_name(pod: Pod, one: Straggler) -> str:
    """The host or core that holds the others up."""
    return host_name(pod, one.host) if one.core < 0 else core_name(pod, one.core)


def stragglers_table(pod: Pod, found: Sequence[Straggler]) -> Table:
    """Who holds the others up, slowest first."""
    slow = [straggler.slow for straggler in found]
    core_rows = [straggler.core if straggler.core >= 0 else np.nan for straggler in found]
    causes = {
        f"{cause}_ps": np.array([one.causes.get(cause, 0.0) for one in slow])
        for cause in ("compute", "input", "network", "idle")
    }
    return declared.STRAGGLERS.fill(
        {
            "straggler": [straggler_name(pod, straggler) for straggler in found],
            "host": [straggler.host for straggler in found],
            "core_row": np.array(core_rows),
            "since": [pod.step_names[one.since] for one in slow],
            "own_ps": np.array([one.own_ps for one in slow]),
            "usual_ps": np.array([one.usual_ps for one in slow]),
            "excess_ps": np.array([one.excess_ps for one in slow]),
            "excess_fraction": np.array([one.excess_fraction for one in slow]),
            "cause": [one.cause for one in slow],
            "job_ps": np.array([straggler.job_ps for straggler in found]),
            "gain_ps": np.array([straggler.gain_ps for straggler in found]),
            "gain_fraction": np.array([straggler.gain_fraction for straggler in found]),
            **causes,
        },
        "own time beside the median of the others, from that step on",
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
    return declared.COLLECTIVES.fill(
        {
            "op": [_operation(one) for one in rows],
            "kind": [one.op.kind for one in rows],
            "process_group": known_texts([one.op.process_group for one in rows]),
            "transfer_ps": np.array([one.transfer_ps for one in rows]),
            "wait_ps": np.array(wait, np.float64),
            "n_per_step": np.array([one.n_per_step for one in rows]),
            "size_bytes": size,
            "bytes_per_s": algorithm,
            "bus_bytes_per_s": bus,
            "n_groups": np.array([one.n_groups for one in rows]),
            "group_size": np.array([one.group_size for one in rows]),
            "groups": [_groups_text(one.groups) for one in rows],
            "groups_from": [one.known_by.value for one in rows],
            "channel_id": np.array([one.op.channel_id or np.nan for one in rows], np.float64),
            "dtype": known_texts([one.op.dtype for one in rows]),
            "remark": known_texts([one.remark for one in rows]),
        },
        _collectives_note(rows),
        titles={
            "transfer_ps": f"Transfer {per}" if pod.is_wait_known else f"Time {per}",
            "wait_ps": f"Waiting {per}",
            "n_per_step": f"Times {per}",
        },
    )


def _collectives_note(rows: Sequence[Collective]) -> str:
    """How to read the table; with what is to be remarked of all of its rows."""
    remarks = {one.remark for one in rows}
    told = [
        "mean over cores; the fastest participant's time is transfer, the rest is waiting",
        *(remarks if len(remarks) == 1 else ()),
    ]
    return "; ".join(text for text in told if text)


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
    return declared.CHANNELS.fill(
        {
            "source": [core_name(pod, one.source) for one in rows],
            "target": [core_name(pod, one.target) for one in rows],
            "size_bytes": np.array([one.size_bytes or np.nan for one in rows], np.float64),
            "latency_ps": np.array([one.latency_ps for one in rows]),
            "bytes_per_s": np.array([one.bytes_per_s or np.nan for one in rows], np.float64),
            "send_delay_ps": np.array([one.send_delay_ps for one in rows]),
            "n_per_step": np.array([one.n_per_step for one in rows]),
            "ops": [", ".join(one.ops) for one in rows],
            "channel_id": np.array([one.channel_id or np.nan for one in rows], np.float64),
            "source_row": np.array([one.source for one in rows], np.float64),
            "target_row": np.array([one.target for one in rows], np.float64),
        },
        note,
        titles={"n_per_step": f"Times {_per(pod)}"},
    )


def count(n: int, word: str) -> str:
    """`1 core`, `1,024 cores`."""
    return f"{n:,} {word}" + ("" if n == 1 else "s")
