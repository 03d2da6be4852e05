"""Payloads in each format: JSON, binary columns, CSV and text say the same."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import json
import math
import struct
import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_tpuprof.encode import encode_columns, encode_csv, encode_json, encode_text
from tb_tpuprof.encode.gzip import FAST, SMALL, gzipped
from tb_tpuprof.encode.json import dumps
from tb_tpuprof.errors import BadParameter
from tb_tpuprof.native import packed
from tb_tpuprof.session import Session
from tb_tpuprof.tools import all_tools
from tb_tpuprof.tools.payload import Column, Diagnostic, NextStep, Payload, Scalar, Table, Verdict
from tb_tpuprof.tools.trace_viewer.export import gzipped_parts
from tests.golden_files import demo_runs
from tests.payload_columns import text_column


def payload() -> Payload:
    """A payload with every kind of column, unknown values and names that are not to be trusted."""
    table = Table(
        "Operations",
        (
            Column("operation", "Operation", np.array([0, 1, -1]), strings=["=cmd()", "Conv\x1b[31m<b>"]),
            Column("self_time_ps", "Self", np.array([1_500_000_000, 2, 3]), "ps"),
            Column("share", "Share", np.array([0.5, np.nan, np.inf]), "fraction"),
            Column("eager", "Eager", np.array([True, False, True])),
            Column("start_ps", "Start", np.array([5, 9, 2**40]), "ps", delta=True),
        ),
    )
    scalars = {
        "step_time_avg_ps": Scalar(float("nan"), "ps", "Step time"),
        "n": Scalar(np.int64(3), "count", "Steps"),
    }
    verdict = Verdict(
        "bad", "Slow.", "input", ("Because.",), (NextStep("Look", "trace_viewer", {"start_ps": "0"}),)
    )
    diagnostics = (Diagnostic("warning", "No steps.", "Annotate."),)
    return Payload("x", "run/1", ("h",), {"ops": table}, scalars, verdict, diagnostics)


def decode_buffer(data: bytes, buffer: dict[str, Any]) -> list[Any]:
    """One column: floats as they are, whole numbers from their planes."""
    n, width = buffer["length"], int(buffer["dtype"][1])
    if buffer["dtype"][0] == "f":
        return np.frombuffer(data, f"<f{width}", n).tolist()  # type: ignore[no-any-return]
    planes = [data[k * n : k * n + n] for k in range(width)]
    numbers = [
        int.from_bytes(bytes(parts), "little", signed=buffer["dtype"][0] == "i")
        for parts in zip(*planes, strict=True)
    ]
    if buffer["delta"]:
        numbers = list(itertools.accumulate(numbers))
    return [buffer.get("base", 0) + buffer.get("scale", 1) * number for number in numbers]


def read_buffer(buffers: bytes, head: dict[str, Any]) -> list[Any]:
    """One buffer of those after the header."""
    assert head["offset"] % 8 == 0
    return decode_buffer(buffers[head["offset"] :], head)


def followed(
    numbers: list[Any], head: dict[str, Any], by_part: dict[str, list[list[Any]]], part: int
) -> list[Any]:
    """The values of a part: with `after`, each number counts from where the row before it ends."""
    if "after" not in head:
        return numbers
    lengths = by_part[head["after"]][part]
    return [number + sum(lengths[:i]) for i, number in enumerate(numbers)]


def decode_columns(body: bytes) -> dict[str, Any]:
    """Binary columns back to the JSON object, as docs/http_api.md describes for clients."""
    assert body[:4] == b"TPC1"
    (size,) = struct.unpack("<I", body[4:8])
    assert size % 8 == 0
    header = json.loads(body[8 : 8 + size])
    for table in header["tables"].values():
        parts = table.pop("parts", None)
        part_of_row = read_buffer(body[8 + size :], parts) if parts else []
        by_part = {
            column["name"]: [read_buffer(body[8 + size :], buffer) for buffer in column.get("buffers", ())]
            for column in table["columns"]
        }
        for column in table["columns"]:
            if "buffer" in column:
                values = read_buffer(body[8 + size :], column.pop("buffer"))
            else:
                rows = [
                    iter(followed(numbers, buffer, by_part, part))
                    for part, (numbers, buffer) in enumerate(
                        zip(by_part[column["name"]], column.pop("buffers"), strict=True)
                    )
                ]
                values = [next(rows[part]) for part in part_of_row]
            if column["kind"] == "bool":
                values = [bool(value) for value in values]
            told_values = [
                None if value != value or abs(value) == float("inf") else value for value in values
            ]
            column["codes" if "strings" in column else "values"] = told_values
    return header  # type: ignore[no-any-return]


def test_columns_hold_what_json_holds() -> None:
    assert decode_columns(encode_columns(payload())) == json.loads(encode_json(payload()))


def test_json_has_null_for_what_is_unknown() -> None:
    answer = json.loads(encode_json(payload()))
    assert answer["scalars"]["step_time_avg_ps"]["value"] is None
    assert answer["scalars"]["n"]["value"] == 3
    assert answer["tables"]["ops"]["columns"][2]["values"] == [0.5, None, None]
    assert answer["tables"]["ops"]["n_rows"] == 3
    assert answer["verdict"]["next"][0]["params"] == {"start_ps": "0"}


def test_csv_has_exact_values_and_no_formulas() -> None:
    rows = list(csv.DictReader(io.StringIO(encode_csv(payload()).decode())))
    assert [row["operation"] for row in rows] == ["'=cmd()", "Conv\x1b[31m<b>", ""]
    assert rows[0]["self_time_ps"] == "1500000000"
    assert [row["share"] for row in rows] == ["0.5", "", ""]
    with pytest.raises(BadParameter):
        encode_csv(payload(), "none")


def test_text_is_scaled_and_harmless_to_a_terminal() -> None:
    text = encode_text(payload())
    assert "1.50 ms" in text
    assert "50.0%" in text
    assert "Slow." in text
    assert "\x1b" not in text
    assert "nan" not in text.lower().replace("name", "")


def column_values(values: np.ndarray[Any, Any]) -> Any:
    """What a client reads of a column of these values."""
    table = Table("T", (Column("c", "C", values),))
    return json.loads(encode_json(Payload("x", "r", (), {"t": table})))["tables"]["t"]["columns"][0]["values"]


def plain(values: np.ndarray[Any, Any]) -> list[Any]:
    """The same by Python's own numbers: exact integers, doubles, null for what is not finite."""
    return [None if isinstance(one, float) and not math.isfinite(one) else one for one in values.tolist()]


def same_numbers(left: list[Any], right: list[Any]) -> bool:
    """Equal, of the same kind (1 is not 1.0), and zeros of the same sign."""
    return [repr(one) for one in left] == [repr(one) for one in right]


@settings(deadline=None, max_examples=300)
@given(
    st.lists(st.floats(), max_size=30),
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=30),
    st.integers(0, 10),
    st.integers(1, 2**62),
)
def test_json_holds_every_number_exactly(reals: list[float], whole: list[int], shift: int, base: int) -> None:
    bits = np.array(whole, np.int64).view(np.float64)
    near = np.nextafter(np.array([2.0 ** (base % 2098 - 1074), 10.0 ** (base % 632 - 323)]), 0.0)
    short = [*reals, base / 10**shift, base >> shift, 5e-324, -0.0, 1e16, 9999999999999998.0, 1e-4, 9e-5]
    numbers = np.array(whole, np.int64)
    with np.errstate(over="ignore"):
        narrow = np.array(short).astype(np.float32)
    for values in (
        bits,
        np.array(short, np.float64),
        narrow,
        narrow.astype(np.float16) if np.isfinite(narrow).all() and abs(narrow).max() < 6e4 else narrow[:0],
        np.concatenate([near, np.nextafter(near, np.inf)]),
        numbers,
        numbers.view(np.uint64),
        numbers[::2],
        numbers.astype(">i8"),
        (numbers % 100).astype(np.int8),
        numbers % 2 == 0,
    ):
        values.flags.writeable = False  # as columns are
        assert same_numbers(column_values(values), plain(values))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"text": "a\ud800b", "\udfff": 1}, b'{"text":"a?b","?":1}'),
        ({"n": 2**64, "m": -(2**63) - 1}, b'{"n":18446744073709551616,"m":-9223372036854775809}'),
        ({"lone": "\ud800", "column": np.array([1.5, np.nan])}, b'{"lone":"?","column":[1.5,null]}'),
        ({"µ": '–\u2028\0"', "t": (1, None, True)}, '{"µ":"–\u2028\\u0000\\"","t":[1,null,true]}'.encode()),
        ({"none": float("nan"), "far": -np.inf}, b'{"none":null,"far":null}'),
    ],
)
def test_json_of_what_utf_8_or_64_bits_do_not_hold(value: object, expected: bytes) -> None:
    assert dumps(value) == expected


WHOLE = st.integers(-(2**53) + 1, 2**53 - 1)
LISTS = st.one_of(
    st.lists(WHOLE, max_size=20), st.lists(st.integers(-300, 300).map(lambda i: 10**9 + 7 * i), max_size=20)
)


@given(LISTS, st.booleans())
def test_packing_keeps_every_value(values: list[int], delta: bool) -> None:
    encoded = encode_columns(
        Payload("x", "r", (), {"t": Table("T", (Column("c", "C", np.array(values, np.int64), delta=delta),))})
    )
    (column,) = decode_columns(encoded)["tables"]["t"]["columns"]
    assert column["values"] == values


def test_what_is_regular_takes_a_byte_and_ids_of_a_far_host_two() -> None:
    regular = np.arange(300, dtype=np.int64) * 2_446_501_994 + 12_345
    far = 77 * 2**40 + np.arange(0, 60_000, 200, dtype=np.int64)
    assert [packed(regular, True)[:3], packed(far, False)[0]] == [("u1", 12_345, 2_446_501_994), "u2"]
    assert packed(np.array([5, 1, 5]), False) == ("u1", 0, 1, b"\5\1\5")
    assert packed(np.array([1000, 1512, 1256]), True) == ("i1", 1000, 256, b"\0\2\xff")


def in_parts(n: int, seed: int, longest: int) -> Payload:
    """Rows of three unlike parts that alternate at random: regular starts, gaps, and ones that overlap."""
    chance = np.random.default_rng(seed)
    part = chance.integers(0, 3, n).astype(np.uint8) * 7
    length = np.where(part == 7, chance.integers(1, longest, n), chance.integers(0, 3, n) * 1000)
    start = np.zeros(n, np.int64)
    for number, gap in ((0, 5_000), (7, 3), (14, -400)):
        rows = np.flatnonzero(part == number)
        steps = np.full(len(rows), gap) + (np.append(0, length[rows][:-1])[: len(rows)] if number == 7 else 0)
        start[rows] = 10**9 * number + np.cumsum(steps)
    columns = (
        Column("start_ps", "Start", start, "ps", delta=True, after="length_ps"),
        Column("length_ps", "Length", length, "ps"),
        Column("name", "Name", chance.integers(-1, 3, n), strings=["a", "b", "c"]),
        Column("row", "Row", np.arange(n) // 100),
        Column("share", "Share", chance.random(n), "fraction"),
        Column("is_new", "New", chance.random(n) < 0.5),
    )
    return Payload("x", "r", (), {"t": Table("T", columns, parts=part), "u": Table("U", columns[:2])})


@pytest.mark.parametrize("n", [0, 1, 2_047, 2_048, 5_000])
def test_rows_sent_in_parts_are_the_same_rows(n: int) -> None:
    payload = in_parts(n, seed=n, longest=90_000)
    body = encode_columns(payload)
    assert decode_columns(body) == json.loads(encode_json(payload))
    assert (b'"parts"' in body) == (n >= 2_048)


def test_starts_follow_the_end_before_where_that_is_smaller() -> None:
    payload = in_parts(4_000, seed=1, longest=2**40)
    (size,) = struct.unpack("<I", encode_columns(payload)[4:8])
    table = json.loads(encode_columns(payload)[8 : 8 + size])["tables"]["t"]
    assert [one.get("after") for one in table["columns"][0]["buffers"]] == [None, "length_ps", None]
    assert table["columns"][0]["buffers"][1]["dtype"] == "u1"
    assert ["buffers" in column for column in table["columns"]] == [True, True, True, False, True, True]


def test_starts_follow_nothing_where_sums_exceed_a_browsers_numbers() -> None:
    payload = in_parts(3_000, seed=2, longest=int(0.7 * 2**53 / 500))
    starts = payload.tables["t"].columns[0].values
    assert 2**52 < int(starts.max()) < 2**53
    body = encode_columns(payload)
    (size,) = struct.unpack("<I", body[4:8])
    buffers = json.loads(body[8 : 8 + size])["tables"]["t"]["columns"][0]["buffers"]
    assert "after" not in buffers[1]
    assert decode_columns(body) == json.loads(encode_json(payload))


def test_numbers_beyond_a_browsers_are_floats() -> None:
    body = encode_columns(Payload("x", "r", (), {"t": Table("T", (Column("c", "C", np.array([2**60, 1])),))}))
    assert decode_columns(body)["tables"]["t"]["columns"][0]["values"] == [float(2**60), 1.0]


@pytest.mark.parametrize("n", [0, 1, 1000, 40_000, 300_000])
@pytest.mark.parametrize("dense", [0.0, 0.5, 1.0])
def test_compressed_columns_are_gzip(n: int, dense: float) -> None:
    chance = np.random.default_rng(n)
    numbers = chance.integers(0, 256, n) * (chance.random(n // 1000 + 1) < dense).repeat(1000)[:n]
    body = encode_columns(
        Payload(
            "x",
            "r",
            (),
            {"t": Table("T", (Column("c", "C", numbers), Column("d", "D", np.arange(n), delta=True)))},
        )
    )
    packed = gzipped(body, FAST)
    assert gzip.decompress(packed) == body
    if n >= 40_000:
        assert len(packed) < n * (dense + 0.15) + 2000


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.binary(min_size=1, max_size=600), st.integers(1, 700)), max_size=12),
    st.sampled_from([FAST, SMALL]),
)
def test_gzip_holds_what_was_packed_and_adds_little_at_most(
    parts: list[tuple[bytes, int]], level: int
) -> None:
    data = b"".join(piece * repeats for piece, repeats in parts)[:100_000]
    packed = gzipped(data, level)
    assert gzip.decompress(packed) == data
    assert packed == gzipped(data, level), "an answer's bytes depend on when it was made"
    assert len(packed) <= 1.001 * len(data) + 100


@pytest.mark.parametrize("log", demo_runs())
def test_the_answers_about_real_runs_are_hardly_larger_than_zlibs(log: str) -> None:
    """ISA-L packs some made-up data eight times worse than zlib, such as one short piece 500 times."""
    session = Session(str(demo_runs()[log]), cache=False)
    compared = 0
    for tool in all_tools():
        if tool.availability(session):
            params = {"width_px": 1000} if tool.name == "trace_viewer" else {}
            payload = tool.run(session, None, params)
            for body, level in ((encode_json(payload), SMALL), (encode_columns(payload), FAST)):
                assert len(gzipped(body, level)) <= 1.05 * len(gzip.compress(body, 1)), tool.name
                compared += 1
    assert compared >= 10


def test_a_file_in_parts_is_one_member_of_gzip() -> None:
    parts = [b"a" * 100_000, b"", np.random.default_rng(1).bytes(70_000), b"end"]
    packed = b"".join(gzipped_parts(iter(parts)))
    unpacked = zlib.decompressobj(31)
    assert unpacked.decompress(packed) == b"".join(parts)
    assert unpacked.eof
    assert not unpacked.unused_data
    assert gzip.decompress(b"".join(gzipped_parts([]))) == b""


def test_text_columns_are_interned() -> None:
    column = text_column("c", "C", ["a", "b", "a"])
    assert list(column.strings or []) == ["a", "b"]
    assert column.values.tolist() == [0, 1, 0]
