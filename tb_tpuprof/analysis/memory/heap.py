"""A snapshot of memory → who allocated what is in use: by place in the program, and by function.

    stack of a block     jit_call        jax/_src/pjit.py:1612        a library's
    (innermost first)    train_step      train.py:41                  the place: first frame of the program
                         main            train.py:80

A block counts at one place, so that places add up to the memory in use. It counts for each function of its
stack once, so that functions do not add up.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.trace.heap import Heap
from tb_tpuprof.trace.stacks import Stacks

Int64s = npt.NDArray[np.int64]
NO_STACK = "(no stack recorded)"
_LIBRARY = re.compile(
    r"[/\\](site-packages|dist-packages|lib[/\\]python3\.\d+|jax[/\\]_src|torch[/\\]csrc)[/\\]"
    r"|^<frozen |^\?\?$|^$|\.(cpp|cc|c|h|hpp|cu|so(\.\d+)*)$|^/build/|^/usr/src/"
)


@dataclass(frozen=True)
class Totals:
    """Groups of blocks, the largest first. `frame`: of each group, a row of the stacks' frames, −1 without a
    stack. `own_bytes`: of groups by function, what they allocated themselves.
    """

    frame: Int64s
    n_blocks: Int64s
    size_bytes: Int64s
    own_bytes: Int64s

    def __len__(self) -> int:
        return len(self.frame)


def places(heap: Heap) -> Totals:
    """Blocks by the innermost frame that is the program's own, or the innermost one if none is."""
    place = place_of_stack(heap.stacks)[heap.stack]
    group, inverse = np.unique(place, return_inverse=True)
    size = _sums(inverse, heap.size_bytes, len(group))
    return _ordered(group.astype(np.int64), _sums(inverse, heap.n_blocks, len(group)), size, size)


def functions(heap: Heap) -> Totals:
    """Blocks by each function on their stacks. `frame` is the function's first frame in the file."""
    stacks = heap.stacks
    n_stacks = len(stacks)
    of_stack = [_sums(heap.stack, column, n_stacks) for column in (heap.n_blocks, heap.size_bytes)]
    first_frame = _function_of_frame(stacks)
    if not len(stacks.frames):
        nothing = np.zeros(0, np.int64)
        return Totals(nothing, nothing, nothing, nothing)
    stack = np.repeat(np.arange(n_stacks), np.diff(stacks.first))
    pairs = np.unique(stack * len(first_frame) + first_frame[stacks.frames])
    function, inverse = np.unique(pairs % len(first_frame), return_inverse=True)
    counts, sizes = (_sums(inverse, column[pairs // len(first_frame)], len(function)) for column in of_stack)
    place = place_of_stack(stacks)
    has_stack = place >= 0
    own = np.zeros(len(first_frame), np.int64)
    np.add.at(own, first_frame[place[has_stack]], of_stack[1][has_stack])
    return _ordered(function.astype(np.int64), counts, sizes, own[function])


def place_of_stack(stacks: Stacks) -> Int64s:
    """The frame that stands for each stack, −1 for stacks without frames."""
    is_library = np.array([bool(_LIBRARY.search(file)) for file in stacks.file], np.bool_)
    place = np.full(len(stacks), -1, np.int64)
    has_frames = np.diff(stacks.first) > 0
    place[has_frames] = stacks.frames[stacks.first[:-1][has_frames]]
    own = np.flatnonzero(~is_library[stacks.frames]) if len(stacks.frames) else np.zeros(0, np.int64)
    stack = np.searchsorted(stacks.first, own, "right") - 1
    owners, first = np.unique(stack, return_index=True)
    place[owners] = stacks.frames[own[first]]
    return place


def order_of_rows(heap: Heap) -> Int64s:
    """Rows of the heap, the largest first."""
    return np.argsort(-heap.size_bytes, kind="stable").astype(np.int64)


def stack_text(stacks: Stacks, stack: int, most_frames: int = 40) -> str:
    """`train_step train.py:41 < main train.py:80`, the innermost frame first."""
    frames = stacks.frames[stacks.first[stack] : stacks.first[stack + 1]].tolist()
    texts = [frame_text(stacks, frame) for frame in frames[:most_frames]]
    more = [f"… {len(frames) - most_frames:,} more"] if len(frames) > most_frames else []
    return " < ".join([*texts, *more]) or NO_STACK


def frame_text(stacks: Stacks, frame: int) -> str:
    """`train_step train.py:41`; what is not known is left out."""
    if frame < 0:
        return NO_STACK
    function, file, line = stacks.function[frame], file_name(stacks, frame), int(stacks.line[frame])
    place = f"{file}:{line}" if file and line else file
    return " ".join(filter(None, (function, place))) or "(unknown)"


def file_name(stacks: Stacks, frame: int) -> str:
    """The file of a frame; empty if it is not known, which PyTorch writes as `??`."""
    return "" if stacks.file[frame] == "??" else stacks.file[frame]


def _function_of_frame(stacks: Stacks) -> Int64s:
    """For each frame, the first frame of the same function."""
    first: dict[tuple[str, str], int] = {}
    named = zip(stacks.function, stacks.file, strict=True)
    return np.array([first.setdefault(name, i) for i, name in enumerate(named)], np.int64)


def _sums(group: npt.NDArray[np.integer], values: Int64s, n_groups: int) -> Int64s:
    """Exact sums of each group: in floats, sizes beyond 2^53 bytes would be rounded."""
    sums = np.zeros(n_groups, np.int64)
    np.add.at(sums, group, values)
    return sums


def _ordered(frame: Int64s, n_blocks: Int64s, size_bytes: Int64s, own_bytes: Int64s) -> Totals:
    order = np.lexsort((frame, -own_bytes, -size_bytes))
    return Totals(frame[order], n_blocks[order], size_bytes[order], own_bytes[order])
