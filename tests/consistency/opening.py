"""How pages open: tiles with known numbers, each link once, and one expected gain wherever a limit
is named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from tb_tpuprof.tools.payload import Payload, Table, Verdict

_MOST_TILES = 6
_LIMITS = ("See what limits this job", "See how to fix it")
_GAIN = re.compile(r"\(expected gain if fully fixed: (.*)\)$")


def faults(pages: Mapping[str, Payload]) -> Iterator[tuple[str, str]]:
    """(page, what is wrong) of every page that opens badly."""
    for page, payload in pages.items():
        for text in (*_tiles(payload), *_links(payload)):
            yield page, text
    yield from _gains(pages)


def _tiles(payload: Payload) -> Iterator[str]:
    if len(payload.tiles) > _MOST_TILES:
        yield f"shows {len(payload.tiles)} tiles"
    seen: dict[tuple[str, object], str] = {}
    for name in payload.tiles:
        scalar = payload.scalars.get(name)
        if scalar is None or scalar.value is None:
            yield f"tile `{name}` has no value"
        elif scalar.unit == "fraction" and scalar.value:
            other = seen.setdefault((scalar.unit, scalar.value), name)
            if other != name:
                yield f"tiles `{other}` and `{name}` are both {scalar.value}"


def _links(payload: Payload) -> Iterator[str]:
    verdict = payload.verdict or Verdict("unknown", "")
    targets = [(step.tool, tuple(sorted(step.params.items()))) for step in verdict.next if step.tool]
    if len(set(targets)) < len(targets):
        yield f"links twice: {', '.join(step.text for step in verdict.next)}"
    advice = payload.tables.get("recommendations")
    listed = set(_texts(advice, "tool")) - {""} if advice is not None else set()
    if again := listed & {tool for tool, params in targets if not params}:
        yield f"lists {', '.join(sorted(again))} under Next and under What to do next"


def _gains(pages: Mapping[str, Payload]) -> Iterator[tuple[str, str]]:
    """Pages that link to the overview for the job's limit promise one gain."""
    gains: dict[str, str] = {}
    for page, payload in pages.items():
        for step in payload.verdict.next if payload.verdict else ():
            if step.text.startswith(_LIMITS):
                match = _GAIN.search(step.text)
                gains[page] = match[1] if match else ""
    if len(set(gains.values())) > 1:
        yield ", ".join(gains), f"promise unlike gains: {gains}"


def _texts(table: Table, name: str) -> list[str]:
    column = next(column for column in table.columns if column.name == name)
    return [(column.strings or ())[code] for code in column.values.tolist() if code >= 0]
