"""Tables and numbers that the page of inference requests declares."""

from __future__ import annotations

from dataclasses import replace

from tb_tpuprof.tools.inference_profile.token_rows import TOKEN_SCALARS
from tb_tpuprof.tools.requests import REQUEST_SCALARS
from tb_tpuprof.tools.spec import ColumnSpec, ScalarSpec, TableSpec, number, text
from tb_tpuprof.tools.tiles import Tile, tiles

N_ROWS = 10_000
_NO_BATCH = "the trace does not link this request to a batch"
_NO_SIZE = "the trace does not state the size"
_NO_PADDING = "the trace does not state the padding"
_NO_TOKENS = "the annotation does not state the number of tokens"
_NO_INTERVAL = "there are too few requests to bound the percentile on this side"

SIDES: tuple[ColumnSpec, ...] = (
    number("host_ps", "Host", "ps", "The request's threads work, and no copy or device works for it"),
    number(
        "queue_ps",
        "Queue",
        "ps",
        "The request waits in the queue of a batch, or its thread has nothing to do while devices work for "
        "other requests",
    ),
    number(
        "transfer_ps", "Transfer", "ps", "Data is copied to or from the device, and no device computes for it"
    ),
    number(
        "device_ps",
        "Device",
        "ps",
        "A device computes for the request; on a CPU, an operation of the model runs",
    ),
    number(
        "wait_ps",
        "Wait",
        "ps",
        "Nothing traced happens for the request, or its thread is in a call that only waits",
    ),
)
PARTS: tuple[ColumnSpec, ...] = (
    number(
        "host_before_ps",
        "Host before",
        "ps",
        "Host work before the request's first launch, such as decoding it",
    ),
    number(
        "host_runtime_ps",
        "Host runtime",
        "ps",
        "Host work between the first launch and the end of the last work on a device, such as dispatch",
    ),
    number(
        "host_after_ps",
        "Host after",
        "ps",
        "Host work after the last work on a device, such as encoding the answer",
    ),
    number(
        "to_device_ps", "To device", "ps", "Copies to the device while no device computes for the request"
    ),
    number("to_host_ps", "To host", "ps", "Copies to the host while no device computes for the request"),
)
_LATENCY = number(
    "latency_ps",
    "Latency",
    "ps",
    "From the request's start to its end, or to the end of its last work on a device if that is later",
    formula="host + queue + transfer + device + wait",
)
_REQUEST = number("request", "Request", "id", "The request's number, by start, from 1")
_HOST = text("host", "Host name", "The host that ran it")
_START = number("start_ps", "Start", "ps", "Start of the request, since the trace's start")

PERCENTILES = TableSpec(
    "percentiles",
    "Where a request's time goes",
    (
        text("percentile", "Percentile", "Average, percentile, or the slowest tenth"),
        _LATENCY,
        *SIDES,
        *PARTS,
        number(
            "low_ps",
            "At least",
            "ps",
            "Lower end of the percentile's 95% confidence interval",
            unknown=_NO_INTERVAL,
        ),
        number(
            "high_ps",
            "At most",
            "ps",
            "Upper end of the percentile's 95% confidence interval",
            unknown=_NO_INTERVAL,
        ),
        number("request", "Request", "id", "The request that has this latency", unknown="the row is a mean"),
        number(
            "start_ps",
            "Start",
            "ps",
            "Start of that request, since the trace's start",
            unknown="the row is a mean",
        ),
        text("host", "Host name", "The host that ran that request", unknown="the row is a mean"),
    ),
    "The average, the request at each percentile, and the mean of the slowest tenth",
)
HISTOGRAM = TableSpec(
    "histogram",
    "Latency",
    (
        number("low_ps", "From", "ps", "Shortest latency in the bin"),
        number("high_ps", "To", "ps", "Latency at which the next bin begins"),
        number("n_requests", "Requests", "count", "Requests with a latency in the bin"),
    ),
    "How many requests took how long",
)
REQUESTS = TableSpec(
    "requests",
    "Requests",
    (
        _REQUEST,
        _START,
        _LATENCY,
        *SIDES,
        number(
            "batch",
            "Batch",
            "id",
            "Number of the batch that the request was in, by start, from 1",
            unknown=_NO_BATCH,
        ),
        number(
            "n_in_batch",
            "Requests in batch",
            "count",
            "Traced requests that shared the batch",
            unknown=_NO_BATCH,
        ),
        number(
            "size", "Size", "count", "Examples in the request; of a forward pass, sequences", unknown=_NO_SIZE
        ),
        text(
            "phase",
            "Phase",
            "Prefill (prompts), decode (next tokens) or mixed",
            is_optional=True,
            unknown="the annotation does not name it",
        ),
        number(
            "prefill_tokens",
            "Prompt tokens",
            "count",
            "Tokens of prompts that the pass works on",
            is_optional=True,
            unknown=_NO_TOKENS,
        ),
        number(
            "decode_tokens",
            "New tokens",
            "count",
            "Sequences' tokens that the pass generates",
            is_optional=True,
            unknown=_NO_TOKENS,
        ),
        text(
            "model", "Model", "What the server calls the model, else the annotation's name without its number"
        ),
        text(
            "pattern",
            "Shapes or program",
            "Shapes copied to the device for the request; else the program that works longest for it",
            unknown="no copy with a shape and no compiled program belongs to the request",
        ),
        *PARTS,
        _HOST,
    ),
    f"A row per request, slowest first, at most {N_ROWS:,}",
)
BATCHES = TableSpec(
    "batches",
    "Batches",
    (
        number("batch", "Batch", "id", "The batch's number, by start, from 1"),
        number("start_ps", "Start", "ps", "Start of the batch's processing, since the trace's start"),
        number("duration_ps", "Latency", "ps", "From its start to the end of its processing"),
        number("delay_ps", "Delay", "ps", "From the arrival of its first request in the queue to its start"),
        number("n_requests", "Requests", "count", "Traced requests in it"),
        number("size", "Size", "count", "Examples in it, without padding", unknown=_NO_SIZE),
        number("padding", "Padding", "count", "Slots that hold no example", unknown=_NO_PADDING),
        number(
            "padded_size", "Padded size", "count", "Slots of the batch, padding included", unknown=_NO_PADDING
        ),
        number(
            "efficiency",
            "Efficiency",
            "fraction",
            "Share of the batch's slots that hold examples",
            formula="size ÷ padded size",
            unknown=_NO_PADDING,
        ),
        number("device_ps", "Device", "ps", "Time in which a device works for the batch"),
        text("model", "Model", "The model that the batch is for", unknown="none of its requests was traced"),
        text(
            "pattern",
            "Shapes or program",
            "Shapes copied to the device for the batch; else the program that works longest for it",
            unknown="no copy with a shape and no compiled program belongs to the batch",
        ),
        _HOST,
    ),
    f"A row per batch of the model server, slowest first, at most {N_ROWS:,}",
    is_optional=True,
)
BATCH_PERCENTILES = TableSpec(
    "batch_percentiles",
    "Batches by percentile",
    (
        text("percentile", "Batches", "Average, or percentile of the batches' latency"),
        number("duration_ps", "Latency", "ps", "From the batch's start to the end of its processing"),
        number("delay_ps", "Delay", "ps", "From the arrival of its first request in the queue to its start"),
        number("padding", "Padding", "count", "Slots that hold no example", unknown=_NO_PADDING),
        number("padded_size", "Padded size", "count", "Slots, padding included", unknown=_NO_PADDING),
        number(
            "efficiency",
            "Efficiency",
            "fraction",
            "Share of the slots that hold examples; on average, of the slots of all batches",
            unknown=_NO_PADDING,
        ),
        number("device_ps", "Device", "ps", "Time in which a device works for the batch"),
    ),
    "The average batch, and the batch at each percentile of latency",
    is_optional=True,
)
SIZES = TableSpec(
    "sizes",
    "Batch size and padding",
    (
        number("size", "Size", "count", "Examples in a batch; of unbatched requests, in a request"),
        number("n", "Batches", "count", "Batches (or requests, or passes) of this size"),
        number(
            "examples",
            "Examples",
            "count",
            "Examples in all of them; of forward passes, sequences",
            formula="size × batches",
        ),
        number(
            "padding", "Padding", "count", "Slots that hold no example, in all of them", unknown=_NO_PADDING
        ),
        number("mean_ps", "Average", "ps", "Mean latency of a batch (or request, or pass) of this size"),
        number("device_ps", "Device", "ps", "Mean time in which a device works for one of them"),
    ),
    "Number of batches of each size, and their padding",
    is_optional=True,
)
PHASES = TableSpec(
    "phases",
    "Prefill and decode",
    (
        text("phase", "Phase", "Prefill (prompts), decode (next tokens) or mixed"),
        number("n_passes", "Passes", "count", "Forward passes of this phase"),
        number("device_ps", "Device time", "ps", "Time in which a device works for them"),
        number(
            "fraction",
            "Share",
            "fraction",
            "Device time as a share of that of all phases",
            unknown="no device worked",
        ),
        number("mean_ps", "Average", "ps", "Mean latency of a pass"),
        number("mean_device_ps", "Device per pass", "ps", "Mean time in which a device works for a pass"),
        number(
            "mean_sequences", "Sequences", "count", "Mean number of sequences in a pass", unknown=_NO_SIZE
        ),
        number(
            "tokens", "Tokens", "count", "Prompt tokens and new tokens of all its passes", unknown=_NO_TOKENS
        ),
        number(
            "device_per_token_ps",
            "Device per token",
            "ps",
            "Device time for each token",
            formula="device time ÷ tokens",
            unknown=_NO_TOKENS,
        ),
    ),
    "Forward passes by what they work on: prompts, next tokens, or both",
    is_optional=True,
)


def _group(name: str, title: str, key: ColumnSpec, description: str) -> TableSpec:
    few = "there are too few requests"
    columns = (
        key,
        number("n_requests", "Requests", "count", "Number of its requests"),
        number("mean_ps", "Average", "ps", "Mean latency"),
        number("p50_ps", "p50", "ps", "Half of its requests take at most this long", unknown=few),
        number("p99_ps", "p99", "ps", "99 of 100 of its requests take at most this long", unknown=few),
        number("max_ps", "Slowest", "ps", "Latency of its slowest request"),
        *SIDES,
    )
    return TableSpec(name, title, columns, description)


MODELS = _group(
    "models",
    "Models",
    text("model", "Model", "What the server calls the model, else the annotation's name without its number"),
    "Requests by model, means of their parts; most requests first",
)
PATTERNS = _group(
    "patterns",
    "Shapes and programs",
    text(
        "pattern",
        "Shapes or program",
        "Shapes copied to the device; else the compiled program that works longest",
        unknown="neither is in the trace",
    ),
    "Requests by the shapes copied to the device, or by compiled program; most requests first",
)
TABLES = (PERCENTILES, HISTOGRAM, SIZES, PHASES, REQUESTS, BATCHES, BATCH_PERCENTILES, MODELS, PATTERNS)

_SHARES = {
    "host": "their threads work, and no copy or device works for them",
    "queue": "they wait for a batch to begin, or for devices that work for others",
    "transfer": "data is copied, and no device computes for them",
    "device": "a device computes for them",
    "wait": "nothing traced happens for them, or their thread is in a call that only waits",
}
SCALARS = (
    *(replace(spec, is_optional=False) for spec in REQUEST_SCALARS),
    ScalarSpec(
        "requests_per_s",
        "Throughput",
        "count",
        "Requests per second, from the first one's start to the last one's end; for several hosts, the sum",
        formula="requests ÷ time from the first start to the last end",
        unknown="there are no requests",
    ),
    ScalarSpec(
        "latency_mean_ps",
        "Average latency",
        "ps",
        "Mean latency of all requests",
        formula="Σ latency ÷ requests",
        unknown="there are no requests",
    ),
    ScalarSpec(
        "latency_max_ps",
        "Slowest request",
        "ps",
        "Latency of the slowest request",
        unknown="there are no requests",
    ),
    ScalarSpec(
        "padding_fraction",
        "Padding",
        "fraction",
        "Share of the batches' slots that hold no example",
        is_optional=True,
        formula="Σ padding ÷ Σ padded size",
    ),
    ScalarSpec(
        "batches_per_s",
        "Batches per second",
        "count",
        "Batches from the first one's start to the last one's end; for several hosts, the sum",
        is_optional=True,
        formula="batches ÷ time from the first start to the last end",
    ),
    *TOKEN_SCALARS,
    ScalarSpec(
        "tokens_per_s",
        "New tokens per second",
        "count",
        "New tokens per second, from the start of the first pass or request to the end of the last one",
        is_optional=True,
        formula="Σ new tokens ÷ time from the first start to the last end",
    ),
    ScalarSpec(
        "mean_in_progress",
        "In progress",
        "count",
        "Requests in progress at once, on average",
        formula="Σ latency ÷ time from the first start to the last end",
        unknown="there are no requests",
    ),
    ScalarSpec(
        "device_busy_fraction",
        "Device busy",
        "fraction",
        "Share of the time from the first request's start to the last one's end, of all models, in which any "
        "device of the host works; for several hosts, of the sum",
        formula="time with work on a device ÷ time from the first start to the last end",
        unknown="there are no requests",
    ),
    *(
        ScalarSpec(
            f"{side}_fraction",
            side.capitalize(),
            "fraction",
            f"Share of the latency of all requests in which {words}",
            formula=f"Σ {side} ÷ Σ latency",
            unknown="there are no requests",
        )
        for side, words in _SHARES.items()
    ),
)
TILES = tiles(
    "n_requests",
    "requests_per_s",
    "first_token_p50_ps",
    "token_gap_p50_ps",
    "latency_p50_ps",
    "latency_p99_ps",
    "padding_fraction",
    "tokens_per_s",
    "device_busy_fraction",
    Tile("latency_max_ps", unlike="latency_p99_ps latency_p50_ps"),
)
