"""The tables and numbers of the answers about queries."""

from __future__ import annotations

from tb_tpuprof.tools.spec import ScalarSpec, TableSpec, flag, number, text

MAX_ARGUMENTS = 8
_OF_SLICES = (
    number("event", "Event", "id", "Id: host_index · 2^40 + row"),
    number("track", "Track", "id", "Id: host_index · 2^24 + line"),
    text("name", "Name"),
    text("track_name", "Track name", "Its section and name"),
    text("host", "Host"),
    text("step", "Step", "The name of the step that it belongs to"),
    number("start_ps", "Start", "ps", "In the view's time"),
    number("duration_ps", "Duration", "ps"),
    number("self_ps", "Self time", "ps", "Without the events directly inside"),
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
    ScalarSpec("n_derived", "Derived", "count", "Matches on derived tracks, which tell the same time again"),
    ScalarSpec("is_derived", "Of derived tracks", "", "Whether the answer is about derived tracks"),
)
SLICES_SCALARS = (
    ScalarSpec("n_matches", "Matches", "count", "Of the tracks that the answer is about, in the window"),
    ScalarSpec("total_ps", "Total", "ps", "Of their parts within the window"),
    ScalarSpec("first", "First row", "count", "The number of matches before the first row"),
    *_COUNTS,
)
GROUPS = TableSpec(
    "groups",
    "Groups",
    (
        text("group", "Group", "Empty: without a value"),
        number("n", "Events", "count"),
        number("total_ps", "Total", "ps", "Parts within the window"),
        number("self_ps", "Self time", "ps", "Without the events directly inside"),
        number("avg_ps", "Mean", "ps"),
        number("min_ps", "Shortest", "ps"),
        number("max_ps", "Longest", "ps"),
        number("longest_event", "Longest event", "id"),
        number("longest_track", "Its track", "id"),
        number("longest_start_ps", "Its start", "ps"),
        number("longest_duration_ps", "Its duration", "ps", "The whole event's"),
    ),
    "A row per group, largest total first",
)
GROUPS_SCALARS = (
    ScalarSpec("n_groups", "Groups", "count"),
    ScalarSpec("n_events", "Events", "count"),
    ScalarSpec("total_ps", "Total", "ps"),
    ScalarSpec("self_ps", "Self time", "ps"),
    ScalarSpec("range_ps", "Window", "ps"),
    *_COUNTS,
)
HITS = TableSpec(
    "hits",
    "Hits",
    (
        number(
            "box",
            "Box",
            "id",
            "Row of `boxes` in the answer for the same window, width and tracks",
            delta=True,
        ),
        number("track", "Track", "id"),
        number("depth", "Depth", "count"),
        number("n", "Matches", "count", "Matching events in the box"),
    ),
    "The boxes of the window that contain matches, on recorded and derived tracks",
)
RULER = TableSpec(
    "ruler",
    "Ruler",
    (
        number(
            "pixel", "Pixel", "id", "Of the window's width; those without matches are left out", delta=True
        ),
        number("n", "Matches", "count", "Events that touch the pixel, on any track of the kind counted"),
    ),
    "Where the window has matches, whatever the tracks requested",
)
HITS_SCALARS = (
    ScalarSpec("n_in_window", "In the window", "count", "Matches, of the tracks that are counted"),
    ScalarSpec("n_matches", "Matches", "count", "In the whole trace"),
    ScalarSpec("n_boxes", "Boxes", "count", "All boxes of the window"),
    ScalarSpec("pixel_ps", "Pixel", "ps"),
    *_COUNTS,
)
UTILIZATION = TableSpec(
    "utilization",
    "Utilization",
    (
        number("track", "Track", "id"),
        text("host", "Host"),
        text("section", "Section"),
        text("name", "Name"),
        flag("is_derived", "Derived"),
        number("busy_ps", "Busy", "ps", "Time that its events cover, each instant counted once"),
        number("busy_fraction", "Share", "fraction", "Of the window"),
    ),
    "How much of the window each track's events cover, in drawing order",
)
UTILIZATION_SCALARS = (ScalarSpec("range_ps", "Window", "ps"),)
FIELDS = TableSpec(
    "fields",
    "Fields",
    (
        text("field", "Field", "As it is written in a query"),
        text("kind", "Kind", "text, time, number or argument"),
        text("meaning", "Meaning"),
    ),
    "The fields of the language, then the arguments of the hosts' events",
)
FIELDS_SCALARS = (ScalarSpec("n_arguments", "Arguments", "count"),)
