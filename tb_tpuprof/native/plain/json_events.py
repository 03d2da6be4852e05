"""Plain twin of `compiled/json_events.py`: reads Chrome trace JSON with Python's own parser, one event at a
time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

HAS_TIME, HAS_DURATION, BINDS_ENCLOSING, LOCAL_ID, FLOW_IN, FLOW_OUT, HAS_ID, HAS_ARGS = (
    1,
    2,
    4,
    8,
    16,
    32,
    64,
    128,
)
DOUBLE, UINT, INT, TEXT, BIND, JSON = 2, 3, 4, 5, 9, 10
COLUMNS = {
    "position": np.int64,
    "us": np.int64,
    "duration_ps": np.int64,
    "id": np.int64,
    "rest_ps": np.int32,
    "name": np.int32,
    "cat": np.int32,
    "pid": np.int32,
    "tid": np.int32,
    "phase": np.uint8,
    "scope": np.uint8,
    "flags": np.uint8,
}
VALUE_COLUMNS = {"value": np.int64, "event": np.int32, "key": np.int32, "kind": np.int32}
_FAR_US, _FAR_PS = 4 * 10**18, 2**61
_MAX_ARRAY_TEXT = 4096
_SPACE = re.compile(r"[ \t\r\n]*")
_SPACE_OR_COMMA = re.compile(r"[ \t\r\n,]*")
_TIME = re.compile(r"(-?)(\d+)(?:\.(\d*))?")
_NUMBER = re.compile(r"[0-9.+eE-]{1,63}")


class Number(str):
    """A number as it is written in the file."""


_DECODER = json.JSONDecoder(strict=False, parse_int=Number, parse_float=Number, parse_constant=Number)


def scan(
    data: npt.NDArray[np.uint8], hot: Sequence[bytes], seed: int, in_full: bool = False
) -> dict[str, Any]:
    """All events of a Chrome trace, as a dict of

    - `events`: columns with a row per event that has a `ph`. `position`: its offset in the file; `us` and
      `rest_ps`: its time (µs, rounded down, and the rest); `duration_ps`; `name`, `cat`, `pid`, `tid`:
      numbers of strings, -1 none; `id`: a number that identifies id and scope; `phase`, `scope`: characters
      (`?` for a phase of several); `flags`: the constants above.
    - `values`: columns value, event, key, kind of the arguments in `hot`, and of all arguments of counters
      (C) and metadata (M); a `bind_id` has the kind BIND. Short arrays are texts, as written in the file.
      Objects of the member `samples` are events of the phase P. `in_full`: arrays and objects of any length
      have the kind JSON, true, false and null are texts; if `hot` is empty, all arguments of all events.
    - `blob`, `offsets`: the strings as written in the file, including escapes; those of `hot` come first,
      then `(bind)`.
    - `members`: (name, start, end) of the other members of the file's object.
    - `bad`: the offset at which the file is damaged or cut off, else -1; `is_open`: an array without its
      closing bracket, which is allowed; `n_others`: the number of array elements that are not events.
    """
    return _Reader(data, hot, in_full).read()


class _Reader:
    def __init__(self, data: npt.NDArray[np.uint8], hot: Sequence[bytes], in_full: bool) -> None:
        self.in_full = in_full
        self.text = data.tobytes().decode("utf-8", "surrogateescape")
        self.is_ascii = self.text.isascii()
        self.seen = (0, 0)
        self.hot = {name.decode() for name in hot}
        self.strings: dict[bytes, int] = {}
        for name in (*hot, b"(bind)"):
            self.string(name)
        self.ids: dict[str, int] = {}
        self.rows: list[tuple[int, ...]] = []
        self.values: list[tuple[int, ...]] = []
        self.members: list[tuple[bytes, int, int]] = []
        self.bad = -1
        self.is_open = False
        self.n_others = 0

    def string(self, text: bytes) -> int:
        return self.strings.setdefault(text, len(self.strings))

    def position(self, index: int) -> int:
        """Byte offset of a character; fastest if called in ascending order."""
        if self.is_ascii:
            return index
        character, byte = self.seen if index >= self.seen[0] else (0, 0)
        byte += len(self.text[character:index].encode("utf-8", "surrogateescape"))
        self.seen = (index, byte)
        return byte

    def read(self) -> dict[str, Any]:
        index = _skip(self.text, 1 if self.text.startswith("\ufeff") else 0)
        head = self.text[index : index + 1]
        if head == "[":
            self.is_open = self.array(index + 1) < 0 and self.bad < 0
        elif head == "{":
            self.members_of(index + 1)
        else:
            self.bad = self.position(index)
        texts = list(self.strings)
        return {
            "events": _columns(COLUMNS, self.rows),
            "values": _columns(VALUE_COLUMNS, self.values),
            "blob": np.frombuffer(b"".join(texts), np.uint8),
            "offsets": np.cumsum([0, *(len(text) for text in texts)]).astype(np.int64),
            "members": self.members,
            "bad": self.bad,
            "is_open": self.is_open,
            "n_others": self.n_others,
        }

    def members_of(self, index: int) -> None:
        while True:
            index = _skip(self.text, index, _SPACE_OR_COMMA)
            if self.text[index : index + 1] == "}":
                return
            start = index
            try:
                name, index = _DECODER.raw_decode(self.text, index)
                index = _skip(self.text, index)
                if not isinstance(name, str) or self.text[index : index + 1] != ":":
                    raise ValueError
                start = index = _skip(self.text, index + 1)
                if name in ("traceEvents", "samples") and self.text[index : index + 1] == "[":
                    index = self.array(index + 1, "P" if name == "samples" else "")
                    if index < 0:
                        self.bad = self.position(len(self.text)) if self.bad < 0 else self.bad
                        return
                else:
                    _, index = _DECODER.raw_decode(self.text, index)
            except (ValueError, RecursionError):
                self.bad = self.position(start)
                return
            self.members.append((name.encode(), self.position(start), self.position(index)))

    def array(self, index: int, phase: str = "") -> int:
        """Read the events up to the array's end; returns the index after it, or -1 if there is none. Sets
        `bad` if an event is damaged.
        """
        while True:
            index = _skip(self.text, index, _SPACE_OR_COMMA)
            if index >= len(self.text):
                return -1
            if self.text[index] == "]":
                return index + 1
            try:
                value, end = _DECODER.raw_decode(self.text, index)
            except (ValueError, RecursionError):
                self.bad = self.position(index)
                return -1
            if isinstance(value, dict):
                self.event(value, index, phase)
            else:
                self.n_others += 1
            index = end

    def event(self, fields: dict[str, Any], index: int, phase: str) -> None:
        phase = _bare(fields.get("ph")) or phase
        if not phase:
            self.n_others += bool(fields)
            return
        us, rest, has_time = _time(_bare(fields.get("ts")))
        duration_us, duration_rest, has_duration = _time(_bare(fields.get("dur")))
        flags = (
            HAS_TIME * has_time | HAS_DURATION * has_duration | BINDS_ENCLOSING * (fields.get("bp") == "e")
        )
        flags |= FLOW_IN * (fields.get("flow_in") in (True, "true")) | FLOW_OUT * (
            fields.get("flow_out") in (True, "true")
        )
        scope = _bare(fields.get("s"))
        duration = min(duration_us, _FAR_PS // 10**6 - 1) * 10**6 + duration_rest if duration_us >= 0 else 0
        id_, id_flags = self.id_of(fields)
        flags |= id_flags | HAS_ARGS * isinstance(fields.get("args"), dict)
        numbers = [
            self.string(_raw(fields[name])) if _bare(fields.get(name)) is not None else -1
            for name in ("name", "cat", "pid", "tid")
        ]
        arguments = fields.get("args")
        if isinstance(arguments, dict):
            self.arguments(arguments, phase in ("C", "M") or (self.in_full and not self.hot))
        if _bare(fields.get("bind_id")) is not None:
            self.values.append(
                (
                    self.id_number("", str(_bare(fields["bind_id"]))),
                    len(self.rows),
                    self.string(b"(bind)"),
                    BIND,
                )
            )
        code, scope_code = ord(phase) if len(phase) == 1 else ord("?"), ord(scope[0]) if scope else 0
        self.rows.append((self.position(index), us, duration, id_, rest, *numbers, code, scope_code, flags))

    def id_of(self, fields: dict[str, Any]) -> tuple[int, int]:
        """(number of the event's id, its flags)."""
        both = fields.get("id2")
        scope = str(_bare(fields.get("scope")) or "")
        if isinstance(both, dict) and both:
            kind, text = next(iter(both.items()))
            return self.id_number(scope, str(_bare(text))), HAS_ID | LOCAL_ID * (kind == "local")
        text = _bare(fields.get("id"))
        return (self.id_number(scope, text), HAS_ID) if text is not None else (0, 0)

    def id_number(self, scope: str, text: str) -> int:
        return self.ids.setdefault(f"{scope}\0{text}", len(self.ids) + 1)

    def arguments(self, arguments: dict[str, Any], take_all: bool) -> None:
        for name, value in arguments.items():
            if not take_all and name not in self.hot:
                continue
            kind, number = self.argument(value)
            if kind:
                self.values.append((number, len(self.rows), self.string(_raw(name)), kind))

    def argument(self, value: object) -> tuple[int, int]:
        """(kind, value) of an argument; kind 0 if it is not kept."""
        if self.in_full and isinstance(value, (list, dict)):
            return JSON, self.string(_written(value).encode("utf-8", "surrogateescape"))
        if self.in_full and (value is None or isinstance(value, bool)):
            return TEXT, self.string(json.dumps(value).encode())
        if isinstance(value, bool):
            return INT, int(value)
        if isinstance(value, Number):
            return _number(value)
        if isinstance(value, str):
            return TEXT, self.string(_raw(value))
        if isinstance(value, list):
            text = _written(value).encode("utf-8", "surrogateescape")
            return (TEXT, self.string(text)) if len(text) <= _MAX_ARRAY_TEXT else (0, 0)
        return 0, 0


def _written(value: object) -> str:
    """An array or object without spaces; its numbers as in the file."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(str(k))}:{_written(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_written, value)) + "]"
    return str(value) if isinstance(value, Number) else json.dumps(value, ensure_ascii=False)


def _columns(kinds: dict[str, Any], rows: list[tuple[int, ...]]) -> dict[str, npt.NDArray[Any]]:
    values = list(zip(*rows, strict=True)) or [()] * len(kinds)
    return {name: np.array(column, kind) for (name, kind), column in zip(kinds.items(), values, strict=True)}


def _skip(text: str, index: int, pattern: re.Pattern[str] = _SPACE) -> int:
    match = pattern.match(text, index)
    return match.end() if match else index


def _raw(value: object) -> bytes:
    """A value's text as a file would have it: decoded strings are escaped again if necessary."""
    text = _bare(value) or ""
    escaped = (
        text
        if isinstance(value, Number) or not re.search(r'["\\\x00-\x1f]', text)
        else json.dumps(text, ensure_ascii=False)[1:-1]
    )
    return escaped.encode("utf-8", "surrogateescape")


def _bare(value: object) -> str | None:
    """A string, number or literal as text; None for a missing value, an array or an object."""
    if isinstance(value, str):
        return str(value)
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else None


def _time(text: str | None) -> tuple[int, int, bool]:
    """Microseconds as text: (whole µs, rounded down; the rest in ps; whether it is a number)."""
    match = _TIME.fullmatch(text or "")
    if match:
        digits = (match[3] or "").ljust(7, "0")
        total = int(match[2]) * 10**6 + int(digits[:6]) + (digits[6] >= "5")
        whole, rest = divmod(-total if match[1] else total, 10**6)
    else:
        kind, bits = _number(Number(text or ""))
        if not kind:
            return 0, 0, False
        value = min(
            max(float(np.int64(bits).view(np.float64)) if kind == DOUBLE else float(bits), -4e18), 4e18
        )
        whole, rest = divmod(int((value - value // 1) * 1e6 + 0.5) + int(value // 1) * 10**6, 10**6)
    return min(max(whole, -_FAR_US - 1), _FAR_US), rest, True


def _number(text: Number) -> tuple[int, int]:
    if re.fullmatch(r"-?\d+", text) and len(text) < 4000:
        value = int(text)
        if -(2**63) < value < 2**63:
            return INT, value
        if 0 <= value < 2**64:
            return UINT, value - 2**64
    if not _NUMBER.fullmatch(text):
        return 0, 0
    try:
        number = float(text)
    except ValueError:
        return 0, 0
    return (DOUBLE, int(np.float64(number).view(np.int64))) if abs(number) < 1e300 else (0, 0)
