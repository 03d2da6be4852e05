"""A number of events -> a synthetic XSpace of about that many, written as protobuf wire bytes with numpy
alone.

    python bench/synthetic_trace.py OUTPUT_DIR [--events 10000000]

`OUTPUT_DIR/host0.xplane.pb` then holds a host with 16 threads and 2 GPUs of 4 streams. Time is cut into
steps; in each, every thread nests its calls four deep, and the innermost calls of the first 8 threads launch
kernels:

    python    |train ------------------------------|train ---
              |forward ---------|forward ---------|            4 in a step
              |layer --|layer --|layer --|                     4 in each
              |op|op|op|op|                                    4 in each: 1 + 4 + 16 + 64 = 85 events
    Stream #0    |k |k |k |k |                                 64 in a step

One small stat an event (`correlation_id` for launches and kernels, `size` else), two for `train` (`_r`,
`step_num`). 10,000,000 events make about 238 MB. The same arguments give the same bytes.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.wire_columns import Bools, Field, Int64s, UInt64s, block, encode_rows, number, varint_sizes

FAN_OUT = 4
N_LEAVES = FAN_OUT**3
EVENTS_PER_STEP = 1 + FAN_OUT + FAN_OUT**2 + N_LEAVES
N_THREADS = 16
N_GPUS = 2
STREAMS_PER_GPU = 4
N_STREAMS = N_GPUS * STREAMS_PER_GPU
EVENTS_PER_STEP_ALL_LINES = N_THREADS * EVENTS_PER_STEP + N_STREAMS * N_LEAVES
START_NS = 1_000_000
LAUNCH_LATENCY_PS = 5_000_000
MEAN_LEAF_PS = 4_000_000

# Names by nesting depth; the first name of depth 0 marks steps.
NAMES = (
    ["train"] + [f"worker_loop_{i}" for i in range(15)],
    [f"$trainer.py:{40 + 7 * i} forward_{i}" for i in range(40)],
    [f"block_{i}/attention/einsum:Einsum" for i in range(80)],
    [f"block_{i % 40}/dense_{i}/MatMul:MatMul" for i in range(160)],
)
KERNELS = [f"ampere_sgemm_{32 * (1 + i % 8)}x{64 * (1 + i % 5)}_tn_v{i}" for i in range(120)]
FIRST_ID = np.concatenate([[1], 1 + np.cumsum([len(names) for names in NAMES])])
STAT_NAMES = {"size": 1, "correlation_id": 2, "_r": 3, "step_num": 4}

METADATA_ID, OFFSET_PS, DURATION_PS, MESSAGE, STAT_INT64 = 0x08, 0x10, 0x18, 0x22, 0x20


@dataclass(frozen=True)
class Calls:
    """The events of one thread in file order (start ascending, outer before inner)."""

    depth: Int64s
    start_ps: Int64s
    duration_ps: Int64s


def nested_calls(rng: np.random.Generator, n_steps: int, step_ps: int) -> Calls:
    """Draw `n_steps` trees of calls, one every `step_ps`, each a little shorter than that."""
    shape = (n_steps, FAN_OUT, FAN_OUT, FAN_OUT)
    leaf_ps = rng.integers(MEAN_LEAF_PS // 2, MEAN_LEAF_PS * 3 // 2, size=shape)
    durations, width = [leaf_ps], leaf_ps + MEAN_LEAF_PS // 8
    starts = [np.cumsum(width, axis=-1) - width]
    for depth in (2, 1, 0):
        own_ps = rng.integers(1_000, MEAN_LEAF_PS // 4, size=shape[: depth + 1])
        starts = [
            start + own_ps.reshape(own_ps.shape + (1,) * (start.ndim - own_ps.ndim)) for start in starts
        ]
        duration_ps = own_ps + width.sum(axis=-1)
        durations.insert(0, duration_ps)
        width = duration_ps + MEAN_LEAF_PS // 8 if depth else np.full(n_steps, step_ps)
        begin = np.cumsum(width, axis=-1) - width
        starts = [start + begin.reshape(begin.shape + (1,) * (start.ndim - begin.ndim)) for start in starts]
        starts.insert(0, begin)
    return _in_file_order(starts, durations)


def _in_file_order(starts: list[Int64s], durations: list[Int64s]) -> Calls:
    n_steps = len(starts[0])
    places = np.zeros(1, dtype=np.int64)
    depth = np.empty(EVENTS_PER_STEP, dtype=np.int64)
    start_ps = np.empty((n_steps, EVENTS_PER_STEP), dtype=np.int64)
    duration_ps = np.empty_like(start_ps)
    for level, (start, duration) in enumerate(zip(starts, durations, strict=True)):
        depth[places] = level
        start_ps[:, places] = start.reshape(n_steps, -1)
        duration_ps[:, places] = duration.reshape(n_steps, -1)
        subtree = sum(FAN_OUT**k for k in range(3 - level))
        places = (places[:, None] + 1 + subtree * np.arange(FAN_OUT)).ravel()
    return Calls(np.tile(depth, n_steps), start_ps.ravel(), duration_ps.ravel())


def encode_events(
    ids: Int64s, start_ps: Int64s, duration_ps: Int64s, stat_ids: Int64s, stat_values: Int64s, root: Bools
) -> bytes:
    """XLine.events of one line; where `root`, the stat comes after `_r = 1`."""
    columns = [column.astype(np.uint64) for column in (ids, start_ps, duration_ps, stat_ids, stat_values)]
    stat_bytes = (2 + varint_sizes(columns[3]) + varint_sizes(columns[4])).astype(np.uint64)
    root_bytes = np.full(len(ids), 4, dtype=np.uint64)
    ones = np.ones(len(ids), dtype=np.uint64)
    fields = [
        Field(METADATA_ID, columns[0]),
        Field(OFFSET_PS, columns[1]),
        Field(DURATION_PS, columns[2]),
        Field(MESSAGE, root_bytes, root),
        Field(METADATA_ID, ones * np.uint64(STAT_NAMES["_r"]), root),
        Field(STAT_INT64, ones, root),
        Field(MESSAGE, stat_bytes),
        Field(METADATA_ID, columns[3]),
        Field(STAT_INT64, columns[4]),
    ]
    event_bytes: UInt64s = np.sum([field.sizes() for field in fields], axis=0).astype(np.uint64)
    return encode_rows([Field(MESSAGE, event_bytes), *fields])


def thread_events(rng: np.random.Generator, calls: Calls, thread: int) -> bytes:
    """The events of one thread: `train` steps on the first, launches on the innermost level of the first
    N_STREAMS.
    """
    n_names = np.array([len(names) for names in NAMES])[calls.depth]
    ids = FIRST_ID[calls.depth] + rng.integers(0, n_names)
    outermost = calls.depth == 0
    ids[outermost] = FIRST_ID[0] + min(thread, len(NAMES[0]) - 1)
    stat_ids = np.full(len(ids), STAT_NAMES["size"])
    stat_values = rng.integers(1, 100, size=len(ids))
    if thread < N_STREAMS:
        is_launch = calls.depth == 3
        stat_ids[is_launch] = STAT_NAMES["correlation_id"]
        stat_values[is_launch] = correlation_ids(thread, int(is_launch.sum()))
    is_step = outermost & (thread == 0)
    stat_ids[is_step] = STAT_NAMES["step_num"]
    stat_values[is_step] = np.arange(int(is_step.sum()))
    return encode_events(ids, calls.start_ps, calls.duration_ps, stat_ids, stat_values, is_step)


def kernel_events(rng: np.random.Generator, calls: Calls, stream: int) -> bytes:
    """The events of one stream: a kernel for each innermost call of the thread that feeds it."""
    is_launch = calls.depth == 3
    n_kernels = int(is_launch.sum())
    ids = 1 + rng.integers(0, len(KERNELS), size=n_kernels)
    stat_ids = np.full(n_kernels, STAT_NAMES["correlation_id"])
    start_ps = calls.start_ps[is_launch] + LAUNCH_LATENCY_PS
    no_roots = np.zeros(n_kernels, dtype=np.bool_)
    return encode_events(
        ids, start_ps, calls.duration_ps[is_launch], stat_ids, correlation_ids(stream, n_kernels), no_roots
    )


def correlation_ids(stream: int, n_kernels: int) -> Int64s:
    """Ids that no two kernels of the trace share."""
    return 1 + stream + N_STREAMS * np.arange(n_kernels)


def line(line_id: int, name: str, events: bytes) -> bytes:
    """XPlane.lines."""
    return block(3, number(1, line_id) + block(2, name.encode()) + number(3, START_NS) + events)


def plane(plane_id: int, name: str, lines: list[bytes], event_names: list[str]) -> list[bytes]:
    """XSpace.planes, as pieces to write one after another."""
    tail = b"".join(_map_entry(4, i, text) for i, text in enumerate(event_names, start=1))
    tail += b"".join(_map_entry(5, i, text) for text, i in STAT_NAMES.items())
    body = [number(1, plane_id) + block(2, name.encode()), *lines, tail]
    head = block(1, b"")[:-1] + _length(sum(len(piece) for piece in body))
    return [head, *body]


def _map_entry(field: int, key: int, name: str) -> bytes:
    return block(field, number(1, key) + block(2, number(1, key) + block(2, name.encode())))


def _length(size: int) -> bytes:
    return number(0, size)[1:]


def write_trace(file: Path, n_events: int, seed: int = 7) -> int:
    """Write the trace; the number of events it has: whole steps, at least one, as near `n_events` as they
    come.
    """
    n_steps = max(1, round(n_events / EVENTS_PER_STEP_ALL_LINES))
    step_ps = (
        N_LEAVES * (MEAN_LEAF_PS * 3 // 2 + MEAN_LEAF_PS // 8)
        + (1 + FAN_OUT + FAN_OUT**2) * MEAN_LEAF_PS // 2
    )
    rng = np.random.default_rng(seed)
    threads: list[bytes] = []
    streams: list[bytes] = []
    for thread in range(N_THREADS):
        calls = nested_calls(rng, n_steps, step_ps)
        name = "python" if thread == 0 else f"tf_Compute/{thread}"
        threads.append(line(1000 + thread, name, thread_events(rng, calls, thread)))
        if thread < N_STREAMS:
            streams.append(line(1 + thread, f"Stream #{thread}(Compute)", kernel_events(rng, calls, thread)))
    pieces = plane(0, "/host:CPU", threads, [name for names in NAMES for name in names])
    for gpu in range(N_GPUS):
        gpu_streams = streams[gpu * STREAMS_PER_GPU : (gpu + 1) * STREAMS_PER_GPU]
        pieces += plane(1 + gpu, f"/device:GPU:{gpu}", gpu_streams, KERNELS)
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("wb") as out:
        out.writelines([*pieces, block(4, b"host0")])
    return n_steps * EVENTS_PER_STEP_ALL_LINES


def main() -> None:
    """Write the trace and say how large it came out."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("output_dir", type=Path)
    parser.add_argument("--events", type=int, default=10_000_000)
    arguments = parser.parse_args()
    file = arguments.output_dir / "host0.xplane.pb"
    n_events = write_trace(file, arguments.events)
    print(f"wrote {file}: {n_events:,} events, {file.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
