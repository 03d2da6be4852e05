"""Columns that tables of operations share: their times, and the share of a row and all rows above."""

from __future__ import annotations

from tb_tpuprof.tools.reasons import NO_OCCURRENCE
from tb_tpuprof.tools.spec import number

TOTAL_TIME = number("total_time_ps", "Total time", "ps", "Of all occurrences, with nested operations")
AVERAGE_TIME = number(
    "avg_time_ps",
    "Average time",
    "ps",
    "Total time of one occurrence, on average",
    formula="total time ÷ occurrences",
    unknown=NO_OCCURRENCE,
)
SELF_TIME = number(
    "total_self_time_ps",
    "Self time",
    "ps",
    "Of all occurrences, without nested operations",
    formula="total time − time of operations nested inside",
)
AVERAGE_SELF_TIME = number(
    "avg_self_time_ps",
    "Average self time",
    "ps",
    "Self time of one occurrence, on average",
    formula="self time ÷ occurrences",
    unknown=NO_OCCURRENCE,
)
TIMES = (TOTAL_TIME, AVERAGE_TIME, SELF_TIME, AVERAGE_SELF_TIME)
CUMULATIVE = number(
    "cumulative_fraction",
    "Cumulative",
    "fraction",
    "Share of this row and all rows above",
    formula="Σ share up to this row",
)
