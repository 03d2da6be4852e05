"""The payloads of all pages of one run → where they contradict each other, or themselves. Pure functions:
nothing is opened here.

Each violation names the page (or pages), the thing and the numbers, so that the reader need not run anything
again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.consistency.amounts import (
    busy_and_idle_are_all,
    idle_times_agree,
    parts_sum_up,
    rates_respect_peaks,
    shares_are_shares,
)
from tests.consistency.communication import communication_agrees
from tests.consistency.facts import facts_agree, headlines_are_first, labels_tell_apart
from tests.consistency.gains import gains_are_within
from tests.consistency.names import lists_agree
from tests.consistency.numbers import moments_are_within, numbers_are_sound, rows_are_in_order
from tests.consistency.operations import operations_agree
from tests.consistency.pages import Pages, Violation
from tests.consistency.sayings import (
    limits_agree,
    marks_agree,
    pages_open_well,
    savings_are_smaller,
    verdicts_agree,
    words_fit_the_framework,
)
from tests.consistency.slow_hosts import slow_hosts_agree

RULES: tuple[Callable[[Pages], Iterator[Violation]], ...] = (
    facts_agree,
    labels_tell_apart,
    headlines_are_first,
    parts_sum_up,
    shares_are_shares,
    rates_respect_peaks,
    busy_and_idle_are_all,
    savings_are_smaller,
    gains_are_within,
    words_fit_the_framework,
    verdicts_agree,
    marks_agree,
    idle_times_agree,
    limits_agree,
    slow_hosts_agree,
    pages_open_well,
    communication_agrees,
    numbers_are_sound,
    rows_are_in_order,
    moments_are_within,
    lists_agree,
    operations_agree,
)


def violations(pages: Pages) -> list[Violation]:
    """All rules over all pages of a run."""
    return [one for rule in RULES for one in rule(pages)]
