"""The tables and numbers of the tf.data bottleneck analysis."""

from __future__ import annotations

from tb_tpuprof.tools.spec import ScalarSpec, TableSpec, flag, number, text
from tb_tpuprof.tools.tiles import Tile, tiles

PIPELINES = TableSpec(
    "pipelines",
    "Pipelines",
    (
        text("host", "Host"),
        text("pipeline", "Pipeline"),
        text("kind", "Kind", "Host: produces elements; Device: copies them to a device"),
        text("bottleneck", "Bottleneck", "The stage that callers waited for most"),
        text("bottleneck_long_name", "Stage"),
        number("n_calls", "Calls", "count"),
        number("n_slow_calls", "Slow", "count", "Calls over 50 µs"),
        number("min_latency_ps", "Min", "ps"),
        number("avg_latency_ps", "Average", "ps"),
        number("max_latency_ps", "Max", "ps"),
        number(
            "wait_fraction",
            "Waiting",
            "fraction",
            "Share of the time from the first to the last call that was spent in calls; needs at least "
            "two calls",
        ),
    ),
    "A row per pipeline: those that feed steps first, slowest first",
)

CHOSEN = TableSpec(
    "chosen",
    "The call shown",
    (
        text("host", "Host"),
        text("pipeline", "Pipeline"),
        number("rank", "Rank", "count"),
        number("start_ps", "Start", "ps"),
        number("duration_ps", "Duration", "ps"),
        text("bottleneck", "Bottleneck"),
        text("bottleneck_long_name", "Stage"),
        number("node", "Node", "id"),
    ),
    "One row: the call that the tables below show. `bottleneck` is the pipeline's, if it worked for this "
    "call; `node` is its id in `nodes`, -1: none",
)

EXECUTIONS = TableSpec(
    "executions",
    "Calls by duration",
    (
        number("rank", "Rank", "count"),
        number("start_ps", "Start", "ps"),
        number("duration_ps", "Duration", "ps"),
        flag(
            "is_complete",
            "Complete",
            "All work for it is in the capture; calls cut off by the capture come last",
        ),
    ),
    "Calls of the chosen pipeline, complete ones first, slowest first, at most 1,000",
)

NODES = TableSpec(
    "nodes",
    "Stages of the call",
    (
        number("node", "Node", "id"),
        text("iterator_id", "Iterator", "Id in the trace; the first if there are several"),
        text("name", "Stage"),
        text("long_name", "Long name"),
        number("start_ps", "Start", "ps"),
        number("duration_ps", "Total", "ps", "Of all calls of the stage"),
        number("self_time_ps", "Self", "ps", "Without time spent waiting for other stages"),
        number("n_calls", "Calls", "count"),
        number("n_iterators", "Iterators", "count"),
        flag("is_blocking", "On the critical path"),
        flag("is_bottleneck", "Bottleneck"),
        flag("is_async", "Works ahead"),
        number("parent", "Consumer", "id"),
        text("parameters", "Parameters"),
    ),
    "A row per stage of the call, consumers before producers. `parent` is -1 for the root; "
    "`n_iterators` counts the iterators that the stage created, such as one per file of an interleave; "
    "`parameters` look like parallelism=1, autotune=true",
)

EDGES = TableSpec(
    "edges",
    "Edges",
    (
        number("from", "Consumer", "id"),
        number("to", "Producer", "id"),
        flag("is_critical", "On the critical path"),
    ),
    "Ids of nodes; critical if both ends are",
)

WHAT_IF = TableSpec(
    "what_if",
    "Estimated gains",
    (
        text("change", "Change"),
        number("latency_low_ps", "Call from", "ps"),
        number("latency_high_ps", "Call to", "ps"),
        number("step_low_ps", "Step from", "ps"),
        number("step_high_ps", "Step to", "ps"),
        text("limited_by", "Then limited by"),
        text("note", "Note"),
    ),
    "A row per change, with the time of a call and a step after it; the first row is `now`. If nothing "
    "can be estimated, a single row `cannot estimate` with the reason in `note`",
)

ADVICE = TableSpec(
    "advice",
    "What to change",
    (text("text", "Advice"),),
    "What to change, most useful first",
)


TABLES = (PIPELINES, CHOSEN, EXECUTIONS, NODES, EDGES, WHAT_IF, ADVICE)
SCALARS = (
    ScalarSpec("max_latency_ps", "Slowest call", "ps", "Of the chosen pipeline"),
    ScalarSpec("avg_latency_ps", "Average call", "ps", "Of the chosen pipeline"),
    ScalarSpec("bottleneck_self_ps", "Bottleneck's work per call", "ps", "Per complete call"),
    ScalarSpec(
        "wait_fraction",
        "Time inside calls",
        "fraction",
        "Share of the time from the first to the last call that the consumer spent in calls; null for a "
        "single call",
    ),
    ScalarSpec("host_step_time_avg_ps", "Average step", "ps", "Of the chosen pipeline's host"),
    ScalarSpec(
        "host_input_fraction",
        "Steps waiting for input",
        "fraction",
        "Of the chosen pipeline's host; null without steps",
    ),
    ScalarSpec("n_pipelines", "Pipelines", "count"),
    ScalarSpec("n_slow_pipelines", "With calls over 50 µs", "count"),
    ScalarSpec("rank", "Rank of the call shown", "count", "1 is the slowest complete call"),
    ScalarSpec("typical_rank", "Rank of the call of median length", "count"),
    ScalarSpec("n_executions", "Calls of the pipeline", "count"),
)
TILES = tiles(
    Tile("max_latency_ps", unlike="avg_latency_ps"),
    "avg_latency_ps",
    "bottleneck_self_ps",
    "wait_fraction",
    "host_step_time_avg_ps",
    "host_input_fraction",
)
