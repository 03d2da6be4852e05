"""The tables and numbers of answers about marks and chains."""

from __future__ import annotations

from tb_tpuprof.tools.spec import ScalarSpec, TableSpec, number, text
from tb_tpuprof.tools.trace_viewer.tables import DURATION, EVENT, START, TRACK

CHAIN = TableSpec(
    "chain",
    "Chain",
    (
        EVENT,
        TRACK,
        text("name", "Name", "Name of the event"),
        START,
        DURATION,
        text("side", "Side", "Cause, event (the one asked about) or effect"),
        text("kind", "Kind", "Of the arrow; encloses: its neighbor runs within it, on one thread"),
        number("neighbor", "Neighbor", "id", "The next event towards the one asked about; -1 for itself"),
        number("distance", "Links", "count", "Between the two events"),
        number(
            "gap_ps",
            "Gap",
            "ps",
            "From the cause's end to the effect's start, negative if they overlap",
            unknown="one event encloses the other",
        ),
    ),
    "Everything that led to the event and that it led to, by arrows and enclosing events, in time order; the "
    "nearest of very many",
)
CHAIN_SCALARS = (
    ScalarSpec("n_causes", "Causes", "count", "In the table"),
    ScalarSpec("n_effects", "Effects", "count", "In the table"),
    ScalarSpec("is_cut", "More", "", "1: there are more than the table contains"),
)

_SELF = "Without the events directly inside; of a track: the time in which anything ran on it"
COMPARED = TableSpec(
    "compared",
    "A and B",
    (
        text("name", "Name", "Of the events, or of their track"),
        number("track", "Track", "id", "Id; -1 if the rows are names"),
        number("self_a_ps", "A", "ps", f"Self time within A. {_SELF}"),
        number("self_b_ps", "B", "ps", f"Self time within B. {_SELF}"),
        number("self_difference_ps", "B − A", "ps", "Difference of the self times"),
        number("total_a_ps", "Total A", "ps", "Parts of the events within A"),
        number("total_b_ps", "Total B", "ps", "Parts of the events within B"),
        number("total_difference_ps", "Total B − A", "ps", "Difference of the totals"),
        number("n_a", "Events A", "count", "Number of events that overlap A"),
        number("n_b", "Events B", "count", "Number of events that overlap B"),
    ),
    "Two windows by name or track, largest difference of self times first",
)
COMPARED_SCALARS = (
    ScalarSpec("length_a_ps", "Length of A", "ps", "Duration of the window A"),
    ScalarSpec("length_b_ps", "Length of B", "ps", "Duration of the window B"),
    ScalarSpec("length_difference_ps", "B − A", "ps", "By how much B is longer than A"),
    ScalarSpec("n_events_a", "Events in A", "count", "Number of events that overlap A"),
    ScalarSpec("n_events_b", "Events in B", "count", "Number of events that overlap B"),
)
