"""Rules about what pages say: savings, words of the framework, verdicts, marks, limits and slow hosts."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from tb_tpuprof.tools.payload import Payload, Table
from tb_tpuprof.units import format_time
from tests.consistency.limits import contradictions
from tests.consistency.opening import faults
from tests.consistency.pages import (
    EQUAL,
    NAMED,
    Pages,
    Violation,
    column_of,
    largest_of,
    numbers_of,
    sentences_of,
    texts_of,
    time_of,
)
from tests.consistency.words import foreign_words, told_framework

_SAVES = re.compile(r"sav(?:e|es|ing)\b[^.;]*?([\d.,]+) ?%")
_SAVES_OF = re.compile(r"save[s]? ([\d.,]+\s\S+) of ([\d.,]+\s[^\s,.]+)")


def savings_are_smaller(pages: Pages) -> Iterator[Violation]:
    """What a change would save is less than what it is saved from."""
    for page, payload in pages.items():
        for text in sentences_of(payload):
            for share in _SAVES.findall(text):
                if float(share.replace(",", "")) >= 100:
                    yield Violation("savings are smaller", page, text)
            for part, whole in _SAVES_OF.findall(text):
                if (
                    time_of(part) is not None
                    and time_of(whole) is not None
                    and (time_of(part) or 0) > (time_of(whole) or 0)
                ):
                    yield Violation("savings are smaller", page, text)
        gains = payload.tables.get("stragglers")
        step = payload.scalars.get("job_step_ps") or payload.scalars.get("step_ps")
        if gains is not None and gains.n_rows and step is not None and step.value:
            largest = largest_of(numbers_of(column_of(gains, "gain_ps")))
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
        low, high = (numbers_of(column_of(table, f"{what}_{side}_ps")) for side in ("low", "high"))
        known = np.isfinite(low) & np.isfinite(high)
        if (low[known] > high[known] * (1 + EQUAL)).any() or (low[known] < 0).any():
            yield Violation(
                "savings are smaller",
                page,
                f"an estimate of the {what} lies between {low[known].tolist()} and {high[known].tolist()}",
            )


def words_fit_the_framework(pages: Pages) -> Iterator[Violation]:
    """No sentence speaks of a framework that the run does not use."""
    framework = told_framework(pages)
    if not framework:
        return
    for page, payload in pages.items():
        own = _names_of(payload)
        for text in sentences_of(payload):
            for word in foreign_words(_without(text, own), framework):
                yield Violation("words fit the framework", page, f"{word!r} on a run of {framework}: {text}")


def _without(text: str, names: frozenset[str]) -> str:
    """A sentence without the names that it quotes from the trace."""
    return NAMED.sub(lambda match: "" if match[1] in names else match[0], text)


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


def marks_agree(pages: Pages) -> Iterator[Violation]:
    """The stage that is marked in the call shown is the one that the verdict and the table of
    pipelines name.
    """
    payload = pages.get("tf_data_bottleneck_analysis")
    if payload is None or payload.verdict is None or payload.verdict.level not in ("warn", "bad"):
        return
    chosen, listed = payload.tables["chosen"], payload.tables["pipelines"]
    key = (texts_of(column_of(chosen, "host"))[0], texts_of(column_of(chosen, "pipeline"))[0])
    marked = texts_of(column_of(chosen, "bottleneck_long_name"))[0]
    rows = zip(
        *(texts_of(column_of(listed, name)) for name in ("host", "pipeline", "bottleneck_long_name")),
        strict=True,
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
