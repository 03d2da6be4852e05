"""A number of slices -> a synthetic Perfetto trace of threads that call functions, as protobuf wire bytes.

    python -m bench.track_events_trace OUTPUT_DIR [--slices 500000]

Eight threads call 200 functions nested four deep; each slice is two events, its beginning and its end, and
names are interned. The same arguments give the same bytes.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.device_trace import field

SUFFIX = ".pftrace"
N_THREADS, N_NAMES, DEPTH, N_SLICES = 8, 200, 4, 500_000
SLICE_NS = 10_000
PACKET = 1
TIME, SEQUENCE, EVENT, INTERNED, FLAGS, TRACK = 8, 10, 11, 12, 13, 60
BEGIN, END = 1, 2
STATE_CLEARED, NEEDS_STATE = 1, 2


def packet(*fields: tuple[int, int | bytes]) -> bytes:
    """A packet of the only sequence."""
    content = b"".join(field(number, value) for number, value in (*fields, (SEQUENCE, 1)))
    return field(PACKET, content)


def descriptors() -> bytes:
    """The threads' tracks and the functions' names."""
    names = b"".join(
        field(2, field(1, i + 1) + field(2, f"train::Function{i}".encode())) for i in range(N_NAMES)
    )
    tracks = []
    for thread in range(N_THREADS):
        about = field(1, 7) + field(2, 100 + thread) + field(5, f"worker {thread}".encode())
        tracks.append(packet((TRACK, field(1, 1000 + thread) + field(4, about))))
    return packet((FLAGS, STATE_CLEARED), (INTERNED, names)) + b"".join(tracks)


def calls(thread: int, n_slices: int) -> list[bytes]:
    """A thread's events: stacks of four calls, each a fifth shorter on both sides than its caller."""
    track, packets = field(11, 1000 + thread), []
    for stack in range(n_slices // DEPTH):
        begin = 1_000_000 + stack * (SLICE_NS + 1000)
        events = []
        for depth in range(DEPTH):
            inset = depth * SLICE_NS // 10
            name = field(10, (stack * DEPTH + depth + thread) % N_NAMES + 1)
            events.append((begin + inset, field(9, BEGIN) + name + track))
            events.append((begin + SLICE_NS - inset, field(9, END) + track))
        packets += [
            packet((TIME, time), (EVENT, event), (FLAGS, NEEDS_STATE))
            for time, event in sorted(events, key=lambda each: each[0])
        ]
    return packets


def write_track_events(path: Path, n_slices: int = N_SLICES) -> None:
    """Write the trace."""
    path.parent.mkdir(parents=True, exist_ok=True)
    threads = (calls(thread, n_slices // N_THREADS) for thread in range(N_THREADS))
    path.write_bytes(descriptors() + b"".join(part for packets in threads for part in packets))


def main() -> None:
    """Write what the arguments say."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("output_dir", type=Path)
    parser.add_argument("--slices", type=int, default=N_SLICES)
    asked = parser.parse_args()
    write_track_events(asked.output_dir / f"host0{SUFFIX}", asked.slices)


if __name__ == "__main__":
    main()
