"""A number of entries -> a synthetic memory snapshot of PyTorch, as `_dump_snapshot` pickles it.

    python -m bench.snapshot_trace OUTPUT_DIR [--entries 300000]

A training loop allocates 48 activations a step, frees them in reverse, and every tenth step keeps a block. As
in PyTorch, what is freed goes to the next block of its size, entries share their stacks' frames but each
allocation lists its own 24, and each entry has a text of its own for its action. The same arguments give the
same bytes.
"""

from __future__ import annotations

import argparse
import pickle
import sys
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

SUFFIX = "_snapshot.pickle"
N_ENTRIES, N_LAYERS, N_OWN_FRAMES, N_COMMON_FRAMES, LEAK_EVERY = 300_000, 48, 8, 16, 10
SEGMENT_BYTES, ROUND, KIB = 64 * 2**20, 512, 1024
BASE, START_US = 0x7F00_0000_0000, 1_700_000_000_000_000
Values = dict[str, Any]


def fresh(text: str) -> str:
    """An equal text that is another object: a pickle has it again."""
    return text.encode().decode()


class Allocator:
    """One device: segments are cut into blocks from front to back, and blocks of a size are used again."""

    def __init__(self) -> None:
        self.entries: list[Values] = []
        self.segments: list[Values] = []
        self.free_blocks: dict[int, list[Values]] = {}

    def alloc(self, size: int, frames: list[Values]) -> Values:
        """A block for `size` bytes."""
        rounded = -(-size // ROUND) * ROUND
        free = self.free_blocks.get(rounded)
        block = free.pop() if free else self._cut(rounded, frames)
        block.update(requested_size=size, state=fresh("active_allocated"), frames=frames)
        self._record("alloc", block["address"], size, frames)
        return block

    def free(self, block: Values) -> None:
        """Give a block back; no other stream uses it."""
        for action in ("free_requested", "free_completed"):
            self._record(action, block["address"], block["requested_size"], block["frames"])
        block.update(requested_size=0, state=fresh("inactive"), frames=[])
        self.free_blocks.setdefault(block["size"], []).append(block)

    def _cut(self, size: int, frames: list[Values]) -> Values:
        if not self.segments or self.segments[-1]["rest"] < size:
            address = BASE + len(self.segments) * SEGMENT_BYTES
            self.segments.append({"address": address, "rest": SEGMENT_BYTES, "blocks": []})
            self._record("segment_alloc", address, SEGMENT_BYTES, frames)
        segment = self.segments[-1]
        block = {"address": segment["address"] + SEGMENT_BYTES - segment["rest"], "size": size}
        segment["rest"] -= size
        segment["blocks"].append(block)
        return block

    def _record(self, action: str, address: int, size: int, frames: list[Values]) -> None:
        time_us = START_US + 3 * len(self.entries)
        entry = {"action": fresh(action), "addr": address, "size": size, "stream": 0, "time_us": time_us}
        self.entries.append({**entry, "frames": frames})

    def snapshot(self) -> Values:
        """What `_snapshot` returns."""
        return {
            "segments": [_segment(segment) for segment in self.segments],
            "device_traces": [self.entries],
            "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "expandable_segments": False},
            "external_annotations": [],
        }


def _segment(segment: Values) -> Values:
    """A segment as the snapshot has it; its rest is a free block."""
    address, blocks = segment["address"], segment["blocks"]
    at = address + SEGMENT_BYTES - segment["rest"]
    rest = {"address": at, "size": segment["rest"], "requested_size": 0, "state": fresh("inactive")}
    return {
        "device": 0,
        "address": address,
        "total_size": SEGMENT_BYTES,
        "stream": 0,
        "segment_type": fresh("large"),
        "blocks": [*blocks, {**rest, "frames": []}],
    }


def train(allocator: Allocator, n_entries: int) -> None:
    """Steps until there are so many entries."""

    def frames_of(file: str, n: int) -> list[Values]:
        return [
            {"name": f"{file}_{i}", "filename": f"/app/model/{file}.py", "line": 10 + i} for i in range(n)
        ]

    common = frames_of("train", N_COMMON_FRAMES)
    own = [frames_of(f"layer{layer}", N_OWN_FRAMES) for layer in range(N_LAYERS)]
    step = 0
    while len(allocator.entries) < n_entries:
        sizes = [KIB * (40 + layer * 37 % 400 + step % 5) for layer in range(N_LAYERS)]
        blocks = [allocator.alloc(size, [*own[layer], *common]) for layer, size in enumerate(sizes)]
        if step % LEAK_EVERY == 0:
            allocator.alloc(KIB * (3 + step % 7), [*own[0][1:], *common])
        for block in reversed(blocks):
            allocator.free(block)
        step += 1


def write_snapshot(path: Path, n_entries: int = N_ENTRIES) -> None:
    """Write the snapshot."""
    allocator = Allocator()
    train(allocator, n_entries)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pickle.dumps(allocator.snapshot()))


def main() -> None:
    """Write what the arguments say."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("output_dir", type=Path)
    parser.add_argument("--entries", type=int, default=N_ENTRIES)
    asked = parser.parse_args()
    write_snapshot(asked.output_dir / f"host0{SUFFIX}", asked.entries)


if __name__ == "__main__":
    main()
