"""The payloads of all pages of one run → where they contradict each other, or themselves. Pure functions:
nothing is opened here.

Each violation names the page (or pages), the thing and the numbers, so that the reader need not run anything
again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.tools.facts import FACTS
from tb_tpuprof.tools.payload import Column, Payload, Scalar, Table
from tb_tpuprof.units import format_fraction, format_time
from tests.consistency.limits import contradictions
from tests.consistency.opening import faults
from tests.consistency.words import foreign_words, told_framework

Pages = Mapping[str, Payload]
_EQUAL, _MOST, _WHOLE = 1e-6, 1.05, 2e-3
_IDLE_APART = 0.001
# Shares of something that may be larger than what they are compared with, by a part of their name: rates are
# held to their peaks.
_MAY_EXCEED = re.compile(
    r"excess|efficiency|compute_fraction|memory_fraction|flops|hbm|bandwidth|roofline|on_chip"
)
_OF_A_PEAK = re.compile(
    r"efficiency|compute_fraction|memory_fraction|flops_fraction|hbm_fraction|bandwidth_fraction|roofline|on_chip"
)
_PARTS = re.compile(r"(by|top)_(?!ops$)|.*_by_|breakdown$|host_categories$|parts$")
_NOT_STEP_PARTS = ("step_time_ps", "start_ps", "total_ps", "own_ps")
_NAMED = re.compile(r"`([^`]+)`")
_SAVES = re.compile(r"sav(?:e|es|ing)\b[^.;]*?([\d.,]+) ?%")
_SAVES_OF = re.compile(r"save[s]? ([\d.,]+\s\S+) of ([\d.,]+\s[^\s,.]+)")
_SLOW_HOST = re.compile(r"`([^`]+)` .*?: its own work takes ([\d.,]+ \S+) ")
_SLOW_HOST_APART = 0.05
_UNITS = {"ps": 1, "ns": 1e3, "µs": 1e6, "ms": 1e9, "s": 1e12, "min": 6e13, "h": 3.6e15}
# (page, scalar) that has the name of a fact and is none: why.
NOT_FACTS = {
    (
        "memory_viewer",
        "n_steps",
    ): "places in the order in which a program runs its instructions, not steps of the job"
}
# Pages whose verdict names an operation, with where that stands: table, name, time, share. A page that says
# `subjects` is held to these.
HEADLINES = {
    "framework_op_stats": ("ops", "operation", "total_self_time_ps"),
    "hlo_stats": ("ops", "op", "total_self_time_ps"),
    "kernel_stats": ("by_kernel", "kernel", "total_ps"),
}


@dataclass(frozen=True)
class Violation:
    """A contradiction: which rule, which page (or pages) and what they say."""

    rule: str
    pages: str
    text: str

    def __str__(self) -> str:
        return f"[{self.rule}] {self.pages}: {self.text}"


def violations(pages: Pages) -> list[Violation]:
    """All rules over all pages of a run."""
    return [one for rule in RULES for one in rule(pages)]


def facts_agree(pages: Pages) -> Iterator[Violation]:
    """A fact of the run has one value on all pages that show it, and is not known on one page and unknown on
    another.
    """
    for name in (spec.name for spec in FACTS):
        shown = {
            page: one.scalars[name].value
            for page, one in pages.items()
            if name in one.scalars and (page, name) not in NOT_FACTS
        }
        if len(set(map(_comparable, shown.values()))) > 1 and not _all_near(list(shown.values())):
            yield Violation(
                "facts agree",
                ", ".join(shown),
                f"`{name}` is " + ", ".join(f"{value} ({page})" for page, value in shown.items()),
            )


def _comparable(value: float | bool | None) -> float | None:
    return None if value is None else float(value)


def _all_near(values: list[Any]) -> bool:
    return all(value is not None for value in values) and max(values) - min(values) <= _EQUAL * max(
        map(abs, values)
    )


def labels_tell_apart(pages: Pages) -> Iterator[Violation]:
    """Two values under one name and title differ only where the note of each says what it is of."""
    first: dict[tuple[str, str], tuple[str, Scalar]] = {}
    for page, payload in pages.items():
        for name, scalar in payload.scalars.items():
            if (
                scalar.value is None
                or (page, name) in NOT_FACTS
                or scalar.unit == "id"
                or name in _OF_THE_VIEW
            ):
                continue
            before, other = first.setdefault((name, scalar.title), (page, scalar))
            if not _all_near([other.value, scalar.value]) and (
                other.note == scalar.note or not (other.note and scalar.note)
            ):
                values = " and ".join(
                    f"{one.value} ({one.note or 'no base said'})" for one in (other, scalar)
                )
                yield Violation(
                    "labels tell apart", f"{before}, {page}", f"`{name}` ({scalar.title}) is {values}"
                )


_OF_THE_VIEW = (
    "start_ps",
    "end_ps",
    "n_events_in_window",
    "trace_duration_ps",
    "rank",
)  # of what a page happens to show


def headlines_are_first(pages: Pages) -> Iterator[Violation]:
    """The operation that a verdict names is the first row of its table, with the number that the sentence
    says.
    """
    for page, payload in pages.items():
        verdict = payload.verdict
        if verdict is None:
            continue
        for subject in verdict.subjects:
            yield from _subject(page, payload, subject.table, subject.column, subject.name, subject.values)
        named = _NAMED.search(verdict.text)
        if page in HEADLINES and named and not verdict.subjects:
            table, column, time = HEADLINES[page]
            yield from _first_row(page, payload, (table, column, time), named[1])


def _subject(
    page: str, payload: Payload, table: str, column: str, name: str, values: Mapping[str, float]
) -> Iterator[Violation]:
    made = payload.tables.get(table)
    row = _row_of(made, column, name) if made else -1
    if made is None or row < 0:
        yield Violation(
            "headlines are first",
            page,
            f"the verdict speaks of `{name}` ({table}.{column}), which is not in the table",
        )
        return
    quoted = _NAMED.findall(payload.verdict.text) if payload.verdict is not None else []
    if quoted and not any(
        _plain(one) in _plain(name) or one in _texts(_column(made, column)) for one in quoted
    ):
        yield Violation(
            "headlines are first", page, f"the verdict quotes `{quoted[0]}`, its subject is `{name}`"
        )
    for key, value in values.items():
        cell = float(_column(made, key).values[row])
        if not _all_near([cell, float(value)]):
            yield Violation(
                "headlines are first", page, f"`{name}`: the verdict's {key} is {value}, the table's {cell}"
            )
    by = next(iter(values), "")
    if by:
        yield from _is_first(page, made, (table, column, by), row, name)


def _plain(name: str) -> str:
    """A kernel's name as a sentence may shorten it."""
    return name.replace("(anonymous namespace)::", "").removesuffix("…")


def _is_first(
    page: str, made: Table, where: tuple[str, str, str], row: int, name: str
) -> Iterator[Violation]:
    table, column, by = where
    numbers, names = _numbers(_column(made, by)), _texts(_column(made, column))
    counted = (
        np.array([text.lower() not in ("idle", "other", "(no operation)") for text in names])
        & np.isfinite(numbers)
        & _beside(made)
    )
    if counted.any() and numbers[row] < numbers[counted].max() * (1 - _EQUAL):
        first = int(np.flatnonzero(counted & (numbers == numbers[counted].max()))[0])
        text = (
            f"the verdict names `{name}` ({numbers[row]:g}), the first row of {table} by {by} is "
            f"`{names[first]}` ({numbers[first]:g})"
        )
        yield Violation("headlines are first", page, text)


def _beside(made: Table) -> npt.NDArray[np.bool_]:
    """Rows of the first row's side, where a table holds those of device and host."""
    side = next((column for column in made.columns if column.name == "host_or_device"), None)
    return np.ones(made.n_rows, np.bool_) if side is None else side.values == side.values[0]


def _first_row(page: str, payload: Payload, where: tuple[str, str, str], name: str) -> Iterator[Violation]:
    """The same for a page that gives no subject: its sentence is read."""
    table, column, by = where
    made, verdict = payload.tables[table], payload.verdict
    assert verdict is not None
    names = _texts(_column(made, column))
    row = next((i for i, text in enumerate(names) if text == name), -1)
    if row < 0:
        yield Violation(
            "headlines are first", page, f"the verdict names `{name}`, which no row of {table} is called by"
        )
        return
    yield from _is_first(page, made, where, row, name)
    time = format_time(float(_column(made, by).values[row]))
    if time not in verdict.text:
        yield Violation(
            "headlines are first", page, f"`{name}` has {time} in {table}, the verdict says: {verdict.text}"
        )
    shares = [
        column
        for column in made.columns
        if column.name.endswith("fraction") and np.isfinite(float(column.values[row]))
    ]
    said = [format_fraction(float(one.values[row])) for one in shares]
    if "%" in verdict.text and shares and not any(text in verdict.text for text in said):
        yield Violation(
            "headlines are first",
            page,
            f"`{name}` has the shares {said} in {table}, the verdict says: {verdict.text}",
        )


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
                total = float(np.nansum(_numbers(fraction)))
                if total and abs(total - 1) > _WHOLE:
                    yield Violation("parts sum up", page, f"the shares of `{name}` sum up to {total:.4f}")
        steps = payload.tables.get("steps")
        if page in ("overview_page", "input_pipeline_analyzer") and steps is not None and steps.n_rows:
            yield from _steps_sum_up(page, steps)


def _steps_sum_up(page: str, steps: Table) -> Iterator[Violation]:
    beside = [column.name for column in steps.columns if column.name.startswith("sc_")]
    parts = [c for c in steps.columns if c.unit == "ps" and c.name not in (*_NOT_STEP_PARTS, *beside)]
    total = np.sum([_numbers(column) for column in parts], axis=0)
    time = _numbers(_column(steps, "step_time_ps"))
    wrong = np.flatnonzero(np.abs(total - time) > np.maximum(_EQUAL * time, 2.0))
    if len(wrong):
        row = int(wrong[0])
        yield Violation(
            "parts sum up",
            page,
            f"step {row}: its parts sum up to {total[row]:g} ps, it takes {time[row]:g} ps",
        )


def shares_are_shares(pages: Pages) -> Iterator[Violation]:
    """No share is below 0 or above 1, but for comparisons that may be."""
    for page, name, largest, least in _fractions(pages):
        if not _MAY_EXCEED.search(name.rpartition(".")[2]) and (largest > 1 + _EQUAL or least < -_EQUAL):
            yield Violation("shares are shares", page, f"`{name}` lies between {least:.6g} and {largest:.6g}")


def rates_respect_peaks(pages: Pages) -> Iterator[Violation]:
    """Nothing is faster than 1.05 of its peak, unless the page says so in a diagnostic."""
    for page, name, largest, _least in _fractions(pages):
        said = any(re.search(r"peak|roof|105", diagnostic.message) for diagnostic in pages[page].diagnostics)
        if _OF_A_PEAK.search(name.rpartition(".")[2]) and largest > _MOST and not said:
            yield Violation(
                "rates respect peaks",
                page,
                f"`{name}` reaches {largest:.4g} of its peak, and no diagnostic says so",
            )
    peaks = _peaks(pages)
    for page, payload in pages.items():
        said = any(re.search(r"peak|roof|105", diagnostic.message) for diagnostic in payload.diagnostics)
        for table_name, table in payload.tables.items():
            for column in table.columns:
                peak = peaks.get(column.name, 0.0)
                largest = (
                    _largest(_numbers(column))
                    if peak and table_name != "roofs" and column.name in peaks
                    else 0.0
                )
                if peak and largest > _MOST * peak and not said:
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


def savings_are_smaller(pages: Pages) -> Iterator[Violation]:
    """What a change would save is less than what it is saved from."""
    for page, payload in pages.items():
        for text in _sentences(payload):
            for share in _SAVES.findall(text):
                if float(share.replace(",", "")) >= 100:
                    yield Violation("savings are smaller", page, text)
            for part, whole in _SAVES_OF.findall(text):
                if (
                    _time(part) is not None
                    and _time(whole) is not None
                    and (_time(part) or 0) > (_time(whole) or 0)
                ):
                    yield Violation("savings are smaller", page, text)
        gains = payload.tables.get("stragglers")
        step = payload.scalars.get("job_step_ps") or payload.scalars.get("step_ps")
        if gains is not None and gains.n_rows and step is not None and step.value:
            largest = _largest(_numbers(_column(gains, "gain_ps")))
            if largest >= float(step.value):
                yield Violation(
                    "savings are smaller",
                    page,
                    f"a gain of {format_time(largest)} per step of {format_time(float(step.value))}",
                )
        estimates = payload.tables.get("what_if")
        if estimates is not None:
            yield from _estimates(page, estimates)


def _estimates(page: str, table: Table) -> Iterator[Violation]:
    for what in ("latency", "step"):
        if not any(column.name == f"{what}_low_ps" for column in table.columns):
            continue
        low, high = (_numbers(_column(table, f"{what}_{side}_ps")) for side in ("low", "high"))
        known = np.isfinite(low) & np.isfinite(high)
        if (low[known] > high[known] * (1 + _EQUAL)).any() or (low[known] < 0).any():
            yield Violation(
                "savings are smaller",
                page,
                f"an estimate of the {what} lies between {low[known].tolist()} and {high[known].tolist()}",
            )


def _time(text: str) -> float | None:
    match = re.match(r"([\d.,]+)\s(\S+)", text)
    unit = _UNITS.get(match[2]) if match else None
    return float(match[1].replace(",", "")) * unit if match and unit else None


def words_fit_the_framework(pages: Pages) -> Iterator[Violation]:
    """No sentence speaks of a framework that the run does not use."""
    framework = told_framework(pages)
    if not framework:
        return
    for page, payload in pages.items():
        own = _names_of(payload)
        for text in _sentences(payload):
            for word in foreign_words(_without(text, own), framework):
                yield Violation("words fit the framework", page, f"{word!r} on a run of {framework}: {text}")


def _without(text: str, names: frozenset[str]) -> str:
    """A sentence without the names that it quotes from the trace."""
    return _NAMED.sub(lambda match: "" if match[1] in names else match[0], text)


def _names_of(payload: Payload) -> frozenset[str]:
    """Every name that the tables show: sentences may repeat these."""
    skip = ("text", "advice", "remedy", "change", "note")
    return frozenset(
        text
        for table in payload.tables.values()
        for column in table.columns
        if column.name not in skip
        for text in column.strings or ()
    )


def verdicts_agree(pages: Pages) -> Iterator[Violation]:
    """Pages that judge the input agree: none is green where another is red."""
    told = {
        page: pages[page].verdict
        for page in ("overview_page", "input_pipeline_analyzer", "tf_data_bottleneck_analysis")
        if page in pages
    }
    level = {
        page: verdict.level
        for page, verdict in told.items()
        if verdict is not None and _is_about_input(page, verdict.category, verdict.text)
    }
    if "good" in level.values() and "bad" in level.values():
        yield Violation(
            "verdicts agree",
            ", ".join(level),
            ", ".join(f"{page} is {one}: {told[page].text}" for page, one in level.items()),
        )  # type: ignore[union-attr]
    overview, page = told.get("overview_page"), told.get("input_pipeline_analyzer")
    if (
        overview
        and page
        and overview.category == "input"
        and overview.level in ("warn", "bad")
        and page.level != overview.level
    ):
        text = (
            f"the overview is {overview.level} ({overview.text}), the input pipeline {page.level} "
            f"({page.text})"
        )
        yield Violation("verdicts agree", "overview_page, input_pipeline_analyzer", text)


def _is_about_input(page: str, category: str, text: str) -> bool:
    return page != "overview_page" or category == "input"


def _fractions(pages: Pages) -> Iterator[tuple[str, str, float, float]]:
    """(page, name, largest, smallest) of every share: scalars and columns."""
    for page, payload in pages.items():
        for name, scalar in payload.scalars.items():
            if scalar.unit == "fraction" and scalar.value is not None:
                yield page, name, float(scalar.value), float(scalar.value)
        for table_name, table in payload.tables.items():
            for column in table.columns:
                numbers = _numbers(column) if column.unit == "fraction" else np.empty(0)
                if np.isfinite(numbers).any():
                    yield page, f"{table_name}.{column.name}", _largest(numbers), float(np.nanmin(numbers))


def _largest(numbers: npt.NDArray[np.float64]) -> float:
    return float(np.nanmax(numbers)) if np.isfinite(numbers).any() else 0.0


def _sentences(payload: Payload) -> Iterator[str]:
    """Everything that a page says in words: verdict, advice, diagnostics."""
    if payload.verdict is not None:
        yield from (
            payload.verdict.text,
            *payload.verdict.details,
            *(step.text for step in payload.verdict.next),
        )
    for diagnostic in payload.diagnostics:
        yield from (diagnostic.message, diagnostic.remedy)
    for name in ("advice", "recommendations"):
        for column in payload.tables[name].columns if name in payload.tables else ():
            if column.name == "text":
                yield from column.strings or ()


def _column(table: Table, name: str) -> Column:
    return next(column for column in table.columns if column.name == name)


def _numbers(column: Column) -> npt.NDArray[np.float64]:
    return column.values.astype(np.float64) if column.strings is None else np.empty(0)


def _texts(column: Column) -> list[str]:
    assert column.strings is not None
    return [column.strings[code] if code >= 0 else "" for code in column.values.tolist()]


def _row_of(table: Table, column: str, name: str) -> int:
    return next((i for i, text in enumerate(_texts(_column(table, column))) if text == name), -1)


def with_scalar(payload: Payload, name: str, value: float | None) -> Payload:
    """The same payload with another value of a scalar: what tests of these rules break."""
    return replace(payload, scalars={**payload.scalars, name: replace(payload.scalars[name], value=value)})


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
    if theirs is None and _value(pod.get("n_chips")) == 1:
        idle, theirs = overview.get("other_fraction", idle), pod.get("idle_fraction")
    if (
        idle is None
        or theirs is None
        or not idle.title.startswith(("GPU", "Other"))
        or not _value(n_steps)
        or "n_steps" not in pod
    ):
        return
    if abs(_value(idle) - _value(theirs)) > _IDLE_APART:
        text = f"the GPU idles {_value(idle):.4f} of the steps on one page, {_value(theirs):.4f} on the other"
        yield Violation("idle times agree", "overview_page, pod_viewer", text)


def _value(scalar: Scalar | None) -> float:
    return float(scalar.value) if scalar is not None and scalar.value is not None else 0.0


def marks_agree(pages: Pages) -> Iterator[Violation]:
    """The stage that is marked in the call shown is the one that the verdict and the table of
    pipelines name.
    """
    payload = pages.get("tf_data_bottleneck_analysis")
    if payload is None or payload.verdict is None or payload.verdict.level not in ("warn", "bad"):
        return
    chosen, listed = payload.tables["chosen"], payload.tables["pipelines"]
    key = (_texts(_column(chosen, "host"))[0], _texts(_column(chosen, "pipeline"))[0])
    marked = _texts(_column(chosen, "bottleneck_long_name"))[0]
    rows = zip(
        *(_texts(_column(listed, name)) for name in ("host", "pipeline", "bottleneck_long_name")), strict=True
    )
    named = next((stage for host, pipeline, stage in rows if (host, pipeline) == key), "")
    if marked != named:
        yield Violation(
            "marks agree",
            payload.tool,
            f"the call shown marks `{marked}`, the table names `{named}`: {payload.verdict.text}",
        )


def limits_agree(pages: Pages) -> Iterator[Violation]:
    """No page names another limit of the job than the overview's first finding, nor another share of the same
    cause.
    """
    for page, text in contradictions(pages):
        yield Violation("limits agree", page, text)


def pages_open_well(pages: Pages) -> Iterator[Violation]:
    """Tiles have values, each once; links stand once; pages that name the job's limit promise one gain."""
    for page, text in faults(pages):
        yield Violation("pages open well", page, text)


def slow_hosts_agree(pages: Pages) -> Iterator[Violation]:
    """The overview and the pod viewer name the same excess of a slow host."""
    overview, pod = pages.get("overview_page"), pages.get("pod_viewer")
    if overview is None or pod is None or not {"findings"} <= set(overview.tables):
        return
    stragglers = pod.tables.get("stragglers")
    if stragglers is None:
        return
    excess_by_name = dict(
        zip(_texts(_column(stragglers, "straggler")), _numbers(_column(stragglers, "excess_ps")), strict=True)
    )
    for sentence in _texts(_column(overview.tables["findings"], "finding")):
        named = _SLOW_HOST.match(sentence)
        excess = excess_by_name.get(named[1]) if named else None
        if named and excess and abs((_time(named[2]) or 0.0) / excess - 1) > _SLOW_HOST_APART:
            text = f"`{named[1]}` takes {named[2]} longer, and {format_time(excess)} longer"
            yield Violation("slow hosts agree", "overview_page, pod_viewer", text)


RULES: tuple[Callable[[Pages], Iterator[Violation]], ...] = (
    facts_agree,
    labels_tell_apart,
    headlines_are_first,
    parts_sum_up,
    shares_are_shares,
    rates_respect_peaks,
    busy_and_idle_are_all,
    savings_are_smaller,
    words_fit_the_framework,
    verdicts_agree,
    marks_agree,
    idle_times_agree,
    limits_agree,
    slow_hosts_agree,
    pages_open_well,
)
