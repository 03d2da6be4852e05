"""A node of a TensorFlow graph → its inputs, device and attributes as readable text. Everything is bounded.

Field numbers: NodeDef input 3, device 4, attr 5 (key 1, value 2). AttrValue list 1, s 2, i 3, f 4, b 5,
type 6, shape 7, tensor 8, placeholder 9, func 10; ListValue has the same numbers 2 to 8, func 9.
TensorShapeProto dim 2 (size 1), unknown_rank 3. NameAttrList name 1, attr 2. TensorProto dtype 1,
tensor_shape 2, tensor_content 4, float_val 5, double_val 6, int_val 7, string_val 8, int64_val 10,
bool_val 11.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from tb_tpuprof.ingest.hlo.message import Message
from tb_tpuprof.trace.graph import Graph

MAX_ATTRIBUTES = 200
MAX_INPUTS = 200
MAX_LISTED = 32
MAX_VALUES = 16
MAX_TEXT = 300
_REFERENCE = 100
_LIST, _STRING, _INT, _FLOAT, _BOOL, _TYPE, _SHAPE, _TENSOR, _PLACEHOLDER, _FUNCTION = range(1, 11)
_LISTED_FUNCTION = 9
_KINDS = ("list", "text", "integer", "number", "boolean", "type", "shape", "tensor", "argument", "function")
# Types whose values in `tensor_content` NumPy reads, and the fields of other values.
_CONTENT = {
    1: "<f4",
    2: "<f8",
    3: "<i4",
    4: "u1",
    5: "<i2",
    6: "i1",
    9: "<i8",
    10: "?",
    17: "<u2",
    19: "<f2",
    22: "<u4",
    23: "<u8",
}
_INTEGERS = (3, 4, 5, 6, 9, 10, 17, 22, 23)
_FLOATS = {5: "<f4", 6: "<f8"}
TypeName = Callable[[int], str]


@dataclass(frozen=True)
class Attribute:
    """An attribute: its name, the kind of its value in words, and the value as text."""

    name: str
    kind: str
    value: str


@dataclass(frozen=True)
class NodeDetails:
    """A node's inputs as the graph names them, its device, and its attributes by name; `n_inputs` and
    `n_attributes` count also those beyond the limits.
    """

    inputs: tuple[str, ...]
    device: str
    attributes: tuple[Attribute, ...]
    n_inputs: int
    n_attributes: int


def node_details(graph: Graph, node: int, type_name: TypeName) -> NodeDetails:
    """Details of a node (row), read from the graph's bytes. `type_name` names a DataType's number."""
    message = Message(graph.data, int(graph.node_start[node]), int(graph.node_size[node]))
    inputs = message.spans(3)
    entries = message.spans(5)
    attributes = [_attribute(Message(graph.data, *span), type_name) for span in entries[:MAX_ATTRIBUTES]]
    return NodeDetails(
        tuple(_plain(graph.data[a : a + n].tobytes()) for a, n in inputs[:MAX_INPUTS]),
        _plain(message.blob(4)),
        tuple(sorted(attributes, key=lambda one: one.name)),
        len(inputs),
        len(entries),
    )


def _attribute(entry: Message, type_name: TypeName) -> Attribute:
    name, value = _plain(entry.blob(1)), entry.submessage(2)
    number = next((kind for kind in range(_LIST, _FUNCTION + 1) if value.has(kind)), 0)
    if not number:
        return Attribute(name, "empty", "")
    if number == _LIST:
        return Attribute(name, "list", _listed(value.submessage(_LIST), type_name))
    return Attribute(name, _KINDS[number - 1], next(_texts(value, number, type_name), ""))


def _listed(values: Message, type_name: TypeName) -> str:
    """All elements of a list, which has one kind; the first ones of a long list."""
    for number in (*range(_STRING, _TENSOR + 1), _LISTED_FUNCTION):
        if values.has(number):
            kind = _FUNCTION if number == _LISTED_FUNCTION else number
            shown = list(islice(_texts(values, kind, type_name, number), MAX_LISTED + 1))
            more = ", …" if len(shown) > MAX_LISTED else ""
            return f"[{', '.join(shown[:MAX_LISTED])}{more}]"
    return "[]"


def _texts(value: Message, kind: int, type_name: TypeName, number: int = 0) -> Iterator[str]:
    """The values of a field as text, the last one of a field that is not repeated."""
    number = number or kind
    if kind in (_INT, _BOOL, _TYPE):
        for one in value.numbers(number):
            yield str(one) if kind == _INT else _type(one, type_name) if kind == _TYPE else _bool(one)
    elif kind == _FLOAT:
        yield from (f"{one:.7g}" for one in _floats(value, number, "<f4"))
    elif kind in (_STRING, _PLACEHOLDER):
        as_text = _text if kind == _STRING else _plain
        yield from (
            as_text(value.data[start : start + size].tobytes()) for start, size in value.spans(number)
        )
    else:
        yield from (_compound(kind, inner, type_name) for inner in value.messages(number))


def _compound(kind: int, inner: Message, type_name: TypeName) -> str:
    if kind == _SHAPE:
        return _shape(inner)
    if kind == _TENSOR:
        return _tensor(inner, type_name)
    n_attributes = len(inner.spans(2))
    return _plain(inner.blob(1)) + (f" with {n_attributes} attributes" if n_attributes else "")


def _bool(value: int) -> str:
    return "true" if value else "false"


def _type(number: int, type_name: TypeName) -> str:
    return f"{type_name(number - _REFERENCE)} reference" if number > _REFERENCE else type_name(number)


def _plain(data: bytes) -> str:
    """A name: text without quotes, cut where it is very long."""
    text = data[: 4 * MAX_TEXT].decode("utf-8", "replace")
    return text if len(text) <= MAX_TEXT and len(data) <= 4 * MAX_TEXT else text[:MAX_TEXT] + "…"


def _text(data: bytes) -> str:
    """Text in quotes; other bytes as their number and their beginning in hexadecimal."""
    is_cut = len(data) > 4 * MAX_TEXT
    try:
        # Where it is cut, the last character may lack its end.
        text, _ = codecs.utf_8_decode(data[: 4 * MAX_TEXT], "strict", not is_cut)
        is_text = text.isprintable() or all(one.isprintable() or one in "\n\t\r" for one in text)
    except UnicodeDecodeError:
        is_text = False
    if is_text:
        return f'"{text[:MAX_TEXT]}{"…" if is_cut or len(text) > MAX_TEXT else ""}"'
    return f"{len(data):,} bytes: {data[:MAX_VALUES].hex(' ')}{' …' if len(data) > MAX_VALUES else ''}"


def _shape(shape: Message) -> str:
    if shape.flag(3):
        return "unknown rank"
    dims = shape.spans(2)
    sizes = [Message(shape.data, *span).number(1) for span in dims[:MAX_LISTED]]
    more = ", …" if len(dims) > MAX_LISTED else ""
    return f"[{', '.join('?' if size < 0 else str(size) for size in sizes)}{more}]"


def _tensor(tensor: Message, type_name: TypeName) -> str:
    """Type and shape of a constant, and its first values."""
    number = tensor.number(1)
    values = _values(tensor, number)
    shown = ", ".join(values[:MAX_VALUES]) + (", …" if len(values) > MAX_VALUES else "")
    head = f"{_type(number, type_name)}{_shape(tensor.submessage(2))}"
    return f"{head} = {shown}" if shown else head


def _values(tensor: Message, number: int) -> list[str]:
    """The first values of a constant as text, one more than are shown."""
    most = MAX_VALUES + 1
    start, size = tensor.span(4)
    if size and number in _CONTENT:
        content = np.dtype(_CONTENT[number])
        n = min(size // content.itemsize, most)
        found = np.frombuffer(tensor.data[start : start + n * content.itemsize].tobytes(), content).tolist()
        return [
            _bool(one) if number == 10 else f"{one:.7g}" if content.kind == "f" else str(one) for one in found
        ]
    for field, kind in _FLOATS.items():
        if tensor.has(field):
            return [f"{one:.7g}" for one in islice(_floats(tensor, field, kind), most)]
    if number in _INTEGERS:
        integers = [one for field in (7, 10, 11) for one in tensor.numbers(field)[:most]]
        return [_bool(one) if number == 10 else str(one) for one in integers[:most]]
    return [_text(tensor.data[a : a + n].tobytes()) for a, n in tensor.spans(8)[:most]]


def _floats(message: Message, number: int, kind: str) -> Iterator[float]:
    """A repeated field of floats or doubles, packed or not, or a single one."""
    size = np.dtype(kind).itemsize
    for start, length in message.spans(number):
        n = min(length // size, MAX_LISTED + 1)
        yield from np.frombuffer(message.data[start : start + n * size].tobytes(), kind).tolist()
    if not message.spans(number) and message.has(number):
        yield message.decimal(number)
