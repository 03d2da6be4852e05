"""Columns that tables of the steps' parts share."""

from __future__ import annotations

from tb_tpuprof.tools.reasons import NO_STEPS
from tb_tpuprof.tools.spec import number

PART_TIMES = (
    number(
        "avg_ps",
        "Average",
        "ps",
        "Mean time per step",
        formula="Σ time of the part ÷ number of steps",
        unknown=NO_STEPS,
    ),
    number(
        "sd_ps",
        "Standard deviation",
        "ps",
        "How much the part varies from step to step: the standard deviation of the sample",
        unknown=NO_STEPS,
    ),
    number(
        "fraction",
        "Share",
        "fraction",
        "The part's share of all steps: the ratio of the sums",
        formula="Σ time of the part ÷ Σ step time",
        unknown=NO_STEPS,
    ),
)
