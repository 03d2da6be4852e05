"""One table of a payload → CSV: a header of column names, exact values, empty cells for what is unknown."""

from __future__ import annotations

import csv
import io
import math

from tb_tpuprof.errors import BadParameter
from tb_tpuprof.tools.payload import Column, Payload
from tb_tpuprof.tools.spreadsheet import cell_text


def encode_csv(payload: Payload, table: str = "") -> bytes:
    """The table of that name, or the first. Raises BadParameter for a table that the payload does not have.

    Texts that a spreadsheet would run as a formula get a leading apostrophe: names in a trace are untrusted
    input.
    """
    name = table or next(iter(payload.tables), "")
    if name not in payload.tables:
        raise BadParameter("table", name, "one of " + ", ".join(payload.tables))
    chosen = payload.tables[name]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([column.name for column in chosen.columns])
    writer.writerows(zip(*(cells(column) for column in chosen.columns), strict=True))
    return out.getvalue().encode("utf-8", "replace")


def cells(column: Column) -> list[object]:
    """A column's values as CSV cells."""
    values = column.values.tolist()
    if column.strings is not None:
        texts = [cell_text(text) for text in column.strings]
        return [texts[code] if code >= 0 else "" for code in values]
    if column.values.dtype.kind == "f":
        return [value if math.isfinite(value) else "" for value in values]
    return list(values)
