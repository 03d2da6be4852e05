"""The tables and numbers of the trace viewer's answers."""

from __future__ import annotations

from tb_tpuprof.tools.spec import ScalarSpec, TableSpec, flag, number, text

_EVENT = number("event", "Event", "id", "Id: host_index · 2^40 + row")
_TRACK = number("track", "Track", "id", "Id: host_index · 2^24 + line")
_NAME = text("name", "Name")
_START = number("start_ps", "Start", "ps", "In the view's time")
_DURATION = number("duration_ps", "Duration", "ps")
_EVENT_COLUMNS = (_EVENT, _TRACK, _NAME, _START, _DURATION)

HOSTS = TableSpec(
    "hosts",
    "Hosts",
    (
        text("host", "Host"),
        number("host_index", "Index", "id", "Its index among all hosts of the run"),
        number("offset_ps", "Offset", "ps", "Added to the host's own times"),
        text("start_ns", "Clock at its start", "In nanoseconds, from the host's clock"),
        flag(
            "is_aligned", "Aligned", "If not, its clock is hours off, so its times start at the view's start"
        ),
    ),
    "The hosts in the view, and how their times are aligned",
)
TRACKS = TableSpec(
    "tracks",
    "Tracks",
    (
        _TRACK,
        text("host", "Host"),
        text("section", "Section", "The plane: host threads, a device, a pipeline"),
        _NAME,
        text(
            "kind",
            "Kind",
            "steps, launches, modules, scope, ops, hlo_ops, async, overhead, source, stream, python, thread, "
            "tf_data, counter or other",
        ),
        number("n_events", "Events", "count", "Samples, for a counter"),
        number("n_depths", "Rows", "count", "Nesting depth"),
        flag("is_derived", "Derived", "Made by the viewer, not in the file"),
        number("order", "Order", "id", "Position in drawing order"),
        number("min_value", "Lowest", "", "For a counter"),
        number("max_value", "Highest", "", "For a counter"),
        text("unit", "Unit", "For a counter: bytes, bytes_per_s or as written, such as %; empty: unknown"),
    ),
    "All tracks of the hosts, in drawing order",
)
BOXES = TableSpec(
    "boxes",
    "Boxes",
    (
        _TRACK,
        number("depth", "Depth", "count", "0 is the outermost"),
        number("start_ps", "Start", "ps", "In the view's time", delta=True),
        number("duration_ps", "Duration", "ps"),
        number(
            "longest_ps",
            "Longest",
            "ps",
            "Duration of the longest of several events, within 0.8%; 0 for one event",
        ),
        text("name", "Name", "Of the event; the longest of several"),
        number(
            "family",
            "Family",
            "id",
            "0 other, 1 Python, 2 input, 3 XLA operation, 4 kernel, 5 copy, 6 collective, 7 runtime, 8 step, "
            "9 module",
        ),
        number("event", "Event", "id", "The longest of several: host_index · 2^40 + row", delta=True),
        number(
            "n_merged",
            "Events",
            "count",
            "1: one event, drawn exactly; more: number of events shorter than a pixel that begin within "
            "the same two pixels",
        ),
    ),
    "The boxes for a screen of the requested width, by host, track, depth and start; tracks of files "
    "before derived ones",
)
COLORS = TableSpec(
    "colors",
    "Colors",
    (number("color_key", "Color", "id", "0 to 255, stable by name"),),
    "A row for each text of `boxes.name`",
)
COUNTERS = TableSpec(
    "counters",
    "Counters",
    (_TRACK, number("time_ps", "Time", "ps", delta=True), number("value", "Value")),
    "Samples of the requested counters: each value holds until the next row of its track. For every two "
    "pixels, the lowest, the highest and the last sample are sent",
)
STEPS = TableSpec(
    "steps",
    "Steps",
    (
        number("step", "Step", "id", "-1 if it has no number"),
        text("host", "Host"),
        _START,
        _DURATION,
        _NAME,
    ),
    "Steps in the window, of hosts that have at most one per three pixels",
)
FLOWS = TableSpec(
    "flows",
    "Flows",
    (
        number("flow", "Flow", "id"),
        text("kind", "Kind"),
        number("from_event", "From event", "id"),
        number("from_track", "From track", "id"),
        number("from_ps", "From", "ps"),
        number("to_event", "To event", "id"),
        number("to_track", "To track", "id"),
        number("to_ps", "To", "ps"),
    ),
    "Arrows in the window, evenly thinned to 2,000",
    is_optional=True,
)
WINDOW_TABLES = (TRACKS, BOXES, COLORS, COUNTERS, STEPS, HOSTS, FLOWS)
TRACE_DURATION = ScalarSpec(
    "trace_duration_ps", "Trace", "ps", "From the view's start to the last event's end"
)
WINDOW_SCALARS = (
    TRACE_DURATION,
    ScalarSpec("start_ps", "Window's start", "ps"),
    ScalarSpec("end_ps", "Window's end", "ps"),
    ScalarSpec("n_events", "Events in the trace", "count", "Of the files"),
    ScalarSpec(
        "n_events_in_window", "Events in the window", "count", "Of the requested tracks, derived ones too"
    ),
    ScalarSpec("n_flows", "Arrows in the window", "count", "Before thinning", is_optional=True),
)

MATCHES = TableSpec(
    "matches",
    "Matches",
    _EVENT_COLUMNS,
    "In time order: the first ones after, or the last ones before an event; of derived tracks only if "
    "nothing recorded matches",
)
NAMES = TableSpec(
    "names",
    "Names that match",
    (
        _NAME,
        number("n", "Events", "count"),
        number("total_ps", "Total", "ps"),
        number("max_ps", "Longest", "ps"),
    ),
    "On recorded tracks, largest total first",
)
DERIVED_NAMES = TableSpec(
    "derived_names",
    "Names that match on derived tracks",
    NAMES.columns,
    "These tell the same time again: they do not add to the recorded ones. Largest total first",
)
SEARCH_SCALARS = (
    ScalarSpec("n_matches", "Matches", "count", "On recorded tracks"),
    ScalarSpec("n_names", "Names", "count", "On recorded tracks"),
    ScalarSpec("n_derived", "Derived matches", "count", "On derived tracks"),
)

TOTALS = TableSpec(
    "totals",
    "Totals",
    (
        _NAME,
        number("n", "Events", "count"),
        number("total_ps", "Total", "ps", "Parts within the range"),
        number("self_ps", "Self time", "ps", "Without the events directly inside"),
        number("avg_ps", "Average", "ps"),
        number("min_ps", "Shortest", "ps"),
        number("max_ps", "Longest", "ps"),
    ),
    "Time by name of the parts of events within the range, largest total first",
)
TOTALS_SCALARS = (ScalarSpec("n_events", "Events", "count"), ScalarSpec("range_ps", "Range", "ps"))

DENSITY = TableSpec(
    "density",
    "Density",
    (
        text("host", "Host"),
        text("section", "Section"),
        number("pixel", "Pixel", "id", "Of the requested width; empty ones are left out"),
        number(
            "busy_fraction",
            "Busy",
            "fraction",
            "Share of the pixel covered by the outermost events; mean over the section's lines of "
            "operations, streams and threads",
        ),
    ),
    "Utilization over the whole trace",
)
MINIMAP_SCALARS = (
    TRACE_DURATION,
    ScalarSpec("pixel_ps", "Pixel", "ps"),
    ScalarSpec("n_pixels", "Pixels", "count"),
)

_PAIRS = (text("name", "Name"), text("value", "Value"))
ABOUT = TableSpec(
    "about",
    "About",
    _PAIRS,
    "name, full_name, derived_from, host, section, track, step, hlo_op, hlo_module, framework_op and "
    "source, if known",
)
ARGUMENTS = TableSpec(
    "arguments",
    "Arguments",
    _PAIRS,
    "What the viewer derived for the event, then all stats of the event, then those of its metadata",
)
ANCESTORS = TableSpec("ancestors", "Ancestors", (_EVENT, _NAME, _START, _DURATION), "Innermost first")
EVENT_FLOWS = TableSpec(
    "flows",
    "Flows",
    (*_EVENT_COLUMNS, text("direction", "Direction", "in or out"), text("kind", "Kind")),
    "Arrows into and out of the event, at most 200 each way",
)
HISTOGRAM = TableSpec(
    "histogram",
    "Durations of all events of this name",
    (number("from_ps", "From", "ps"), number("to_ps", "To", "ps"), number("n", "Events", "count")),
    "At most 24 bins of equal ratio",
)
LINKS = TableSpec(
    "links",
    "Links",
    (
        text("text", "Text"),
        text("tool", "Tool"),
        text("params", "Parameters", "JSON: parameters of the tool's page, `f.COLUMN` filters its table"),
    ),
    "Links to the event on other pages, most relevant first",
)
EVENT_TABLES = (ABOUT, ARGUMENTS, ANCESTORS, EVENT_FLOWS, HISTOGRAM, LINKS)
EVENT_SCALARS = (
    ScalarSpec("event", "Event", "id"),
    ScalarSpec("track", "Track", "id"),
    ScalarSpec("depth", "Depth", "count"),
    ScalarSpec("start_ps", "Start", "ps"),
    ScalarSpec("duration_ps", "Duration", "ps"),
    ScalarSpec("self_time_ps", "Self time", "ps", "Without the events directly inside"),
    ScalarSpec("n_same_name", "Events of this name", "count", "On the event's host"),
    ScalarSpec("same_total_ps", "Their total", "ps"),
    ScalarSpec("same_avg_ps", "Their average", "ps"),
    ScalarSpec("same_min_ps", "The shortest", "ps"),
    ScalarSpec("same_max_ps", "The longest", "ps"),
)
NEIGHBOUR = TableSpec(
    "neighbour",
    "Neighbor",
    (*_EVENT_COLUMNS, number("depth", "Depth", "count")),
    "The event next to it on its track and depth, else on its track; no row at the end",
)
