"""A number of steps -> a synthetic capture of four TPU cores as an older profiler's trace viewer kept it, an
`.SSTABLE`: a LevelDB table of events by zoom level and time, in blocks of 20 MB that Snappy packs.

    python -m bench.table_trace OUTPUT_DIR [--steps 100]

Each core runs a module of 1,000 operations in each step, and four threads of the host trace 50 calls each.
The same arguments give the same bytes. cramjam is needed.
"""

from __future__ import annotations

import argparse
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tb_tpuprof.native import crc32c
from tests.ingest.hlo_protos import varint
from tests.ingest.messages import Fixed, written
from tests.ingest.tables import Entry, block_of, finished, masked

SUFFIX = ".SSTABLE"
N_CORES, N_OPS, N_THREADS, N_CALLS, N_STEPS = 4, 1000, 4, 50, 100
N_EVENTS = N_STEPS * (N_CORES * (N_OPS + 2) + N_THREADS * N_CALLS)
STEP_PS, CORE_PS = 12_000_000_000, 1_000_000
BLOCK_BYTES, RESTART_EVERY = 20_000_000, 16
HOST, FIRST_CORE, FIRST_THREAD = 1, 100, 7000
STEPS, MODULES, OPS = 1, 2, 3
LEVELS = "123456789ABCD"  # for events from 1 s, from 0.1 s and so on
CATEGORIES = ("convolution fusion", "loop fusion", "all-reduce", "data formatting", "copy")


def described() -> bytes:
    """The devices with their lines, and the names of operations by number."""
    cores = {FIRST_CORE + i: f"/device:TPU:{i}" for i in range(N_CORES)}
    lines = {STEPS: "Steps", MODULES: "XLA Modules", OPS: "XLA Ops"}
    threads = {FIRST_THREAD + i: f"worker/{i}" for i in range(N_THREADS)}
    devices = [
        (1, written((1, number), (2, written((1, f"host0 {name}"), (2, number), *_resources(own)))))
        for number, name, own in (
            *((number, name, lines) for number, name in cores.items()),
            (HOST, "/host:CPU", threads),
        )
    ]
    names = [(8, written((1, Fixed(i + 1)), (2, op_name(i)))) for i in range(N_OPS)]
    return written(*devices, *names, (7, N_EVENTS))


def _resources(lines: dict[int, str]) -> list[tuple[int, bytes]]:
    return [(3, written((1, number), (2, written((1, name), (2, number))))) for number, name in lines.items()]


def op_name(i: int) -> str:
    """An operation's name, as HLO has it."""
    return f"fusion.{i} = bf16[256,{8 * (1 + i % 64)}]{{1,0:T(8,128)(2,1)}} fusion(param.{i}, copy.{i // 2})"


def op_arguments(i: int) -> bytes:
    """What an operation's event says beside its name."""
    texts = {"tf_op": f"model/block_{i // 20}/MatMul:MatMul", "hlo_category": CATEGORIES[i % len(CATEGORIES)]}
    numbers = {"flops": 10**6 * (i + 1), "bytes_accessed": 4096 * (i + 1)}
    listed = [written((1, name), (2, text)) for name, text in texts.items()]
    listed += [written((1, name), (3, number)) for name, number in numbers.items()]
    return written((2, written(*((1, one) for one in listed))))


def key_of(time_ps: int, duration_ps: int) -> bytes:
    """A key without its serial number: the zoom level and the time."""
    level = LEVELS[max(0, len(LEVELS) - len(str(duration_ps)))]
    return level.encode() + struct.pack(">Q", time_ps)


def events(n_steps: int) -> Iterator[Entry]:
    """(key without serial number, message) of all events, a line's after another's."""
    numbered = [(12, Fixed(i + 1)) for i in range(N_OPS)]
    said = [written(numbered[i], (8, op_arguments(i))) for i in range(N_OPS)]
    op_ps = STEP_PS * 9 // 10 // N_OPS
    for step in range(n_steps):
        for core in range(N_CORES):
            start = step * STEP_PS + core * CORE_PS
            on_core = written((1, FIRST_CORE + core))
            for line, name, duration in (
                (STEPS, str(step), STEP_PS),
                (MODULES, "jit_step(7)", N_OPS * op_ps),
            ):
                message = written((2, line), (3, name), (5, step), (7, duration))
                yield key_of(start, duration), on_core + message
            on_line = on_core + written((2, OPS))
            for i in range(N_OPS):
                duration = op_ps - (i * 7 + step) % 50 * 1000
                yield key_of(start + i * op_ps, duration), on_line + written((7, duration)) + said[i]
        for thread in range(N_THREADS):
            for i in range(N_CALLS):
                start = step * STEP_PS + i * STEP_PS // N_CALLS + thread * 777
                duration = STEP_PS // N_CALLS // (1 + i % 7)
                message = written((1, HOST), (2, FIRST_THREAD + thread), (3, f"Call{i}"), (7, duration))
                yield key_of(start, duration), message


def with_serials(entries: list[Entry]) -> Iterator[Entry]:
    """The entries in the order of their keys, with a number each among those of the same level and time."""
    last, serial = b"", 0
    for key, message in sorted(entries, key=lambda entry: entry[0]):
        serial = serial + 1 if key == last else 0
        last = key
        yield key + bytes([serial]), message


def blocks_of(entries: Iterator[Entry]) -> Iterator[list[Entry]]:
    """Parts of the entries with the size of a block."""
    block: list[Entry] = []
    size = 0
    for entry in entries:
        block.append(entry)
        size += len(entry[1])
        if size >= BLOCK_BYTES:
            yield block
            block, size = [], 0
    if block:
        yield block


def stored(block: bytes) -> bytes:
    """A block, packed, with its checksum."""
    import cramjam

    content = bytes(cramjam.snappy.compress_raw(block)) + b"\x01"
    return content + struct.pack("<I", masked(crc32c(np.frombuffer(content, np.uint8))))


def write_table(path: Path, n_steps: int = N_STEPS) -> None:
    """Write the table."""
    out, index = bytearray(), []
    for part in blocks_of(iter([(b"/trace", described()), *with_serials(list(events(n_steps)))])):
        data = stored(block_of(part, RESTART_EVERY))
        index.append((part[-1][0], varint(len(out)) + varint(len(data) - 5)))
        out += data
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(finished(bytes(out), index))


def main() -> None:
    """Write what the arguments say."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("output_dir", type=Path)
    parser.add_argument("--steps", type=int, default=N_STEPS)
    asked = parser.parse_args()
    write_table(asked.output_dir / f"host0{SUFFIX}", asked.steps)


if __name__ == "__main__":
    main()
