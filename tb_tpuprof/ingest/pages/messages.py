"""The protobufs of pages: overview, input pipeline, TensorFlow's operations, GPU kernels → what they state.

    OverviewPage      2 InputPipelineAnalysisResult  3 analysis  4 recommendation  6 run environment
    InputPipeline…    4 steps (Any)  6 operations  7 recommendation  9 hardware
    TfStatsDatabase   4 table with idle time  5 without it      KernelStatsDb   1 kernels

Numbers in a message are all varints or doubles; what is written otherwise is left out.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tb_tpuprof.ingest.pages.page import (
    GIGA,
    MOST_ROWS,
    PS_PER_MS,
    PS_PER_NS,
    PS_PER_US,
    SavedPage,
    text_of,
    time_of,
)
from tb_tpuprof.native import ints, parts, spans

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Span = tuple[int, int]
_GENERIC_STEP, _TPU_STEP = b"PerGenericStepDetails", b"PerTpuStepDetails"


@dataclass(frozen=True)
class _Field:
    """A field of a record: its column, number, kind and the factor to the column's unit. A `rate` of 0 is
    unknown.
    """

    column: str
    number: int
    kind: Literal["text", "number", "rate", "time"] = "number"
    scale: float = 1.0


_OPERATION = (
    _Field("place", 2, "text"),
    _Field("type", 3, "text"),
    _Field("operation", 4, "text"),
    _Field("occurrences", 5),
    _Field("total_time_ps", 6, "time", PS_PER_US),
    _Field("self_time_ps", 8, "time", PS_PER_US),
    _Field("device_fraction", 10),
    _Field("host_fraction", 12),
    _Field("flop_rate", 14, "rate", GIGA),
    _Field("bandwidth", 15, "rate", GIGA),
    _Field("intensity", 16, "rate"),
    _Field("bound_by", 17, "text"),
)
_KERNEL = (
    _Field("kernel", 1, "text"),
    _Field("operation", 12, "text"),
    _Field("occurrences", 13),
    _Field("total_time_ps", 7, "time", PS_PER_NS),
    _Field("min_time_ps", 8, "time", PS_PER_NS),
    _Field("max_time_ps", 9, "time", PS_PER_NS),
    _Field("registers", 2),
    _Field("static_shared_bytes", 3),
    _Field("dynamic_shared_bytes", 4),
)
_INPUT_OPERATION = (
    _Field("operation", 1, "text"),
    _Field("category", 7, "text"),
    _Field("occurrences", 2),
    _Field("total_time_ps", 3, "time", PS_PER_MS),
    _Field("total_fraction", 4, "number", 0.01),
    _Field("self_time_ps", 5, "time", PS_PER_MS),
    _Field("self_fraction", 6, "number", 0.01),
)
_TOP_OPERATION = (
    _Field("operation", 1, "text"),
    _Field("type", 2, "text"),
    _Field("time_fraction", 3),
    _Field("cumulative_fraction", 4),
    _Field("flop_rate", 5, "rate", GIGA),
)
_GENERIC_STEPS = (
    _Field("step", 1),
    _Field("device_compute_ps", 6, "time", PS_PER_MS),
    _Field("device_to_device_ps", 7, "time", PS_PER_MS),
    _Field("collectives_ps", 13, "time", PS_PER_MS),
    _Field("input_ps", 11, "time", PS_PER_MS),
    _Field("host_to_device_ps", 12, "time", PS_PER_MS),
    _Field("output_ps", 5, "time", PS_PER_MS),
    _Field("host_compute_ps", 8, "time", PS_PER_MS),
    _Field("host_prepare_ps", 9, "time", PS_PER_MS),
    _Field("host_compile_ps", 10, "time", PS_PER_MS),
    _Field("other_ps", 3, "time", PS_PER_MS),
)
_TPU_STEPS = (
    _Field("step", 1),
    _Field("compute_ps", 13, "time", PS_PER_MS),
    _Field("input_ps", 3, "time", PS_PER_MS),
    _Field("output_ps", 15, "time", PS_PER_MS),
    _Field("idle_ps", 14, "time", PS_PER_MS),
    _Field("input_fraction", 4, "number", 0.01),
)
# (name, field, kind) of what the analysis and the run environment state.
_ANALYSIS = (
    ("MXU utilization percent", 1),
    ("device idle time percent", 2),
    ("host idle time percent", 3),
    ("FLOP rate percent of the roofline", 7),
    ("memory bandwidth percent of the limit", 8),
    ("device computations in 16 bits percent", 9),
    ("device computations in 32 bits percent", 10),
    ("operations on the host percent", 11),
    ("operations on the device percent", 12),
)
_ENVIRONMENT = (("hosts", 1), ("tasks", 2), ("device cores", 5), ("replicas", 9), ("cores per replica", 10))
_INPUT_TIMES = (
    ("reading files on demand ms", 1),
    ("reading files in advance ms", 2),
    ("preprocessing ms", 3),
    ("enqueuing ms", 4),
    ("other input ms", 5),
)


class _Message:
    """Reads fields of one message of a file."""

    def __init__(self, data: Bytes, span: Span) -> None:
        self.data, self.span = data, span

    def message(self, number: int) -> _Message:
        """The last message in a field; empty if there is none."""
        listed = self.listed(number)
        return _Message(self.data, listed[-1] if listed else (0, 0))

    def listed(self, number: int) -> list[Span]:
        """All messages or texts of a field."""
        start, size = self.span
        _, starts, sizes = parts(self.data, np.array([start]), np.array([size]), number)
        return list(zip(starts[:MOST_ROWS].tolist(), sizes[:MOST_ROWS].tolist(), strict=True))

    def text(self, number: int) -> str:
        """A text, empty if absent."""
        listed = self.listed(number)
        return text_of(self.bytes_at(listed[-1])) if listed else ""

    def texts(self, number: int) -> list[str]:
        """All texts of a field that are not empty."""
        return [text for span in self.listed(number)[:100] if (text := text_of(self.bytes_at(span)))]

    def number(self, number: int) -> float:
        """A number, NaN if absent."""
        (value,) = _records(self.data, [self.span], (_Field("", number),))[""]
        return float(value)

    def bytes_at(self, span: Span) -> str:
        """A text of the file, of which only the first 4 KiB are read."""
        start, size = span
        return self.data[start : start + min(size, 4096)].tobytes().decode("utf-8", "replace")


def overview_page(page: str, data: Bytes) -> SavedPage:
    """Steps, top operations, facts about the job, and sentences."""
    whole = _Message(data, (0, len(data)))
    inner, analysis, advice, place = (whole.message(number) for number in (2, 3, 4, 6))
    input_page = _input(page, inner)
    tables = dict(input_page.tables)
    top = analysis.listed(4)
    if top:
        tables["top_operations"] = _records(data, top, _TOP_OPERATION)
    facts = [(name, _shown(analysis.number(number))) for name, number in _ANALYSIS]
    facts += [("device type", place.text(4))]
    facts += [(name, _shown(place.number(number))) for name, number in _ENVIRONMENT]
    statements = [advice.text(2), analysis.text(5), *input_page.statements]
    tips = [_Message(data, span).text(1) for number in (3, 4, 5) for span in advice.listed(number)[:20]]
    return SavedPage(
        page,
        (*_given(facts), *input_page.facts),
        tuple(dict.fromkeys(filter(None, statements))),
        tuple(dict.fromkeys(filter(None, (*tips, *input_page.advice)))),
        tables,
    )


def input_pipeline(page: str, data: Bytes) -> SavedPage:
    """Steps and the input operations."""
    return _input(page, _Message(data, (0, len(data))))


def _input(page: str, message: _Message) -> SavedPage:
    data, tables = message.data, {}
    steps = _steps(data, message.listed(4))
    if steps:
        tables["steps"] = steps
    operations = message.listed(6)
    if operations:
        tables["input_operations"] = _records(data, operations, _INPUT_OPERATION)
    advice, times = message.message(7), message.message(5)
    classified = advice.message(2).message(2)
    facts = [("hardware", message.text(9)), ("bottleneck", classified.text(1))]
    facts += [(name, _shown(times.number(number) / 1000)) for name, number in _INPUT_TIMES]
    statements = [classified.text(number) for number in (2, 4, 6)]
    return SavedPage(
        page,
        tuple(_given(facts)),
        tuple(filter(None, statements)),
        tuple(dict.fromkeys(advice.texts(1))),
        tables,
    )


def _steps(data: Bytes, spans_of_any: list[Span]) -> dict[str, Any]:
    """The steps, each in an Any (1 its type, 2 the message); those of the first type that is known."""
    wrapped = [_Message(data, span) for span in spans_of_any]
    for name, columns in ((_GENERIC_STEP, _GENERIC_STEPS), (_TPU_STEP, _TPU_STEPS)):
        of_type = [step for step in wrapped if step.text(1).encode().endswith(b"." + name)]
        if of_type:
            table = _records(data, [step.message(2).span for step in of_type], columns)
            step = np.nan_to_num(table["step"])  # the first step is 0, which protobuf leaves out
            table["step"] = [str(int(number)) for number in step.tolist()]
            return table
    return {}


def tensorflow_stats(page: str, data: Bytes) -> SavedPage:
    """TensorFlow's operations, with the devices' idle time if the page has both tables."""
    whole = _Message(data, (0, len(data)))
    for number in (4, 5, 1, 2):
        listed = whole.message(number).listed(1)
        if listed:
            facts = _given([("device type", whole.text(6))])
            return SavedPage(page, tuple(facts), tables={"operations": _records(data, listed, _OPERATION)})
    return SavedPage(page)


def kernel_stats(page: str, data: Bytes) -> SavedPage:
    """GPU kernels."""
    listed = _Message(data, (0, len(data))).listed(1)
    if not listed:
        return SavedPage(page)
    table = _records(data, listed, _KERNEL)
    return SavedPage(
        page, tables={"kernels": table | {"grid": _sizes(data, listed, 6), "block": _sizes(data, listed, 5)}}
    )


def _sizes(data: Bytes, records: list[Span], number: int) -> list[str]:
    """A repeated number of each record, as `32 × 1 × 1`."""
    starts, sizes = (np.array([span[i] for span in records], np.int64) for i in (0, 1))
    offsets, values = ints(data, starts, sizes, number)
    bounds = offsets.tolist()
    return [
        " × ".join(map(str, values[first : min(end, first + 3)].tolist()))
        for first, end in itertools.pairwise(bounds)
    ]


def _given(facts: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(name, text) for name, text in facts if text]


def _shown(value: float) -> str:
    """A number as text, empty for NaN and for 0: a protobuf of version 3 leaves out both 0 and no value."""
    return f"{value:,.6g}" if value == value and value else ""


def _records(data: Bytes, records: list[Span], columns: tuple[_Field, ...]) -> dict[str, Any]:
    """Columns of messages of one kind. An absent number is 0, as in protobuf version 3."""
    starts, sizes = (np.array([span[i] for span in records], np.int64) for i in (0, 1))
    numbers = np.array([column.number for column in columns], np.int64)
    values, lengths, _, _ = spans(data, starts, sizes, numbers)
    table: dict[str, Any] = {}
    for i, column in enumerate(columns):
        if column.kind == "text":
            table[column.column] = [
                text_of(data[start : start + min(size, 4096)].tobytes().decode("utf-8", "replace"))
                if size > 0
                else ""
                for start, size in zip(values[:, i].tolist(), lengths[:, i].tolist(), strict=True)
            ]
            continue
        numbers_read = _numbers(data, values[:, i], lengths[:, i])
        if column.kind == "time":
            numbers_read = np.array([time_of(n, column.scale) for n in numbers_read.tolist()], np.float64)
        elif column.kind == "rate":
            numbers_read = np.where(numbers_read > 0, numbers_read, np.nan) * column.scale
        else:
            numbers_read = numbers_read * column.scale
        table[column.column] = numbers_read
    return table


def _numbers(data: Bytes, values: Ints, lengths: Ints) -> Floats:
    """Varints, and doubles at their positions; 0 for what is absent, NaN for anything else."""
    numbers = np.where(lengths == 0, values, 0).astype(np.float64)
    is_double = lengths == 8
    places = np.where(is_double, values, 0)
    gathered = data[np.minimum(places[:, None] + np.arange(8), max(len(data) - 1, 0))]
    doubles = np.ascontiguousarray(gathered).view("<f8").reshape(-1)
    with np.errstate(invalid="ignore"):
        numbers = np.where(is_double, doubles, numbers)
    return np.where((lengths <= 0) | is_double, np.where(np.isfinite(numbers), numbers, np.nan), np.nan)
