"""The tables and numbers of the trace viewer's answers."""

from __future__ import annotations

from tb_tpuprof.tools.source_lines import SOURCE_LINES
from tb_tpuprof.tools.spec import ScalarSpec, TableSpec, flag, number, text

EVENT = number("event", "Event", "id", "Id: host_index · 2^40 + row")
TRACK = number("track", "Track", "id", "Id: host_index · 2^24 + line")
_NAME = text("name", "Name", "Name of the event or track, as recorded")
HOST = text("host", "Host", "Name of the host")
IS_DERIVED = flag("is_derived", "Derived", "Made by the viewer, not in the file")
START = number("start_ps", "Start", "ps", "Start of the event, since the view's start")
DURATION = number("duration_ps", "Duration", "ps", "Duration of the event, as recorded")
EVENT_COLUMNS = (EVENT, TRACK, _NAME, START, DURATION)

HOSTS = TableSpec(
    "hosts",
    "Hosts",
    (
        HOST,
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
        TRACK,
        text("host", "Host", "The host that recorded the track"),
        text("section", "Section", "The plane: host threads, a device, a pipeline"),
        _NAME,
        text(
            "kind",
            "Kind",
            "Kind of track: steps, launches, modules, scope, ops, hlo_ops, async, pool, overhead, "
            "source, stream, python, thread, "
            "tf_data, counter or other",
        ),
        number("n_events", "Events", "count", "Samples, for a counter"),
        number("n_depths", "Rows", "count", "Number of rows that nested events take"),
        IS_DERIVED,
        number("order", "Order", "id", "Position in drawing order"),
        number(
            "min_value",
            "Lowest",
            "",
            "Lowest value of a counter in the whole trace",
            unknown="the track is not a counter",
        ),
        number(
            "max_value",
            "Highest",
            "",
            "Highest value of a counter in the whole trace",
            unknown="the track is not a counter",
        ),
        text("unit", "Unit", "For a counter: bytes, bytes_per_s or as written, such as %; empty: unknown"),
    ),
    "All tracks of the hosts, in drawing order",
)
BOXES = TableSpec(
    "boxes",
    "Boxes",
    (
        TRACK,
        number("depth", "Depth", "count", "0 is the outermost"),
        number("start_ps", "Start", "ps", "In the view's time").sent_as_differences(after="duration_ps"),
        number(
            "duration_ps",
            "Duration",
            "ps",
            "Duration of the event; of several, from the first start to the last end",
        ),
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
        number(
            "event", "Event", "id", "The longest of several: host_index · 2^40 + row"
        ).sent_as_differences(),
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
    sentence="Colors of the boxes by name",
)
COUNTERS = TableSpec(
    "counters",
    "Counters",
    (
        TRACK,
        number(
            "time_ps", "Time", "ps", "When the counter was read, since the view's start"
        ).sent_as_differences(),
        number("value", "Value", "", "The value, until the next row of the track"),
    ),
    "Samples of the requested counters: each value holds until the next row of its track. For every two "
    "pixels, the lowest, the highest and the last sample are sent",
)
STEPS = TableSpec(
    "steps",
    "Steps",
    (
        number("step", "Step", "id", "-1 if it has no number"),
        text("host", "Host", "The host that ran the step"),
        START,
        DURATION,
        _NAME,
    ),
    "Steps in the window, of hosts that have at most one per three pixels",
)
FLOWS = TableSpec(
    "flows",
    "Flows",
    (
        number("flow", "Flow", "id", "Number of the flow; arrows of one flow share it"),
        text("kind", "Kind", "What connects the two events"),
        number("from_event", "From event", "id", "The event that the arrow starts at"),
        number("from_track", "From track", "id", "The track of that event"),
        number("from_ps", "From", "ps", "Where the arrow starts, since the view's start"),
        number("to_event", "To event", "id", "The event that the arrow leads to"),
        number("to_track", "To track", "id", "The track of that event"),
        number("to_ps", "To", "ps", "Where the arrow ends, since the view's start"),
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
    ScalarSpec("start_ps", "Window's start", "ps", "Start of the requested interval, since the view's start"),
    ScalarSpec("end_ps", "Window's end", "ps", "End of the requested interval, since the view's start"),
    ScalarSpec(
        "n_events",
        "Events in the trace",
        "count",
        "Number of events in the files of the hosts shown, without derived ones",
    ),
    ScalarSpec(
        "n_events_in_window",
        "Events in the window",
        "count",
        "Number of events in the interval on the requested tracks, derived ones included",
    ),
    ScalarSpec(
        "n_flows",
        "Arrows in the window",
        "count",
        "Number of arrows in the interval, before thinning",
        is_optional=True,
    ),
    ScalarSpec(
        "n_marked_steps", "Marked steps", "count", "Number of steps of the host that has most, cut ones too"
    ),
    ScalarSpec(
        "focus_start_ps",
        "Events from",
        "ps",
        "Where nearly all events begin, if stray ones are far from them",
        is_optional=True,
    ),
    ScalarSpec(
        "focus_end_ps",
        "Events to",
        "ps",
        "Where nearly all events end, if stray ones are far from them",
        is_optional=True,
    ),
)

TIMES_IN_WINDOW = (
    number(
        "total_ps",
        "Total",
        "ps",
        "Duration of the parts of its events within the window",
        formula="Σ duration within the window",
    ),
    number(
        "self_ps",
        "Self time",
        "ps",
        "The same without the events directly inside",
        formula="total − time of events directly inside",
    ),
    number("avg_ps", "Mean", "ps", "Mean duration of the parts within the window", formula="total ÷ events"),
    number("min_ps", "Shortest", "ps", "Duration of the shortest part within the window"),
    number("max_ps", "Longest", "ps", "Duration of the longest part within the window"),
)
DENSITY = TableSpec(
    "density",
    "Density",
    (
        HOST,
        text("section", "Section", "The plane: host threads, a device or a pipeline"),
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
    ScalarSpec("pixel_ps", "Pixel", "ps", "Time that one pixel stands for", formula="trace ÷ pixels"),
    ScalarSpec("n_pixels", "Pixels", "count", "Number of pixels over the whole trace"),
)

ACTIVE = TableSpec(
    "active",
    "Tracks with events",
    (TRACK,),
    "The tracks that have an event or a sample in the window",
)

_PAIRS = (text("name", "Name", "What the value is"), text("value", "Value", "The value, as recorded"))
ABOUT = TableSpec(
    "about",
    "About",
    _PAIRS,
    "name, full_name, derived_from, host, section, track, step, hlo_op, hlo_module, framework_op and "
    "source, if known; kind, explanation and explanation_source, if the glossary explains the name",
)
ARGUMENTS = TableSpec(
    "arguments",
    "Arguments",
    (*_PAIRS, text("shown", "Shown", "The value scaled, with its unit, if its name states one; else empty")),
    "What the viewer derived for the event, then all stats of the event, then those of its metadata",
)
ANCESTORS = TableSpec("ancestors", "Ancestors", (EVENT, _NAME, START, DURATION), "Innermost first")
EVENT_FLOWS = TableSpec(
    "flows",
    "Flows",
    (
        *EVENT_COLUMNS,
        text("direction", "Direction", "Whether the arrow leads into the event or out of it: in or out"),
        text("kind", "Kind", "What connects the two events"),
    ),
    "Arrows into and out of the event, at most 200 each way",
)
HISTOGRAM = TableSpec(
    "histogram",
    "Durations of all events of this name",
    (
        number("from_ps", "From", "ps", "Shortest duration of the bin"),
        number("to_ps", "To", "ps", "Longest duration of the bin"),
        number("n", "Events", "count", "Number of events with a duration in the bin"),
    ),
    "At most 24 bins of equal ratio",
)
LINKS = TableSpec(
    "links",
    "Links",
    (
        text("text", "Text", "What the link shows"),
        text("tool", "Tool", "The page that it opens"),
        text("params", "Parameters", "JSON: parameters of the tool's page, `f.COLUMN` filters its table"),
    ),
    "Links to the event on other pages, most relevant first",
)
EVENT_TABLES = (ABOUT, ARGUMENTS, ANCESTORS, EVENT_FLOWS, HISTOGRAM, LINKS, SOURCE_LINES)
EVENT_SCALARS = (
    ScalarSpec("event", "Event", "id", "Id of the event: host_index · 2^40 + row"),
    ScalarSpec("track", "Track", "id", "Id of the track: host_index · 2^24 + line"),
    ScalarSpec("depth", "Depth", "count", "Row of the event within its track; 0 is the outermost"),
    ScalarSpec("start_ps", "Start", "ps", "Start of the event, since the view's start"),
    ScalarSpec("duration_ps", "Duration", "ps", "Duration of the event, as recorded"),
    ScalarSpec(
        "self_time_ps",
        "Self time",
        "ps",
        "Duration without the events directly inside, on the same line",
        formula="duration − time of events directly inside",
    ),
    ScalarSpec(
        "n_same_name", "Events of this name", "count", "Number of events of this name on the event's host"
    ),
    ScalarSpec(
        "same_total_ps",
        "Their total",
        "ps",
        "Duration of all events of this name on the event's host",
        formula="Σ duration",
    ),
    ScalarSpec(
        "same_avg_ps",
        "Their average",
        "ps",
        "Mean duration of the events of this name",
        formula="total ÷ events",
    ),
    ScalarSpec("same_min_ps", "The shortest", "ps", "Duration of the shortest event of this name"),
    ScalarSpec("same_max_ps", "The longest", "ps", "Duration of the longest event of this name"),
)
NEIGHBOUR = TableSpec(
    "neighbour",
    "Neighbor",
    (
        *EVENT_COLUMNS,
        number("depth", "Depth", "count", "Row of the event within its track; 0 is the outermost"),
    ),
    "The event next to it on its track and depth, else on its track, or the first within it; no row if "
    "there is none",
)
