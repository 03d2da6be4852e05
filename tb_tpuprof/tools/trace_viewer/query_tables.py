"""The tables and numbers of the answers about queries."""

from __future__ import annotations

from tb_tpuprof.tools.spec import ScalarSpec, TableSpec, number, text
from tb_tpuprof.tools.trace_viewer.tables import (
    DURATION,
    EVENT,
    HOST,
    IS_DERIVED,
    START,
    TIMES_IN_WINDOW,
    TRACK,
)

MAX_ARGUMENTS = 8
_OF_SLICES = (
    EVENT,
    TRACK,
    text("name", "Name", "Name of the event"),
    text("track_name", "Track name", "Its section and name"),
    HOST,
    text("step", "Step", "The name of the step that it belongs to"),
    START,
    DURATION,
    number(
        "self_ps",
        "Self time",
        "ps",
        "Duration without the events directly inside",
        formula="duration − time of events directly inside",
    ),
)
SLICES = TableSpec(
    "slices",
    "Slices",
    (
        *_OF_SLICES,
        *(
            text(
                f"argument_{i}",
                "Argument",
                "Value of a chosen argument, named in the title",
                is_optional=True,
            )
            for i in range(1, MAX_ARGUMENTS + 1)
        ),
    ),
    "A row per matching event, in the chosen order",
)
_COUNTS = (
    ScalarSpec("n_recorded", "Recorded", "count", "Matches on tracks of the file, in the window"),
    ScalarSpec("n_derived", "Derived", "count", "Matches on derived tracks, which repeat the recorded time"),
    ScalarSpec("is_derived", "Of derived tracks", "", "Whether the answer is about derived tracks"),
)
SLICES_SCALARS = (
    ScalarSpec("n_matches", "Matches", "count", "Of the tracks that the answer is about, in the window"),
    ScalarSpec("total_ps", "Total", "ps", "Duration of the matches' parts within the window"),
    ScalarSpec("first", "First row", "count", "The number of matches before the first row"),
    *_COUNTS,
)
GROUPS = TableSpec(
    "groups",
    "Groups",
    (
        text("group", "Group", "Value of the key that events are grouped by; empty: without a value"),
        number("n", "Events", "count", "Number of events of the group that overlap the window"),
        *TIMES_IN_WINDOW,
        number("longest_event", "Longest event", "id", "Id of the event with the longest part"),
        number("longest_track", "Its track", "id", "Track of that event"),
        number("longest_start_ps", "Its start", "ps", "Start of that event, since the view's start"),
        number("longest_duration_ps", "Its duration", "ps", "Duration of that event as a whole"),
    ),
    "A row per group, largest total first",
)
GROUPS_SCALARS = (
    ScalarSpec("n_groups", "Groups", "count", "Number of groups"),
    ScalarSpec("n_events", "Events", "count", "Number of events in all groups"),
    ScalarSpec("total_ps", "Total", "ps", "Time of all groups within the window"),
    ScalarSpec("self_ps", "Self time", "ps", "Self time of all groups within the window"),
    ScalarSpec("range_ps", "Window", "ps", "Length of the window", formula="end − start"),
    *_COUNTS,
)
HITS = TableSpec(
    "hits",
    "Hits",
    (
        number(
            "box", "Box", "id", "Row of `boxes` in the answer for the same window, width and tracks"
        ).sent_as_differences(),
        TRACK,
        number("depth", "Depth", "count", "Row of the box within its track; 0 is the outermost"),
        number("n", "Matches", "count", "Matching events in the box"),
    ),
    "The boxes of the window that contain matches, on recorded and derived tracks",
)
RULER = TableSpec(
    "ruler",
    "Ruler",
    (
        number(
            "pixel", "Pixel", "id", "Of the window's width; those without matches are left out"
        ).sent_as_differences(),
        number("n", "Matches", "count", "Events that touch the pixel, on any track of the kind counted"),
    ),
    "Where the window has matches, whatever the tracks requested",
)
HITS_SCALARS = (
    ScalarSpec("n_in_window", "In the window", "count", "Matches, of the tracks that are counted"),
    ScalarSpec("n_matches", "Matches", "count", "In the whole trace"),
    ScalarSpec("n_boxes", "Boxes", "count", "All boxes of the window"),
    ScalarSpec("pixel_ps", "Pixel", "ps", "Time that one pixel stands for"),
    *_COUNTS,
)
UTILIZATION = TableSpec(
    "utilization",
    "Utilization",
    (
        TRACK,
        HOST,
        text("section", "Section", "The plane: host threads, a device or a pipeline"),
        text("name", "Name", "Name of the track"),
        IS_DERIVED,
        number("busy_ps", "Busy", "ps", "Time that its events cover, each instant counted once"),
        number(
            "busy_fraction",
            "Share",
            "fraction",
            "Share of the window that its events cover",
            formula="busy ÷ window",
        ),
    ),
    "How much of the window each track's events cover, in drawing order",
)
UTILIZATION_SCALARS = (ScalarSpec("range_ps", "Window", "ps", "Length of the window", formula="end − start"),)
FIELDS = TableSpec(
    "fields",
    "Fields",
    (
        text("field", "Field", "As it is written in a query"),
        text("kind", "Kind", "Kind of its values: text, time, number or argument"),
        text("meaning", "Meaning", "What the field holds"),
    ),
    "The fields of the language, then the arguments of the hosts' events",
)
FIELDS_SCALARS = (
    ScalarSpec("n_arguments", "Arguments", "count", "Number of different arguments of the hosts' events"),
)
