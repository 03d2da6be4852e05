"""Rules about numbers: parts sum up, shares are shares, rates respect peaks, times are busy or idle."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from tb_tpuprof.tools.payload import Table
from tests.consistency.pages import (
    EQUAL,
    Pages,
    Violation,
    column_of,
    fractions,
    largest_of,
    numbers_of,
    value_of,
)

_MOST, _WHOLE = 1.05, 2e-3
_IDLE_APART = 0.001
# Shares of something that may be larger than what they are compared with, by a part of their name.
_MAY_EXCEED = re.compile(r"excess")
_PARTS = re.compile(r"(by|top)_(?!ops$)|.*_by_|breakdown$|host_categories$|parts$")
_NOT_STEP_PARTS = ("step_time_ps", "start_ps", "total_ps", "own_ps")


def parts_sum_up(pages: Pages) -> Iterator[Violation]:
    """Shares of a whole sum up to 1, and the parts of each step to its time."""
    for page, payload in pages.items():
        for name, table in payload.tables.items():
            fraction = next((column for column in table.columns if column.name == "fraction"), None)
            if (
                fraction is not None
                and _PARTS.match(name)
                and table.n_rows
                and not table.note.startswith("the first")
            ):
                total = float(np.nansum(numbers_of(fraction)))
                if total and abs(total - 1) > _WHOLE:
                    yield Violation("parts sum up", page, f"the shares of `{name}` sum up to {total:.4f}")
        steps = payload.tables.get("steps")
        if page in ("overview_page", "input_pipeline_analyzer") and steps is not None and steps.n_rows:
            yield from _steps_sum_up(page, steps)


def _steps_sum_up(page: str, steps: Table) -> Iterator[Violation]:
    beside = [column.name for column in steps.columns if column.name.startswith("sc_")]
    parts = [c for c in steps.columns if c.unit == "ps" and c.name not in (*_NOT_STEP_PARTS, *beside)]
    total = np.sum([numbers_of(column) for column in parts], axis=0)
    time = numbers_of(column_of(steps, "step_time_ps"))
    wrong = np.flatnonzero(np.abs(total - time) > np.maximum(EQUAL * time, 2.0))
    if len(wrong):
        row = int(wrong[0])
        yield Violation(
            "parts sum up",
            page,
            f"step {row}: its parts sum up to {total[row]:g} ps, it takes {time[row]:g} ps",
        )


def shares_are_shares(pages: Pages) -> Iterator[Violation]:
    """No share is below 0 or above 1, but for comparisons that may be."""
    for page, name, largest, least in fractions(pages):
        if not _MAY_EXCEED.search(name.rpartition(".")[2]) and (largest > 1 + EQUAL or least < -EQUAL):
            yield Violation("shares are shares", page, f"`{name}` lies between {least:.6g} and {largest:.6g}")


def rates_respect_peaks(pages: Pages) -> Iterator[Violation]:
    """Nothing is faster than 1.05 of its peak, even with a diagnostic; shares of a peak are shares."""
    peaks = _peaks(pages)
    for page, payload in pages.items():
        for table_name, table in payload.tables.items():
            for column in table.columns:
                peak = peaks.get(column.name, 0.0)
                largest = (
                    largest_of(numbers_of(column))
                    if peak and table_name != "roofs" and column.name in peaks
                    else 0.0
                )
                if peak and largest > _MOST * peak:
                    yield Violation(
                        "rates respect peaks",
                        page,
                        f"`{table_name}.{column.name}` reaches {largest:.4g}, its peak is {peak:.4g}",
                    )


def _peaks(pages: Pages) -> dict[str, float]:
    scalars = pages["roofline_model"].scalars if "roofline_model" in pages else {}
    found = {"hbm_bytes_per_s": "peak_hbm_bytes_per_s", "flop_rate_flops_per_s": "peak_flops_per_s"}
    return {name: float(scalars[key].value or 0) for name, key in found.items() if key in scalars}


def busy_and_idle_are_all(pages: Pages) -> Iterator[Violation]:
    """Busy and idle time are the device time; no device is busy for longer than it was profiled."""
    known = {
        name: one.scalars[name].value
        for one in pages.values()
        for name in ("device_busy_ps", "device_time_ps")
        if name in one.scalars
    }
    busy, whole = known.get("device_busy_ps"), known.get("device_time_ps")
    if busy is not None and whole is not None and busy > whole:
        yield Violation(
            "busy and idle are all", "overview_page", f"the devices are busy for {busy} ps of {whole} ps"
        )
    for page, payload in pages.items():
        idle, steps = payload.scalars.get("device_idle_fraction"), payload.scalars.get("n_steps")
        if idle is None or idle.value is None or busy is None or not whole:
            continue
        if steps is None or not steps.value or idle.title.startswith("TPU"):
            rest = 1 - float(busy) / float(whole)
            if abs(float(idle.value) - rest) > 1e-4:
                yield Violation(
                    "busy and idle are all", page, f"idle is {float(idle.value):.5f}, busy leaves {rest:.5f}"
                )


def idle_times_agree(pages: Pages) -> Iterator[Violation]:
    """Within steps GPUs are as idle on the overview as in the pod viewer: all at once where there are
    several; a single one without waiting for input, which the overview calls Other where that differs from
    idle time.
    """
    if not {"overview_page", "pod_viewer"} <= set(pages):
        return
    overview, pod = pages["overview_page"].scalars, pages["pod_viewer"].scalars
    idle, n_steps = overview.get("device_idle_fraction"), overview.get("n_steps")
    theirs = pod.get("all_idle_fraction")
    if theirs is None and value_of(pod.get("n_chips")) == 1:
        idle, theirs = overview.get("other_fraction", idle), pod.get("idle_fraction")
    if (
        idle is None
        or theirs is None
        or not idle.title.startswith(("GPU", "Other"))
        or not value_of(n_steps)
        or "n_steps" not in pod
    ):
        return
    if abs(value_of(idle) - value_of(theirs)) > _IDLE_APART:
        text = (
            f"the GPU idles {value_of(idle):.4f} of the steps on one page, {value_of(theirs):.4f} on the"
            " other"
        )
        yield Violation("idle times agree", "overview_page, pod_viewer", text)
