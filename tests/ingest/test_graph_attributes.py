"""Attributes of a graph's nodes as text: every kind of value, by its definition in TensorFlow's protos, and
the bounds of long ones.
"""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_tpuprof.analysis.graphs.tpu_compatibility import type_name
from tb_tpuprof.ingest.graphs.attributes import (
    MAX_ATTRIBUTES,
    MAX_INPUTS,
    MAX_LISTED,
    MAX_TEXT,
    MAX_VALUES,
    NodeDetails,
    node_details,
)
from tb_tpuprof.ingest.graphs.graph_def import read_graph
from tests.graph_files import attribute, field, graph_def, node, varint


def details(*nodes: bytes, of: int = 0) -> NodeDetails:
    """Details of one of a graph's nodes."""
    data = np.frombuffer(graph_def(nodes), np.uint8)
    return node_details(read_graph(data, 0, len(data)), of, type_name)


def value_of(value: bytes) -> tuple[str, str]:
    """Kind and text of an attribute with this AttrValue."""
    (one,) = details(node("Op") + attribute("a", value)).attributes
    assert one.name == "a"
    return one.kind, one.value


def fixed32(number: int, value: float) -> bytes:
    return varint(number << 3 | 5) + struct.pack("<f", value)


def shape(*dims: int) -> bytes:
    """A TensorShapeProto; -1 is an unknown size."""
    return b"".join(field(2, field(1, dim & (2**64 - 1))) for dim in dims)


def tensor(dtype: int, dims: bytes, **more: bytes | int) -> bytes:
    """A TensorProto; further fields as f<number>=value."""
    return (
        field(1, dtype) + field(2, dims) + b"".join(field(int(key[1:]), value) for key, value in more.items())
    )


CASES = {
    "text": (field(2, "SAME"), "text", '"SAME"'),
    "empty text": (field(2, ""), "text", '""'),
    "bytes": (field(2, b"\x0a\xff\x00"), "text", "3 bytes: 0a ff 00"),
    "integer": (field(3, 2**64 - 7), "integer", "-7"),
    "number": (fixed32(4, 0.1), "number", "0.1"),
    "true": (field(5, 1), "boolean", "true"),
    "false": (field(5, 0), "boolean", "false"),
    "type": (field(6, 14), "type", "bfloat16"),
    "reference": (field(6, 101), "type", "float32 reference"),
    "new type": (field(6, 99), "type", "type 99"),
    "shape": (field(7, shape(-1, 224, 3)), "shape", "[?, 224, 3]"),
    "scalar": (field(7, b""), "shape", "[]"),
    "no rank": (field(7, field(3, 1)), "shape", "unknown rank"),
    "argument": (field(9, "T"), "argument", "T"),
    "function": (field(10, field(1, "cond_true_7")), "function", "cond_true_7"),
    "function with attributes": (
        field(10, field(1, "f") + field(2, field(1, "x")) + field(2, field(1, "y"))),
        "function",
        "f with 2 attributes",
    ),
    "content": (
        field(8, tensor(3, shape(2, 2), f4=struct.pack("<4i", 1, -2, 3, 4))),
        "tensor",
        "int32[2, 2] = 1, -2, 3, 4",
    ),
    "float content": (
        field(8, tensor(1, shape(2), f4=struct.pack("<2f", 0.5, -1e9))),
        "tensor",
        "float32[2] = 0.5, -1e+09",
    ),
    "bools": (field(8, tensor(10, shape(2), f4=b"\x01\x00")), "tensor", "bool[2] = true, false"),
    "float value": (field(8, tensor(1, b"") + fixed32(5, 2.5)), "tensor", "float32[] = 2.5"),
    "packed floats": (
        field(8, tensor(1, shape(2), f5=struct.pack("<2f", 1.5, 2))),
        "tensor",
        "float32[2] = 1.5, 2",
    ),
    "int value": (field(8, tensor(9, b"", f10=2**64 - 1)), "tensor", "int64[] = -1"),
    "strings": (
        field(8, tensor(7, shape(2)) + field(8, "a") + field(8, b"\xff")),
        "tensor",
        'string[2] = "a", 1 bytes: ff',
    ),
    "no values": (field(8, tensor(14, shape(8, 4), f4=b"\0" * 64)), "tensor", "bfloat16[8, 4]"),
    "types": (field(1, field(6, varint(1) + varint(3))), "list", "[float32, int32]"),
    "shapes": (field(1, field(7, shape(2)) + field(7, field(3, 1))), "list", "[[2], unknown rank]"),
    "texts": (field(1, field(2, "a") + field(2, "b")), "list", '["a", "b"]'),
    "functions": (field(1, field(9, field(1, "f")) + field(9, field(1, "g"))), "list", "[f, g]"),
    "no list": (field(1, b""), "list", "[]"),
    "nothing": (b"", "empty", ""),
}


@pytest.mark.parametrize("case", CASES)
def test_each_kind_of_value(case: str) -> None:
    value, kind, text = CASES[case]
    assert value_of(value) == (kind, text)


def test_attributes_inputs_and_the_device_of_the_right_node() -> None:
    first = node("Add", "a", device="/cpu:0", T=1)
    second = (
        node("Mul", "b", T=3) + field(3, "a") + field(3, "a:1") + field(3, "^c") + attribute("k", field(3, 7))
    )
    found = details(first, second, of=1)
    assert found.inputs == ("a", "a:1", "^c")
    assert found.device == ""
    assert [(one.name, one.value) for one in found.attributes] == [("T", "int32"), ("k", "7")]
    assert details(first, second).device == "/cpu:0"
    assert details(first, second).inputs == ()


@pytest.mark.parametrize("extra", [0, 1])
def test_bounds(extra: int) -> None:
    more = ", …" if extra else ""
    numbers = b"".join(map(varint, range(MAX_LISTED + extra)))
    assert value_of(field(1, field(3, numbers)))[1] == f"[{', '.join(map(str, range(MAX_LISTED)))}{more}]"
    dims = shape(*range(MAX_LISTED + extra))
    assert value_of(field(7, dims))[1] == f"[{', '.join(map(str, range(MAX_LISTED)))}{more}]"
    content = np.arange(MAX_VALUES + extra, dtype="<i4").tobytes()
    listed = ", ".join(map(str, range(MAX_VALUES)))
    assert value_of(field(8, tensor(3, shape(-1), f4=content)))[1] == f"int32[?] = {listed}{more}"
    cut = "…" if extra else ""
    assert value_of(field(2, "x" * (MAX_TEXT + extra)))[1] == f'"{"x" * MAX_TEXT}{cut}"'
    assert value_of(field(9, "x" * (MAX_TEXT + extra)))[1] == "x" * MAX_TEXT + cut
    data = b"\xff" * (MAX_VALUES + extra)
    assert value_of(field(2, data))[1].endswith("ff …" if extra else "ff ff")


@pytest.mark.parametrize("letter", ["x", "é", "が", "😀"])
@pytest.mark.parametrize("before", ["", "a", "ab", "abc"])
@pytest.mark.parametrize("n", [MAX_TEXT, MAX_TEXT + 1, 5 * MAX_TEXT])
def test_text_is_cut_between_letters(letter: str, before: str, n: int) -> None:
    """Of any number of bytes."""
    text = before + letter * (n - len(before))
    cut = "…" if n > MAX_TEXT else ""
    assert value_of(field(2, text)) == ("text", f'"{text[:MAX_TEXT]}{cut}"')
    assert value_of(field(9, text)) == ("argument", f"{text[:MAX_TEXT]}{cut}")


def test_text_that_ends_within_a_letter_is_bytes() -> None:
    assert value_of(field(2, "aé".encode()[:-1]))[1] == "2 bytes: 61 c3"
    assert value_of(field(2, b"x" * 2000 + b"\xff"))[1].startswith('"xxx')  # as far as it is read
    assert value_of(field(2, b"\xff" + b"x" * 2000))[1].startswith("2,001 bytes: ff 78")


@pytest.mark.parametrize(("text", "is_text"), [("a\n\tb\r", True), ("a\x00", False), ("a\u200b", False)])
def test_lines_are_text_and_control_characters_are_not(text: str, is_text: bool) -> None:
    assert value_of(field(2, text))[1].startswith('"') is is_text


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (3, "int32"),
        (4, "uint8"),
        (5, "int16"),
        (6, "int8"),
        (9, "int64"),
        (17, "uint16"),
        (22, "uint32"),
        (23, "uint64"),
    ],
)
@pytest.mark.parametrize("of", [7, 10, 11])
def test_whole_numbers_of_each_type(number: int, name: str, of: int) -> None:
    """In `int_val`, `int64_val` or `bool_val`."""
    packed = varint(1) + varint(5)
    found = value_of(field(8, tensor(number, shape(2)) + field(of, packed)))
    assert found[1] == f"{name}[2] = 1, 5"
    size = {4: 1, 6: 1, 5: 2, 17: 2, 9: 8, 23: 8}.get(number, 4)
    content = (1).to_bytes(size, "little") + (5).to_bytes(size, "little")
    assert value_of(field(8, tensor(number, shape(2), f4=content)))[1] == f"{name}[2] = 1, 5"


@pytest.mark.parametrize("number", [1, 2, 7, 8])
def test_whole_numbers_of_other_types_are_left_out(number: int) -> None:
    found = value_of(field(8, tensor(number, shape(1), f7=varint(1))))[1]
    assert found == f"{type_name(number)}[1]"


def test_whole_numbers_have_all_digits() -> None:
    content = struct.pack("<q", 2**60 + 1)
    assert value_of(field(8, tensor(9, b"", f4=content)))[1] == f"int64[] = {2**60 + 1}"


def test_many_attributes_and_inputs_are_counted() -> None:
    many = node("Op") + b"".join(attribute(f"a{i:03}", field(3, i)) for i in range(MAX_ATTRIBUTES + 1))
    found = details(many + b"".join(field(3, f"n{i}") for i in range(MAX_INPUTS + 1)))
    assert (len(found.attributes), found.n_attributes) == (MAX_ATTRIBUTES, MAX_ATTRIBUTES + 1)
    assert (len(found.inputs), found.n_inputs) == (MAX_INPUTS, MAX_INPUTS + 1)
    assert found.attributes[-1].value == str(MAX_ATTRIBUTES - 1)


@given(st.binary(max_size=80))
def test_any_bytes_of_a_value_are_read_or_left_out(value: bytes) -> None:
    for one in details(node("Op") + attribute("a", value)).attributes:
        assert len(one.value) < 20_000
