"""The tables and numbers of the tf.data bottleneck analysis."""

from __future__ import annotations

from tb_tpuprof.tools.reasons import NO_STEPS
from tb_tpuprof.tools.spec import ScalarSpec, TableSpec, flag, number, text
from tb_tpuprof.tools.tiles import Tile, tiles

PIPELINES = TableSpec(
    "pipelines",
    "Pipelines",
    (
        text("host", "Host", "The host that runs the pipeline"),
        text("pipeline", "Pipeline", "Name of the pipeline: Host or Device, and a number"),
        text("kind", "Kind", "Host: produces elements; Device: copies them to a device"),
        text(
            "bottleneck",
            "Bottleneck",
            "The stage with the most work on the critical path over the complete calls",
        ),
        text("bottleneck_long_name", "Stage", "The bottleneck's name in the trace"),
        number("n_calls", "Calls", "count", "Number of calls in the capture"),
        number("n_slow_calls", "Slow", "count", "Calls over 50 µs"),
        number("min_latency_ps", "Min", "ps", "Duration of the shortest call"),
        number("avg_latency_ps", "Average", "ps", "Mean duration of a call", formula="Σ duration ÷ calls"),
        number("max_latency_ps", "Max", "ps", "Duration of the longest call"),
        number(
            "wait_fraction",
            "Waiting",
            "fraction",
            "Share of the time from the first to the last call that was spent in calls",
            formula="Σ time in calls ÷ (end of last call − start of first call)",
            unknown="a rate needs at least two calls",
        ),
    ),
    "A row per pipeline: those that feed steps first, slowest first",
)

CHOSEN = TableSpec(
    "chosen",
    "The call shown",
    (
        text("host", "Host", "The host that runs the pipeline"),
        text("pipeline", "Pipeline", "Name of the pipeline"),
        number("rank", "Rank", "count", "Position of the call by duration; 1 is the slowest complete call"),
        number("start_ps", "Start", "ps", "Start of the call, since the trace's start"),
        number("duration_ps", "Duration", "ps", "Duration of the call"),
        text("bottleneck", "Bottleneck", "The pipeline's bottleneck, if it worked for this call"),
        text("bottleneck_long_name", "Stage", "The bottleneck's name in the trace"),
        number(
            "node",
            "Node",
            "id",
            "The bottleneck's id in the table `nodes`; −1 if it did not work for this call",
        ),
    ),
    "One row: the call that the tables below show. `bottleneck` is the pipeline's, if it worked for this "
    "call; `node` is its id in `nodes`, -1: none",
    sentence="The call that the graph and its stages show",
)

EXECUTIONS = TableSpec(
    "executions",
    "Calls by duration",
    (
        number("rank", "Rank", "count", "Position by duration; 1 is the slowest complete call"),
        number("start_ps", "Start", "ps", "Start of the call, since the trace's start"),
        number("duration_ps", "Duration", "ps", "Duration of the call: what the caller waits"),
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
        number("node", "Node", "id", "Number of the stage"),
        text("iterator_id", "Iterator", "Id in the trace; the first if there are several"),
        text("name", "Stage", "Kind of the stage, such as Map or Batch"),
        text("long_name", "Long name", "The stage's name in the trace"),
        number("start_ps", "Start", "ps", "Start of the stage's first call, since the trace's start"),
        number("duration_ps", "Total", "ps", "Of all calls of the stage"),
        number(
            "self_time_ps",
            "Self",
            "ps",
            "Duration without the time spent waiting for other stages; overlapping producers count once",
            formula="total − time of producers",
        ),
        number("n_calls", "Calls", "count", "How often the stage was called"),
        number(
            "n_iterators",
            "Iterators",
            "count",
            "Iterators that the stage created, such as one per file of an interleave",
        ),
        flag(
            "is_blocking", "On the critical path", "Whether the stage works while all of its consumers wait"
        ),
        flag("is_bottleneck", "Bottleneck", "Whether it is the pipeline's bottleneck"),
        flag(
            "is_async", "Works ahead", "Whether the stage works on threads of its own, ahead of its consumer"
        ),
        number("parent", "Consumer", "id", "The stage that takes this stage's elements; −1 for the root"),
        text("parameters", "Parameters", "Settings in the trace, such as parallelism=1"),
    ),
    "A row per stage of the call, consumers before producers. `parent` is -1 for the root; "
    "`n_iterators` counts the iterators that the stage created, such as one per file of an interleave; "
    "`parameters` look like parallelism=1, autotune=true",
    sentence="The stages that worked for this call, each with its own time",
)

EDGES = TableSpec(
    "edges",
    "Edges",
    (
        number("from", "Consumer", "id", "The stage that takes the elements"),
        number("to", "Producer", "id", "The stage that makes the elements"),
        flag("is_critical", "On the critical path", "Whether both stages are on the critical path"),
    ),
    "Ids of nodes; critical if both ends are",
    sentence="Which stage takes elements from which",
)

WHAT_IF = TableSpec(
    "what_if",
    "Estimated gains",
    (
        text("change", "Change", "The change to the pipeline; `now` is without one"),
        number(
            "latency_low_ps",
            "Call from",
            "ps",
            "Duration of a call after the change, lower end of the interval",
            unknown="the change's gain cannot be estimated; the note gives the reason",
        ),
        number(
            "latency_high_ps",
            "Call to",
            "ps",
            "Duration of a call after the change, upper end of the interval",
            unknown="the change's gain cannot be estimated; the note gives the reason",
        ),
        number(
            "step_low_ps",
            "Step from",
            "ps",
            "Step time after the change, lower end of the interval. It may save a little more than the "
            "recorded waiting: a thread that never sleeps, and that nothing profiles, is faster",
            unknown="without an estimate of the call, or without steps, there is none of the step",
        ),
        number(
            "step_high_ps",
            "Step to",
            "ps",
            "Step time after the change, upper end of the interval",
            unknown="without an estimate of the call, or without steps, there is none of the step",
        ),
        text("limited_by", "Then limited by", "What limits the pipeline after the change"),
        text("note", "Note", "Conditions of the estimate, or why there is none"),
    ),
    "A row per change, with the time of a call and a step after it; the first row is `now`. If nothing "
    "can be estimated, a single row `cannot estimate` with the reason in `note`",
    sentence="How long a call and a step would take after each change, as an interval",
)

ADVICE = TableSpec(
    "advice",
    "What to change",
    (text("text", "Advice", "What to change in the pipeline"),),
    "What to change, most useful first",
)


TABLES = (PIPELINES, CHOSEN, EXECUTIONS, NODES, EDGES, WHAT_IF, ADVICE)
SCALARS = (
    ScalarSpec("max_latency_ps", "Slowest call", "ps", "Duration of the slowest call of the chosen pipeline"),
    ScalarSpec(
        "avg_latency_ps",
        "Average call",
        "ps",
        "Mean duration of a call of the chosen pipeline: what the caller waits for an element",
        formula="Σ duration ÷ calls",
    ),
    ScalarSpec(
        "bottleneck_self_ps",
        "Bottleneck's work per call",
        "ps",
        "Work of the slowest stage on the critical path, per complete call; it can exceed the call if it "
        "began earlier or ran on several threads",
        formula="Σ work of the stage ÷ complete calls",
        unknown="no stage has work of its own on the critical path",
    ),
    ScalarSpec(
        "wait_fraction",
        "Time inside calls",
        "fraction",
        "Share of the time from the first to the last call that the consumer spent in calls",
        formula="Σ time in calls ÷ (end of last call − start of first call)",
        unknown="a rate needs at least two calls",
    ),
    ScalarSpec(
        "host_step_time_avg_ps",
        "Average step",
        "ps",
        "Mean step time of the chosen pipeline's host",
        formula="Σ step time ÷ number of steps",
        unknown=NO_STEPS,
    ),
    ScalarSpec(
        "host_input_fraction",
        "Steps waiting for input",
        "fraction",
        "Share of its host's steps spent waiting for input",
        formula="Σ input ÷ Σ step time",
        unknown=NO_STEPS,
    ),
    ScalarSpec("n_pipelines", "Pipelines", "count", "Number of tf.data pipelines in the capture"),
    ScalarSpec(
        "n_slow_pipelines", "With calls over 50 µs", "count", "Pipelines with at least one call over 50 µs"
    ),
    ScalarSpec(
        "rank",
        "Rank of the call shown",
        "count",
        "Position of the call shown, by duration; 1 is the slowest complete call",
    ),
    ScalarSpec(
        "typical_rank",
        "Rank of the call of median length",
        "count",
        "Position of the complete call of median duration, on which the page opens",
    ),
    ScalarSpec(
        "n_executions",
        "Calls of the pipeline",
        "count",
        "Number of calls of the chosen pipeline in the capture",
    ),
)
TILES = tiles(
    Tile("max_latency_ps", unlike="avg_latency_ps"),
    "avg_latency_ps",
    "bottleneck_self_ps",
    "wait_fraction",
    "host_step_time_avg_ps",
    "host_input_fraction",
)
