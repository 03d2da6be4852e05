"""Places in source code → the table of the lines around the first one that may be shown."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

import numpy as np

from tb_tpuprof.sources import snippet
from tb_tpuprof.tools.payload import Table
from tb_tpuprof.tools.spec import TableSpec, flag, number, text

_MOST_PLACES = 8
SOURCE_LINES = TableSpec(
    "source_lines",
    "Source code",
    (
        number("line", "Line", "id", "Number of the line in its file"),
        text("code", "Code", "The line, at most 240 characters"),
        flag("is_place", "Here", "Whether it is the line that the trace names"),
    ),
    "The lines around the place, three each way, if the file is in a folder of TPUPROF_SOURCE_FILES; the "
    "note names the place",
    is_optional=True,
    sentence="The file as it is now, which may differ from what ran",
)


def source_tables(places: Iterable[str]) -> dict[str, Table]:
    """The table `source_lines` of the first of the places (`file:line`) whose lines may be shown; none if no
    such place is among the first eight.
    """
    for place in islice(places, _MOST_PLACES):
        found = snippet(place)
        if found is not None:
            lines = np.arange(found.first_line, found.first_line + len(found.lines), dtype=np.int64)
            columns = {"line": lines, "code": list(found.lines), "is_place": lines == found.line}
            return {SOURCE_LINES.name: SOURCE_LINES.fill(columns, found.place)}
    return {}
