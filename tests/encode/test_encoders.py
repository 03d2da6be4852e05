"""Payloads in each format: JSON, binary columns, CSV and text say the same."""

from __future__ import annotations

import csv
import io
import json
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_tpuprof.encode import encode_columns, encode_csv, encode_json, encode_text
from tb_tpuprof.encode.columns import narrowed
from tb_tpuprof.errors import BadParameter
from tb_tpuprof.tools.base import Column, Diagnostic, NextStep, Payload, Scalar, Table, Verdict
from tb_tpuprof.tools.columns import text_column


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
    scalars = {"step_time_avg_ps": Scalar(float("nan"), "ps", "Step time"), "n": Scalar(np.int64(3), "count", "Steps")}
    verdict = Verdict("bad", "Slow.", "input", ("Because.",), (NextStep("Look", "trace_viewer", {"start_ps": "0"}),))
    diagnostics = (Diagnostic("warning", "No steps.", "Annotate."),)
    return Payload("x", "run/1", ("h",), {"ops": table}, scalars, verdict, diagnostics)


def decode_columns(body: bytes) -> dict[str, Any]:
    """Binary columns back to the JSON object: what docs/http_api.md tells a client to do."""
    assert body[:4] == b"TPC1"
    (size,) = struct.unpack("<I", body[4:8])
    assert size % 8 == 0
    told = json.loads(body[8 : 8 + size])
    types = {"u1": "<u1", "u2": "<u2", "u4": "<u4", "i1": "<i1", "i2": "<i2", "i4": "<i4", "f4": "<f4", "f8": "<f8"}
    for table in told["tables"].values():
        for column in table["columns"]:
            buffer = column.pop("buffer")
            assert buffer["offset"] % 8 == 0
            values = np.frombuffer(body, types[buffer["dtype"]], buffer["length"], 8 + size + buffer["offset"]).tolist()
            if buffer["delta"]:
                values = np.cumsum(values).tolist()
            if column["kind"] == "bool":
                values = [bool(value) for value in values]
            told_values = [None if value != value or abs(value) == float("inf") else value for value in values]
            column["codes" if "strings" in column else "values"] = told_values
    return told  # type: ignore[no-any-return]


def test_columns_hold_what_json_holds() -> None:
    assert decode_columns(encode_columns(payload())) == json.loads(encode_json(payload()))


def test_json_has_null_for_what_is_unknown() -> None:
    told = json.loads(encode_json(payload()))
    assert told["scalars"]["step_time_avg_ps"]["value"] is None
    assert told["scalars"]["n"]["value"] == 3
    assert told["tables"]["ops"]["columns"][2]["values"] == [0.5, None, None]
    assert told["tables"]["ops"]["n_rows"] == 3
    assert told["verdict"]["next"][0]["params"] == {"start_ps": "0"}


def test_csv_has_exact_values_and_no_formulas() -> None:
    rows = list(csv.DictReader(io.StringIO(encode_csv(payload()).decode())))
    assert [row["operation"] for row in rows] == ["'=cmd()", "Conv\x1b[31m<b>", ""]
    assert rows[0]["self_time_ps"] == "1500000000"
    assert [row["share"] for row in rows] == ["0.5", "", ""]
    with pytest.raises(BadParameter):
        encode_csv(payload(), "none")


def test_text_is_scaled_and_harmless_to_a_terminal() -> None:
    text = encode_text(payload())
    assert "1.5 ms" in text
    assert "50 %" in text
    assert "Slow." in text
    assert "\x1b" not in text
    assert "nan" not in text.lower().replace("name", "")


@given(st.lists(st.integers(-(2**52), 2**52), max_size=20), st.booleans())
def test_narrowing_keeps_every_value(values: list[int], delta: bool) -> None:
    name, array, is_delta = narrowed(Column("c", "C", np.array(values, np.int64), delta=delta))
    back = np.cumsum(array.astype(np.float64)) if is_delta else array.astype(np.float64)
    assert back.tolist() == values
    assert array.dtype.itemsize == int(name[1])


def test_text_columns_are_interned() -> None:
    column = text_column("c", "C", ["a", "b", "a"])
    assert list(column.strings or []) == ["a", "b"]
    assert column.values.tolist() == [0, 1, 0]
