"""Rows of events → Chrome trace JSON; and the spans of an event's arguments in a file's own JSON. In plain
Python.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

DOUBLE, UINT, TEXT = 2, 3, 5
_SPACE = re.compile(r"[ \n\r\t]*")
_DEEPEST = 64


def members(
    data: npt.NDArray[np.uint8], positions: npt.NDArray[np.int64], max_bytes: int
) -> npt.NDArray[np.int64]:
    """For JSON objects at some positions of a file: the spans of the members of `args` and of the value of
    `cat`.

    int64[n, 4]: start and end of the arguments without their braces, start and end of the category with its
    quotes; both 0 if absent. -1 for arguments that exceed `max_bytes`, nest more than 64 deep or are not
    strict JSON in UTF-8.
    """
    spans = np.zeros((len(positions), 4), np.int64)
    whole = data.tobytes()
    for row, position in zip(spans, positions.tolist(), strict=True):
        if 0 <= position < len(whole) and whole[position : position + 1] == b"{":
            for key, start, end in _members(whole, position):
                if key == b"args" and whole[start : start + 1] == b"{":
                    fits = end - start <= max_bytes and _is_valid(whole[start:end])
                    inner = (
                        start
                        + 1
                        + len(whole[start + 1 : end - 1])
                        - len(whole[start + 1 : end - 1].lstrip(b" \n\r\t"))
                    )
                    row[:2] = (inner, end - 1) if fits else (-1, -1)
                elif (
                    key == b"cat"
                    and whole[start : start + 1] == b'"'
                    and end - start <= max_bytes
                    and _is_valid(whole[start:end])
                ):
                    row[2:] = start, end
    return spans


def _members(whole: bytes, position: int) -> Iterator[tuple[bytes, int, int]]:
    """(key, start of the value, its end) of an object's members, up to the first damaged one. Latin-1 maps
    each byte to a character.
    """
    text = whole[position:].decode("latin-1")
    decoder, index = json.JSONDecoder(strict=False), 1
    while True:
        index = re.compile(r"[ ,\n\r\t]*").match(text, index).end()  # type: ignore[union-attr]
        if text[index : index + 1] != '"':
            return
        try:
            _, end = decoder.raw_decode(text, index)
            colon = _SPACE.match(text, end).end()  # type: ignore[union-attr]
            start = _SPACE.match(text, colon + 1).end()  # type: ignore[union-attr]
            if text[colon : colon + 1] != ":":
                return
            stop = decoder.raw_decode(text, start)[1]
        except (ValueError, RecursionError):
            return
        yield whole[position + index + 1 : position + end - 1], position + start, position + stop
        index = stop


def _is_valid(text: bytes) -> bool:
    def refuse(name: str) -> None:
        raise ValueError(name)

    try:
        decoded = text.decode("utf-8")
        json.loads(decoded, parse_constant=refuse)
    except (ValueError, RecursionError):
        return False
    depth = deepest = 0
    for c in re.sub(r'"(\\.|[^"\\])*"', "", decoded):
        depth += (c in "[{") - (c in "]}")
        deepest = max(deepest, depth)
    return deepest <= _DEEPEST


class EventWriter:
    """Writes events, one per line, each preceded by a comma.

    `rows`: phase (a letter), pid, tid, time and duration in ps (-1 none), id (-1 none), and codes into the
    texts (-1 none): name, category, arguments that events share. `stats`: the first stat of each row (one
    longer than the rows), then key (code), kind (trace/schema.py) and value of each; a TEXT's value is a
    code. `texts`: (blob, offsets) of texts that are JSON already. `spans`: int64[n, 6], two spans of `data`
    that are arguments and one that is the category; rows beyond n have none.
    """

    def __init__(
        self, rows: tuple[Any, ...], stats: tuple[Any, ...], texts: tuple[Any, Any], data: Any, spans: Any
    ) -> None:
        self.rows = rows
        self.stats = stats
        blob, offsets = texts[0].tobytes(), texts[1].tolist()
        self.texts = [blob[a:b].decode("utf-8") for a, b in itertools.pairwise(offsets)]
        self.data = data.tobytes()
        self.spans = spans

    def lines(self, first: int, last: int) -> bytes:
        """The rows from `first` to before `last`."""
        return "".join(self._row(i) for i in range(max(first, 0), min(last, len(self.rows[0])))).encode(
            "utf-8"
        )

    def _row(self, i: int) -> str:
        code, pid, tid, time, duration, id_, name, cat, common = (int(column[i]) for column in self.rows)
        phase = chr(code)
        span = self.spans[i].tolist() if i < len(self.spans) else [0] * 6
        parts = [f'"ph":"{phase}","pid":{pid},"tid":{tid},"ts":{_us(time)}']
        parts += [f'"dur":{_us(duration)}'] if duration >= 0 else []
        parts += [f'"id":"{id_}"'] if id_ >= 0 else []
        parts += {"i": ['"s":"p"'], "f": ['"bp":"e"']}.get(phase, [])
        parts.append(f'"name":{self.texts[name]}')
        if span[5] > span[4]:
            parts.append(f'"cat":{self._piece(span[4], span[5])}')
        elif cat >= 0:
            parts.append(f'"cat":{self.texts[cat]}')
        args = [self.texts[common]] if common >= 0 else []
        args += [self._stat(k) for k in range(int(self.stats[0][i]), int(self.stats[0][i + 1]))]
        args += [self._piece(span[k], span[k + 1]) for k in (0, 2) if span[k + 1] > span[k]]
        parts += [f'"args":{{{",".join(args)}}}'] if args else []
        return f",\n{{{','.join(parts)}}}"

    def _piece(self, start: int, end: int) -> str:
        return bytes(self.data[start:end]).decode("utf-8")

    def _stat(self, k: int) -> str:
        key, kind, value = (int(column[k]) for column in self.stats[1:])
        if kind == TEXT:
            text = self.texts[value]
        elif kind == DOUBLE:
            text = _real(float(np.int64(value).view(np.float64)))
        else:
            text = str(value % 2**64 if kind == UINT else value)
        return f"{self.texts[key]}:{text}"


def _us(ps: int) -> str:
    """Picoseconds as microseconds, with no more digits than necessary."""
    whole, part = divmod(abs(ps), 10**6)
    return f"{'-' if ps < 0 else ''}{whole}{f'.{part:06d}'.rstrip('0') if part else ''}"


def _real(value: float) -> str:
    if not -1e308 < value < 1e308:
        return "null"
    text = f"{value:.15g}"
    return text if float(text) == value else f"{value:.17g}"
