"""What pages say of the job's limits, beside the overview's findings: they name the same cause, with the same
share.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tb_tpuprof.tools.payload import Payload, Table
from tb_tpuprof.units import format_fraction

WARM_UP, INPUT, UNRECORDED = "Warm-up", "Input", "Not recorded"
_LEAD = re.compile(r"(Highly|Moderately|Possibly) ([\w-]+)-bound|Compute-bound")
_BOUND = {
    "compilation": "Compilation",
    "input": INPUT,
    "Python": "Python",
    "callback": "Callbacks",
    "dispatch": "Dispatch",
    "transfer": "Transfers",
    "communication": "Communication",
}
_LIMIT = re.compile(r"This job is limited by (.*), (\S+(?: [\d.]+)?%) of [^,]*: see the overview\.")
_INPUT = re.compile(
    r"(?:[Ii]nput takes|[Ee]ach step waits) [\d.,]+ \S+ \(([^)]+%)\) (?:of each step|for data)"
)
# Which pages are about which causes, as docs/causes/README.md lists them.
ABOUT = {
    INPUT: ("input_pipeline_analyzer", "tf_data_bottleneck_analysis"),
    "Compute": ("framework_op_stats", "kernel_stats", "op_profile", "hlo_stats", "roofline_model"),
    "Communication": ("pod_viewer",),
    "Transfers": ("memory_profile",),
}


@dataclass(frozen=True)
class Told:
    """The diagnosis as the overview shows it: its sentence; cause and share of its first finding (empty:
    healthy); shares of the input.
    """

    text: str
    cause: str
    share: float
    input_shares: frozenset[str]


def told_limits(overview: Payload | None) -> Told | None:
    """What the overview says; None where it does not go by the diagnosis (no steps, no details, captures that
    do not overlap).
    """
    if overview is None or overview.verdict is None or "findings" not in overview.tables:
        return None
    rows, causes = _rows(overview.tables["findings"]), _rows(overview.tables["causes"])
    if overview.verdict.level == "good":  # the diagnosis found no cost worth naming, whatever the words
        top = None
    else:
        top = next((row for row in rows if row["cause"] != WARM_UP), None)
        if top is None or str(top["finding"])[1:] not in overview.verdict.text:
            return None
    shares = [float(str(row["share"])) for row in (*rows, *causes) if row["cause"] == INPUT]
    of_input = frozenset(map(format_fraction, shares))
    return Told(
        overview.verdict.text,
        str(top["cause"]) if top else "",
        float(str(top["share"])) if top else 0.0,
        of_input,
    )


def contradictions(pages: Mapping[str, Payload]) -> Iterator[tuple[str, str]]:
    """(page, what is wrong) of every page whose verdict is at odds with the overview's first finding."""
    limits = told_limits(pages.get("overview_page"))
    if limits is None:
        return
    for page, payload in pages.items():
        if payload.verdict is None:
            continue
        if page in ABOUT.get(limits.cause, ()) and not payload.verdict.text.startswith(limits.text):
            yield (
                page,
                f"is about {limits.cause} and does not open with: {limits.text} — but: "
                f"{payload.verdict.text}",
            )
        for text in (payload.verdict.text, *payload.verdict.details):
            for wrong in (*_leads(text, limits), *_shares(text, limits)):
                yield page, f"{wrong}: {text}"


def _leads(text: str, limits: Told) -> Iterator[str]:
    """Causes that a sentence names as the limit, other than the first finding's."""
    for match in _LEAD.finditer(text):
        if match[1] == "Possibly":
            fits = limits.cause == UNRECORDED and match[2] == "input"
        else:
            fits = limits.cause == _BOUND.get(match[2], match[2]) if match[2] else not limits.cause
        if not fits:
            yield f"`{match[0]}` of a job whose first finding is {limits.cause or 'none'}"


def _shares(text: str, limits: Told) -> Iterator[str]:
    """Shares other than the diagnosis'."""
    named = _LIMIT.search(text)
    if named and named[2] != format_fraction(limits.share):
        yield f"says {named[2]} of what takes {format_fraction(limits.share)}"
    for share in _INPUT.findall(text):
        if share not in limits.input_shares:
            yield (
                f"says that input takes {share}, the findings and causes "
                f"{', '.join(sorted(limits.input_shares)) or 'nothing'}"
            )


def _rows(table: Table) -> list[dict[str, object]]:
    found: list[dict[str, object]] = [{} for _ in range(table.n_rows)]
    for column in table.columns:
        for row, value in zip(found, column.values.tolist(), strict=True):
            row[column.name] = (
                value if column.strings is None else column.strings[value] if value >= 0 else ""
            )
    return found
