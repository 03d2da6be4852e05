"""A small caching allocator that records what PyTorch's does, and the truth at each event.

Not PyTorch's code: it knows the record's layout (torch/csrc/cuda/Module.cpp,
c10/core/CachingDeviceAllocator.h) and the rules that matter for it. Sizes are rounded up to 512 bytes, blocks
are cut from segments and merged again, whole free segments go back to the device before an allocation fails,
a block that another stream uses is free only later, and the history is a ring. Snapshots made with it are
synthetic.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.ingest.heap_files import Frame, torch_frames

MIB = 2**20
ROUND, SMALL = 512, MIB
BASE = 0x7F00_0000_0000
EMPTY: Frame = ("at::empty_cuda", "??", 0)


@dataclass
class Block:
    """A piece of a segment; `place` is the program's innermost frame."""

    address: int
    size: int
    requested: int = 0
    state: str = "inactive"
    frames: list[dict[str, Any]] = field(default_factory=list)
    place: str = ""


@dataclass
class Segment:
    """Memory of the device."""

    address: int
    blocks: list[Block]

    @property
    def size(self) -> int:
        return sum(block.size for block in self.blocks)


@dataclass(frozen=True)
class Truth:
    """What is so after one event, as the allocator itself counts it."""

    used: int
    pending: int
    reserved: int
    by_place: dict[str, int]
    n_by_place: dict[str, int]


class Allocator:
    """One device of `capacity` bytes."""

    def __init__(self, device: int, capacity: int, is_expandable: bool = False) -> None:
        self.device = device
        self.capacity = capacity
        self.is_expandable = is_expandable
        self.segments: list[Segment] = []
        self.entries: list[dict[str, Any]] = []
        self.truth: list[Truth] = []
        self.time_us = 1_700_000_000_000_000 + 1000 * device
        self.next_address = BASE + device * 2**40

    # What the program calls.

    def alloc(self, size: int, stack: Sequence[Frame]) -> Block | None:
        """A block; None if it fails."""
        rounded = -(-size // ROUND) * ROUND
        frames = torch_frames(EMPTY, *stack)
        block = self._free_block(rounded) or self._grown(rounded, frames)
        if block is None:
            free = self.capacity - self.reserved
            self._record("oom", None, size, frames, device_free=free)
            return None
        self._split(block, rounded)
        block.requested, block.state, block.frames = size, "active_allocated", frames
        block.place = place_of(stack)
        self._record("alloc", block.address, size, frames)
        return block

    def free(self, block: Block, is_used_by_stream: bool = False) -> None:
        """The program gives a block back."""
        block.state = "active_pending_free"
        self._record("free_requested", block.address, block.requested, block.frames)
        if not is_used_by_stream:
            self.complete(block)

    def complete(self, block: Block) -> None:
        """No stream uses the block any longer."""
        address, requested, frames = block.address, block.requested, block.frames
        block.state, block.requested, block.place = "inactive", 0, ""
        self._record("free_completed", address, requested, frames)
        for segment in self.segments:
            segment.blocks = _merged(segment.blocks)

    def snapshot(self, max_entries: int | None = None) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """(segments, entries) as `_snapshot` has them, of which the last `max_entries` are kept."""
        segments = [
            {
                "device": self.device,
                "address": segment.address,
                "total_size": segment.size,
                "stream": 0,
                "segment_type": "small" if segment.size <= 2 * MIB else "large",
                "blocks": [
                    {
                        "address": block.address,
                        "size": block.size,
                        "requested_size": block.requested,
                        "state": block.state,
                        "frames": block.frames,
                    }
                    for block in segment.blocks
                ],
            }
            for segment in self.segments
        ]
        self._record("snapshot", 0, 0, [])
        kept = self.entries if max_entries is None else self.entries[-max_entries:]
        return segments, kept

    # What it does with memory.

    @property
    def reserved(self) -> int:
        return sum(segment.size for segment in self.segments)

    def _free_block(self, size: int) -> Block | None:
        free = [block for segment in self.segments for block in segment.blocks if block.state == "inactive"]
        return min((block for block in free if block.size >= size), key=lambda one: one.size, default=None)

    def _grown(self, size: int, frames: list[dict[str, Any]]) -> Block | None:
        new = 2 * MIB if size <= SMALL else -(-size // (2 * MIB)) * 2 * MIB
        if self.reserved + new > self.capacity:
            self._return_segments()
        if self.reserved + new > self.capacity:
            return None
        block = Block(self.next_address, new)
        self.next_address += 2 * new
        self.segments.append(Segment(block.address, [block]))
        action = "segment_map" if self.is_expandable else "segment_alloc"
        self._record(action, block.address, new, frames)
        return block

    def _return_segments(self) -> None:
        for segment in [*self.segments]:
            if all(block.state == "inactive" for block in segment.blocks):
                size = segment.size
                self.segments.remove(segment)
                self._record(
                    "segment_unmap" if self.is_expandable else "segment_free", segment.address, size, []
                )

    def _split(self, block: Block, size: int) -> None:
        if block.size > size:
            (segment,) = (one for one in self.segments if any(other is block for other in one.blocks))
            at = next(i for i, other in enumerate(segment.blocks) if other is block)
            segment.blocks.insert(at + 1, Block(block.address + size, block.size - size))
            block.size = size

    def _record(
        self, action: str, address: int | None, size: int, frames: list[dict[str, Any]], **more: int
    ) -> None:
        self.time_us += 7
        entry: dict[str, Any] = {"action": action, "size": size, "stream": 0, "time_us": self.time_us}
        if address is not None:
            entry["addr"] = address
        self.entries.append({**entry, **more, "frames": frames, "pool_id": (0, 0)})
        active = [block for one in self.segments for block in one.blocks if block.state != "inactive"]
        sizes, numbers = Counter[str](), Counter[str]()
        for block in active:
            sizes[block.place] += block.requested
            numbers[block.place] += 1
        pending = sum(block.requested for block in active if block.state == "active_pending_free")
        used = sum(block.requested for block in active)
        self.truth.append(Truth(used, pending, self.reserved, dict(sizes), dict(numbers)))


def place_of(stack: Sequence[Frame]) -> str:
    """A stack's innermost frame as the page names it; empty without one."""
    if not stack:
        return ""
    function, file, line = stack[0]
    return f"{function} {file}:{line}"


def _merged(blocks: list[Block]) -> list[Block]:
    result: list[Block] = []
    for block in blocks:
        if result and block.state == result[-1].state == "inactive":
            result[-1].size += block.size
        else:
            result.append(block)
    return result


MAIN: Frame = ("main", "/app/train.py", 90)
MODEL: Frame = ("build", "/app/model.py", 12)
FORWARD: Frame = ("forward", "/app/model.py", 40)
LOSS: Frame = ("loss", "/app/train.py", 55)
HISTORY: Frame = ("remember", "/app/metrics.py", 8)


def train(allocator: Allocator, n_steps: int, seed: int, batch_bytes: int = 3 * MIB) -> None:
    """A training loop: weights that stay, activations of random sizes that are freed each step, one of them
    late because of a stream, and at `HISTORY` a block of each step that is never freed.
    """
    chance = random.Random(seed)
    weights = [allocator.alloc(size, (MODEL, MAIN)) for size in (5 * MIB + 100, 700_001, 64)]
    late: list[Block] = []
    for _ in range(n_steps):
        step = [allocator.alloc(chance.randrange(1, batch_bytes), (FORWARD, MAIN)) for _ in range(4)]
        step.append(allocator.alloc(4, (LOSS, MAIN)))
        allocator.alloc(chance.randrange(30_000, 40_000), (HISTORY, LOSS, MAIN))
        for block in late:
            allocator.complete(block)
        blocks = [block for block in step if block]
        chance.shuffle(blocks)
        late = blocks[:1]
        for i, block in enumerate(blocks):
            allocator.free(block, is_used_by_stream=i == 0)
    assert all(weights)


def snapshot_of(allocators: Sequence[Allocator], max_entries: int | None = None) -> dict[str, Any]:
    """The snapshot of several devices; devices without an allocator have no history."""
    segments: list[dict[str, Any]] = []
    traces: list[list[dict[str, Any]]] = [[] for _ in range(1 + max(one.device for one in allocators))]
    for allocator in allocators:
        own, traces[allocator.device] = allocator.snapshot(max_entries)
        segments += own
    return {
        "segments": segments,
        "device_traces": traces,
        "allocator_settings": {},
        "external_annotations": [],
    }
