"""The tables of the pod viewer: cores, steps, parts, cells of the heat map, stragglers,
collectives, links.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tb_tpuprof.analysis.pod.host import WHOLE
from tb_tpuprof.analysis.pod.join import Pod
from tb_tpuprof.analysis.pod.parts import PART_TEXTS, Part, PartText
from tb_tpuprof.analysis.pod.process_groups import ProcessGroup
from tb_tpuprof.analysis.pod.stragglers import Straggler
from tb_tpuprof.analysis.pod.topology import Topology
from tb_tpuprof.tools.core_names import core_name, unit_of
from tb_tpuprof.tools.payload import Table
from tb_tpuprof.tools.pod_viewer import declared
from tb_tpuprof.tools.pod_viewer.declared import OWN, TOTAL
from tb_tpuprof.tools.pod_viewer.topology_tables import core_places
from tb_tpuprof.tools.spec import Values, known_texts
from tb_tpuprof.units import counted


def part_text(pod: Pod, part: Part) -> PartText:
    """A part's title and meaning in this pod: a collective includes waiting if only one participant was
    captured.
    """
    text = PART_TEXTS[part]
    if part == Part.COLLECTIVE and pod.collectives and not pod.is_wait_known:
        return replace(
            text,
            title="Collectives",
            meaning="Transferring and waiting for others, which cannot be distinguished here",
        )
    return text


def total_title(pod: Pod) -> str:
    """The title of the time that the parts add up to."""
    return "Whole capture" if pod.step_names == (WHOLE,) else "Step time"


def parts_table(pod: Pod) -> Table:
    """Mean time of each part over cores and steps; `column` names it in the other tables."""
    parts = pod.parts
    texts = [part_text(pod, part) for part in parts]
    mean = np.array([pod.part_ps[:, :, part].mean() for part in parts])
    total_ps = float(pod.total_ps.mean()) or 1.0
    base = "the capture" if pod.step_names == (WHOLE,) else "the steps"
    return declared.PARTS.fill(
        {
            "column": [f"{text.name}_ps" for text in texts],
            "category": [text.title for text in texts],
            "color": [text.color for text in texts],
            "avg_ps": mean,
            "fraction": mean / total_ps,
            "meaning": [text.meaning for text in texts],
        },
        note=f"mean over {counted(len(pod.cores), unit_of(pod))}",
        title=f"Parts of {base}",
    )


def _part_values(pod: Pod, axis: int, rows: slice) -> dict[str, Values]:
    return {f"{PART_TEXTS[part].name}_ps": pod.part_ps[:, rows, part].mean(axis=axis) for part in pod.parts}


def _part_titles(pod: Pod) -> dict[str, str]:
    return {f"{PART_TEXTS[part].name}_ps": part_text(pod, part).title for part in pod.parts}


def _part_meanings(pod: Pod) -> dict[str, str]:
    return {f"{PART_TEXTS[part].name}_ps": part_text(pod, part).meaning for part in pod.parts}


def steps_table(pod: Pod) -> Table:
    """Each step: mean over the cores, maximum over the cores, and the longest own time."""
    own_ps = pod.own_ps
    return declared.STEPS.fill(
        {
            "step": pod.step_names,
            "step_ps": pod.total_ps.mean(axis=0),
            "max_ps": pod.total_ps.max(axis=0),
            "max_own_ps": own_ps.max(axis=0),
            "slowest": [core_name(pod, int(core)) for core in own_ps.argmax(axis=0)],
            **_part_values(pod, 0, slice(None)),
        },
        note=f"mean over {counted(len(pod.cores), unit_of(pod))}",
        titles=_part_titles(pod),
        descriptions=_part_meanings(pod),
    )


def host_name(pod: Pod, host: str) -> str:
    """The host's name, or its rank if it has a single core."""
    host_cores = [core for core, row in enumerate(pod.host_of.tolist()) if pod.hosts[row] == host]
    return core_name(pod, host_cores[0]) if pod.has_ranks and len(host_cores) == 1 else host


def cores_table(pod: Pod, slice_of_pod: Topology | str, step: int) -> Table:
    """Each core in one step; -1: the mean of all steps."""
    rows = slice(None) if step < 0 else slice(step, step + 1)
    cores = pod.cores
    largest = pod.part_ps[:, rows].sum(axis=1).argmax(axis=1)
    ids = {key: np.array([getattr(core, key) for core in cores], np.float64) for key in ("chip", "chip_id")}
    ids["chip_id"][ids["chip_id"] < 0] = np.nan
    unit = _unit_title(pod)
    titles = {"device": "Rank"} if pod.has_ranks else {}
    titles |= {"core": unit, "total_ps": total_title(pod)}
    return declared.CORES.fill(
        {
            "core": [core_name(pod, i) for i in range(len(cores))],
            "host": [pod.hosts[i] for i in pod.host_of.tolist()],
            "chip": ids["chip"],
            "chip_id": ids["chip_id"],
            **core_places(slice_of_pod),
            "device": pod.device_of.astype(np.float64),
            "total_ps": pod.total_ps[:, rows].mean(axis=1),
            "own_ps": pod.own_ps[:, rows].mean(axis=1),
            "bottleneck": [part_text(pod, Part(i)).title for i in largest.tolist()],
            **_part_values(pod, 1, rows),
        },
        "" if step >= 0 else "whole capture" if pod.step_names == (WHOLE,) else "mean of all steps",
        title=f"{unit}s" if step < 0 else f"{unit}s in step {pod.step_names[step]}",
        titles={**_part_titles(pod), **titles},
        descriptions=_part_meanings(pod),
    )


def _unit_title(pod: Pod) -> str:
    """The title of what is compared: Core, GPU or Rank; a host counts as one core."""
    unit = unit_of(pod)
    return unit[0].upper() + unit[1:] if unit != "host" else "Core"


def measures(pod: Pod) -> dict[str, str]:
    """The titles of what the heat map can show, by name."""
    return {
        OWN: "Own time",
        TOTAL: total_title(pod),
        **{PART_TEXTS[part].name: part_text(pod, part).title for part in pod.parts},
    }


def cells_table(pod: Pod, measure: str) -> Table:
    """One measure of every core in every step, core by core; single precision is enough for a color."""
    part = next((part for part in Part if PART_TEXTS[part].name == measure), None)
    values = pod.own_ps if measure == OWN else pod.total_ps if part is None else pod.part_ps[:, :, part]
    title = measures(pod)[measure]
    cells = values.reshape(-1).astype(np.float32)
    return declared.CELLS.fill({"value_ps": cells}, title=title, titles={"value_ps": title})


def straggler_name(pod: Pod, straggler: Straggler) -> str:
    """The name of the host or core that holds up the others."""
    return host_name(pod, straggler.host) if straggler.core < 0 else core_name(pod, straggler.core)


def stragglers_table(pod: Pod, stragglers: Sequence[Straggler]) -> Table:
    """The hosts and cores that hold up the others, slowest first."""
    slow = [straggler.slow for straggler in stragglers]
    core_rows = [straggler.core if straggler.core >= 0 else np.nan for straggler in stragglers]
    causes = {
        f"{cause}_ps": np.array([excess.causes.get(cause, 0.0) for excess in slow])
        for cause in ("compute", "input", "network", "idle")
    }
    return declared.STRAGGLERS.fill(
        {
            "straggler": [straggler_name(pod, straggler) for straggler in stragglers],
            "host": [straggler.host for straggler in stragglers],
            "core_row": np.array(core_rows),
            "since": [pod.step_names[excess.since] for excess in slow],
            "own_ps": np.array([excess.own_ps for excess in slow]),
            "usual_ps": np.array([excess.usual_ps for excess in slow]),
            "excess_ps": np.array([excess.excess_ps for excess in slow]),
            "excess_fraction": np.array([excess.excess_fraction for excess in slow]),
            "cause": [excess.cause for excess in slow],
            "job_ps": np.array([straggler.job_ps for straggler in stragglers]),
            "gain_ps": np.array([straggler.gain_ps for straggler in stragglers]),
            "gain_fraction": np.array([straggler.gain_fraction for straggler in stragglers]),
            **causes,
        },
        "own time and the others' median, from that step on",
    )


def collectives_table(pod: Pod) -> Table:
    """Operations that cores run together, longest first."""
    rows = pod.collectives
    size = np.array([collective.op.size_bytes or np.nan for collective in rows], np.float64)
    wait = [collective.wait_ps if collective.is_wait_known else np.nan for collective in rows]
    rates = {
        name: [getattr(collective, name) for collective in rows]
        for name in ("algorithm_bytes_per_s", "bus_bytes_per_s")
    }
    algorithm, bus = (
        np.array([np.nan if rate is None else rate for rate in per_row], np.float64)
        for per_row in rates.values()
    )
    per = per_step(pod)
    return declared.COLLECTIVES.fill(
        {
            "op": [collective.title for collective in rows],
            "kind": [collective.op.kind for collective in rows],
            "process_group": known_texts([collective.op.process_group for collective in rows]),
            "transfer_ps": np.array([collective.transfer_ps for collective in rows]),
            "wait_ps": np.array(wait, np.float64),
            "n_per_step": np.array([collective.n_per_step for collective in rows]),
            "size_bytes": size,
            "bytes_per_s": algorithm,
            "bus_bytes_per_s": bus,
            "n_groups": np.array([collective.n_groups for collective in rows]),
            "group_size": np.array([collective.group_size for collective in rows]),
            "groups": [_groups_text(collective.groups) for collective in rows],
            "groups_from": [collective.known_by.value for collective in rows],
            "channel_id": np.array([collective.op.channel_id or np.nan for collective in rows], np.float64),
            "dtype": known_texts([collective.op.dtype for collective in rows]),
            "remark": known_texts([collective.remark for collective in rows]),
        },
        _collectives_note(pod),
        titles={
            "transfer_ps": f"Transfer {per}" if pod.is_wait_known else f"Time {per}",
            "wait_ps": f"Waiting {per}",
            "n_per_step": f"Times {per}",
        },
    )


def _collectives_note(pod: Pod) -> str:
    """How to read the table, and the remark that all of its rows share."""
    remarks = {collective.remark for collective in pod.collectives}
    steps = " and steps" if len(pod.step_names) > 1 else ""
    parts = [
        f"mean over {unit_of(pod)}s{steps}; the fastest participant's time is transfer, the rest is waiting",
        *(remarks if len(remarks) == 1 else ()),
    ]
    return "; ".join(text for text in parts if text)


def per_step(pod: Pod) -> str:
    """`per step`, or of a run without steps `per capture`."""
    return "per capture" if pod.step_names == (WHOLE,) else "per step"


def _groups_text(groups: Sequence[tuple[int, ...]], most: int = 40_000) -> str:
    text = ""
    for group in groups:
        text += "{" + ",".join(map(str, group)) + "} "
        if len(text) > most:
            return text[:most] + "…"
    return text.strip() or "all"


def process_groups_table(groups: Sequence[ProcessGroup]) -> Table:
    """A row per process group."""
    return declared.PROCESS_GROUPS.fill(
        {
            "group": [group.name for group in groups],
            "description": known_texts([group.description for group in groups]),
            "n_ranks": np.array([group.size if group.size > 0 else np.nan for group in groups], np.float64),
            "ranks": known_texts([group.ranks_text for group in groups]),
            "backend": known_texts([group.backend for group in groups]),
            "n_collectives": np.array([group.n_collectives for group in groups], np.int64),
            "time_ps": np.array([group.time_ps for group in groups], np.int64),
        }
    )
