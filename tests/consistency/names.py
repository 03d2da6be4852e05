"""Rules about lists: hosts, devices, steps and memories are the same ones on every page."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_tpuprof.tools.payload import Payload, Table
from tests.consistency.pages import (
    EQUAL,
    Pages,
    Violation,
    column_of,
    numbers_of,
    row_of,
    texts_of,
)

_TOLERANCE_PS = 2.0  # of a mean over devices


def lists_agree(pages: Pages) -> Iterator[Violation]:
    """Hosts, devices, steps and memories under the same names and with the same numbers."""
    found = (*_hosts(pages), *_devices(pages), *_steps(pages), *_drawn_steps(pages), *_memories(pages))
    for page, text in found:
        yield Violation("lists agree", page, text)


def _hosts(pages: Pages) -> Iterator[tuple[str, str]]:
    """The number of hosts that the overview names, and a row for each of them."""
    overview = pages.get("overview_page")
    if overview is None:
        return
    environment = overview.tables["environment"]
    row = row_of(environment, "name", "Hosts")
    stated = texts_of(column_of(environment, "value"))[row]
    if row >= 0 and stated not in (str(len(overview.hosts)), overview.hosts[0]):
        yield (
            "overview_page",
            f"the environment names {stated} hosts, the page combines {len(overview.hosts)}",
        )
    for page, payload in pages.items():
        table = payload.tables.get("hosts")
        names = set(_texts(table, "host"))
        if names - set(payload.hosts):
            yield page, f"lists the hosts {sorted(names - set(payload.hosts))}, which it does not combine"


def _devices(pages: Pages) -> Iterator[tuple[str, str]]:
    """Devices of the communication page are those of the pod viewer, which takes a CPU as a whole."""
    pod, comm = pages.get("pod_viewer"), pages.get("communication")
    if pod is None or comm is None or "cores" not in pod.tables:
        return
    theirs, ours = set(_texts(pod.tables["cores"], "core")), set(_texts(comm.tables["devices"], "device"))
    if ours - theirs and theirs != set(pod.hosts):
        yield (
            "communication, pod_viewer",
            f"{sorted(ours - theirs)[:3]} are no devices of {sorted(theirs)[:3]}",
        )


def _steps(pages: Pages) -> Iterator[tuple[str, str]]:
    """Steps have one time: on the overview and the input pipeline, in the pod viewer and in communication."""
    for first, second, column in (
        ("overview_page", "input_pipeline_analyzer", "step_time_ps"),
        ("pod_viewer", "communication", "step_ps"),
    ):
        if first not in pages or second not in pages:
            continue
        if "steps" not in pages[first].tables or "steps" not in pages[second].tables:
            continue
        ours, theirs = (_by_step(pages[page], column) for page in (first, second))
        for name in ours.keys() & theirs.keys():
            if abs(ours[name] - theirs[name]) > EQUAL * ours[name] + _TOLERANCE_PS:
                yield f"{first}, {second}", f"step {name} takes {ours[name]:g} and {theirs[name]:g} ps"
        if ours and theirs and set(ours) != set(theirs) and first == "overview_page":
            yield f"{first}, {second}", f"{len(ours)} and {len(theirs)} steps are listed"


def _drawn_steps(pages: Pages) -> Iterator[tuple[str, str]]:
    """Steps of GPUs last as long in the timeline's row of steps as on the overview, which may leave some
    out.
    """
    overview, timeline = pages.get("overview_page"), pages.get("trace_viewer")
    table = timeline.tables.get("steps") if timeline is not None else None
    if overview is None or table is None or len(overview.hosts) != 1 or not table.n_rows:
        return
    idle = overview.scalars.get("device_idle_fraction")
    if idle is None or not idle.title.startswith("GPU"):
        return
    drawn = dict(
        zip(_texts(table, "name"), numbers_of(column_of(table, "duration_ps")).tolist(), strict=True)
    )
    for name, time in _by_step(overview, "step_time_ps").items():
        if abs(drawn.get(name, 0.0) - time) > _TOLERANCE_PS:
            yield "overview_page, trace_viewer", f"step {name} takes {time:g} ps, drawn are {drawn.get(name)}"


def _by_step(payload: Payload, column: str) -> dict[str, float]:
    table = payload.tables["steps"]
    return dict(zip(_texts(table, "step"), numbers_of(column_of(table, column)).tolist(), strict=True))


def _memories(pages: Pages) -> Iterator[tuple[str, str]]:
    """The memory shown has the peak, the capacity and the counts of its row."""
    page = pages.get("memory_profile")
    if page is None:
        return
    table = page.tables["memories"]
    names = ("peak_bytes", "capacity_bytes", "stack_bytes", "heap_bytes", "free_bytes", "n_allocations")
    known = {name: page.scalars[name].value for name in names if name in page.scalars}
    columns = {name: numbers_of(column_of(table, name)) for name in known}
    rows = [
        i
        for i in range(table.n_rows)
        if all(_same(value, float(columns[name][i])) for name, value in known.items())
    ]
    if table.n_rows and not rows:
        yield "memory_profile", f"no row of `memories` has {known}"
    shares = numbers_of(column_of(table, "used_fraction"))
    capacity = numbers_of(column_of(table, "capacity_bytes"))
    peak = numbers_of(column_of(table, "peak_bytes"))
    apart = np.abs(shares * capacity - peak) > EQUAL * peak + 1
    if (apart & np.isfinite(shares) & np.isfinite(capacity)).any():
        yield "memory_profile", f"shares {shares.tolist()} of {capacity.tolist()} are not {peak.tolist()}"


def _same(value: float | bool | None, cell: float) -> bool:
    return (value is None or value != value) == (cell != cell) and (cell != cell or float(value or 0) == cell)


def _texts(table: Table | None, name: str) -> list[str]:
    if table is None or all(column.name != name for column in table.columns):
        return []
    return texts_of(column_of(table, name))
