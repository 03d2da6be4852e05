"""Memory while a long stream is opened: one piece and the columns, however many pieces there are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tb_tpuprof.ingest.xspace.messages import xspace_class
from tb_tpuprof.native import IS_COMPILED
from tests.ingest.riegeli_files import CODECS, RiegeliFile
from tests.ingest.stream_files import SMALL, records_of

ROOT = Path(__file__).resolve().parents[2]
MEASURED = """
import sys, threading, time
from tb_tpuprof.ingest.opening import open_trace

def used():
    return int(open("/proc/self/statm").read().split()[1]) * 4096

before, peak, is_done = used(), 0, False
def watch():
    global peak
    while not is_done:
        peak = max(peak, used())
        time.sleep(0.002)
thread = threading.Thread(target=watch)
thread.start()
trace = open_trace(sys.argv[1])
is_done = True
thread.join()
print(trace.n_events, peak - before, trace.size_bytes, int(trace.events["start_ps"][-1]))
"""


def long_stream(path: Path, n_pieces: int, n_times: int) -> tuple[int, int]:
    """A file of so many pieces, each with the events of a small capture so many times over: (events, bytes of
    records). Written in parts, each of which is a whole file: they may stand one after another.
    """
    space = xspace_class().FromString(records_of(SMALL)[1])
    lines = [line for plane in space.planes for line in plane.lines]
    for line in lines:
        events = list(line.events)
        for _ in range(n_times - 1):
            line.events.extend(events)
    n_bytes = 0
    with path.open("wb") as out:
        for piece in range(n_pieces):
            for line in lines:
                line.timestamp_ns += 100_000_000
            record = space.SerializeToString()
            n_bytes += len(record)
            out.write(RiegeliFile().records([record], CODECS[piece % 2]).closed())
    return n_pieces * sum(len(line.events) for line in lines), n_bytes


@pytest.mark.skipif(
    not IS_COMPILED or sys.platform != "linux", reason="measures the compiled reader on Linux"
)
@pytest.mark.parametrize(
    ("n_pieces", "n_times"), [(20, 12), pytest.param(150, 45, marks=pytest.mark.slow)], ids=["18MB", "500MB"]
)
def test_memory_is_bounded_by_a_piece_and_the_columns(tmp_path: Path, n_pieces: int, n_times: int) -> None:
    path = tmp_path / "host.xplane.riegeli"
    n_events, n_bytes = long_stream(path, n_pieces, n_times)
    command = [sys.executable, "-c", MEASURED, str(path)]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    n_read, peak, columns, last_start = map(int, printed.split())
    assert n_read == n_events
    assert last_start > 100_000_000_000 * (n_pieces - 1)
    assert columns > 20 * n_events
    piece = 3 * n_bytes // n_pieces
    assert peak < 1.5 * columns + piece + 24 * 2**20  # the last: what a process takes for its first arrays
