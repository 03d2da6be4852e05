"""Rules about single numbers and rows: finite, of the right sign, in order, and products of the numbers
beside them.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from tb_tpuprof.tools.payload import Payload, Table
from tests.consistency.pages import EQUAL, Pages, Violation, numbers_of, texts_of

Floats = npt.NDArray[np.float64]
# Numbers that may be negative, by `table.name`: differences from something usual or earlier.
_SIGNED = re.compile(r"growth|net_bytes|\.offset_|floor_rise|^stragglers\.(compute|input|network|idle)_ps$")
_AMOUNTS = ("ps", "bytes", "count", "fraction", "flops_per_s", "bytes_per_s", "flops_per_byte")
# Columns of one row from the smallest to the largest.
_ORDERS = (
    ("min_ps", "avg_ps", "max_ps"),
    ("min_latency_ps", "avg_latency_ps", "max_latency_ps"),
    ("total_self_time_ps", "total_time_ps"),
    ("avg_self_time_ps", "avg_time_ps"),
    ("self_time_ps", "total_time_ps"),
    ("own_ps", "total_ps"),
    ("own_bytes", "size_bytes"),
    ("p50_ps", "p99_ps", "max_ps"),
    ("mean_ps", "max_ps"),
    ("low_ps", "latency_ps", "high_ps"),
    ("gain_low_ps", "gain_high_ps"),
    ("gain_ps", "job_ps"),
    ("step_low_ps", "step_high_ps"),
    ("unpadded_bytes", "size_bytes"),
    ("requested_bytes", "allocation_bytes"),
    ("peak_bytes", "lifetime_peak_bytes"),
    ("size", "padded_size"),
    ("exposed_ps", "step_ps"),
    ("hidden_ps", "compute_ps"),
    ("waiting_ps", "exposed_ps"),
    ("best_ps", "step_ps"),
    ("wasted_ps", "self_time_ps"),
    ("latency_ps", "longest_ps"),
    ("input_fraction_min", "input_fraction", "input_fraction_max"),
    ("step_time_min_ps", "step_time_avg_ps", "step_time_max_ps"),
    ("latency_p50_ps", "latency_p99_ps", "latency_max_ps"),
    ("input_fraction_min", "input_fraction", "input_fraction_max"),
    ("n_exposed_runs", "n_runs"),
    ("best_step_ps", "step_ps"),
    ("used_bytes", "reserved_bytes"),
    ("busy_ps", "device_time_ps"),
)
# (number, how many, total): the first is the mean of the last.
_MEANS = (
    ("avg_time_ps", "n_occurrences", "total_time_ps"),
    ("avg_self_time_ps", "n_occurrences", "total_self_time_ps"),
    ("avg_ps", "n_occurrences", "total_ps"),
    ("avg_kernel_ps", "n_launches", "kernel_time_ps"),
)


def numbers_are_sound(pages: Pages) -> Iterator[Violation]:
    """No number is infinite, no amount negative, and unknown ones have a reason."""
    for page, payload in pages.items():
        for text in (*_scalars(payload), *_columns(payload)):
            yield Violation("numbers are sound", page, text)


def rows_are_in_order(pages: Pages) -> Iterator[Violation]:
    """Parts are at most their wholes, means are between extremes, percentiles ascend, and sums run up
    to 1.
    """
    for page, payload in pages.items():
        values = {
            name: np.array([float(scalar.value)])
            for name, scalar in payload.scalars.items()
            if scalar.value is not None
        }
        found = [*_order(values), *_means(values)]
        for name, table in payload.tables.items():
            numbers = {column.name: numbers_of(column) for column in table.columns if column.strings is None}
            found += [f"{name}: {text}" for text in (*_order(numbers), *_means(numbers), *_running(table))]
        for text in found:
            yield Violation("rows are in order", page, text)


def moments_are_within(pages: Pages) -> Iterator[Violation]:
    """Requests, batches and steps are within the trace, whose length the timeline knows."""
    timeline = pages.get("trace_viewer")
    whole = timeline.scalars["trace_duration_ps"].value if timeline is not None else None
    if whole is None:
        return
    for page, payload in pages.items():
        if len(payload.hosts) != 1 or page in ("memory_viewer", "saved_pages", "tf_data_bottleneck_analysis"):
            continue
        for name, table in payload.tables.items():
            columns = {column.name: numbers_of(column) for column in table.columns if column.unit == "ps"}
            start = columns.get("start_ps")
            length = next(
                (columns[key] for key in ("latency_ps", "step_time_ps", "duration_ps") if key in columns),
                None,
            )
            if start is None or not len(start):
                continue
            end = start if length is None else start + length
            if (start < 0).any() or (end > float(whole) * (1 + EQUAL) + 2).any():
                text = f"`{name}` lies within {np.nanmin(start):g} and {np.nanmax(end):g} of {whole:g} ps"
                yield Violation("moments are within", page, text)


def _scalars(payload: Payload) -> Iterator[str]:
    for name, scalar in payload.scalars.items():
        value = scalar.value
        if value is None or value != value:
            if not scalar.note:
                yield f"`{name}` is unknown for no reason"
            continue
        if not np.isfinite(value):
            yield f"`{name}` is {value}"
        elif scalar.unit in _AMOUNTS and not _SIGNED.search(f".{name}") and value < 0:
            yield f"`{name}` is {value:g}"


def _columns(payload: Payload) -> Iterator[str]:
    for table_name, table in payload.tables.items():
        for column in table.columns:
            where = f"`{table_name}.{column.name}`"
            if column.strings is not None:
                codes = column.values
                if len(codes) and (int(codes.min()) < -1 or int(codes.max()) >= len(column.strings)):
                    yield f"{where} has a code beyond its {len(column.strings)} texts"
                continue
            numbers = numbers_of(column)
            if np.isinf(numbers).any():
                yield f"{where} is infinite in row {int(np.isinf(numbers).argmax())}"
            if np.isnan(numbers).any() and not column.unknown:
                yield f"{where} is unknown in row {int(np.isnan(numbers).argmax())} for no reason"
            is_amount = column.unit in _AMOUNTS and not _SIGNED.search(f"{table_name}.{column.name}")
            if is_amount and (numbers < 0).any():
                row = int((numbers < 0).argmax())
                yield f"{where} is {numbers[row]:g} in row {row}"


def _order(numbers: dict[str, Floats]) -> Iterator[str]:
    for names in _ORDERS:
        for low, high in itertools.pairwise(names):
            if low not in numbers or high not in numbers or len(numbers[low]) != len(numbers[high]):
                continue
            wrong = numbers[low] > numbers[high] * (1 + EQUAL) + 2
            if wrong.any():
                row = int(wrong.argmax())
                yield f"row {row}: {low} is {numbers[low][row]:g}, {high} {numbers[high][row]:g}"


def _means(numbers: dict[str, Floats]) -> Iterator[str]:
    for mean, number, total in _MEANS:
        if not {mean, number, total} <= set(numbers):
            continue
        known = np.isfinite(numbers[mean]) & np.isfinite(numbers[number])
        made = np.where(known, numbers[mean] * numbers[number], numbers[total])
        wrong = np.abs(made - numbers[total]) > EQUAL * np.abs(numbers[total]) + numbers[number]
        if wrong.any():
            row = int(wrong.argmax())
            yield (
                f"row {row}: {numbers[number][row]:g} times {mean} {numbers[mean][row]:g} is not {total} "
                f"{numbers[total][row]:g}"
            )


def _running(table: Table) -> Iterator[str]:
    """Running sums ascend to at most 1; each percentile is at least the one before."""
    for column in table.columns:
        numbers = numbers_of(column)
        if column.name.endswith("cumulative_fraction"):
            known = numbers[np.isfinite(numbers)]
            if len(known) and (known.max() > 1 + EQUAL or known.min() < 0):
                yield f"{column.name} runs from {known.min():g} to {known.max():g}"
    names = next((texts_of(column) for column in table.columns if column.name == "percentile"), [])
    rows = [i for i, name in enumerate(names) if name.startswith("p")]
    for column in table.columns:
        if column.name in ("latency_ps", "duration_ps") and rows:
            marks = numbers_of(column)[rows]
            if (np.diff(marks) < 0).any():
                yield f"{column.name} of the percentiles are {marks.tolist()}"
