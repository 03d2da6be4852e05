"""Memory in use by place and by function, and its growth, against sums in plain loops."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from tb_tpuprof.analysis.memory.heap import (
    NO_STACK,
    frame_text,
    functions,
    order_of_rows,
    place_of_stack,
    places,
    stack_text,
)
from tb_tpuprof.analysis.memory.heap_growth import growth
from tb_tpuprof.ingest.heap.pprof import read_pprof
from tb_tpuprof.trace.heap import Heap
from tb_tpuprof.trace.stacks import stacks_of
from tests.ingest.heap_files import LIBRARY, LOAD, MAIN, SAMPLES, STEP, Frame, Sample, pprof


def heap_of(*samples: Sample) -> Heap:
    return read_pprof(pprof(samples), "p")


def place_rows(heap: Heap) -> list[tuple[str, int, int]]:
    totals = places(heap)
    columns = zip(totals.frame.tolist(), totals.n_blocks.tolist(), totals.size_bytes.tolist(), strict=True)
    return [(frame_text(heap.stacks, frame), n_blocks, size) for frame, n_blocks, size in columns]


def function_rows(heap: Heap) -> list[tuple[str, int, int, int]]:
    totals = functions(heap)
    columns = (totals.frame, totals.n_blocks, totals.size_bytes, totals.own_bytes)
    return [
        (heap.stacks.function[frame], n_blocks, size, own)
        for frame, n_blocks, size, own in zip(*(column.tolist() for column in columns), strict=True)
    ]


def test_places_skip_libraries_and_add_up() -> None:
    heap = heap_of(*SAMPLES)
    assert place_rows(heap) == [
        ("load /app/data.py:7", 1, 5000),
        ("train_step /app/train.py:41", 5, 700),
        (NO_STACK, 4, 300),
    ]
    assert int(places(heap).size_bytes.sum()) == int(heap.size_bytes.sum()) == 6000


def test_a_stack_of_libraries_alone_has_its_innermost_frame() -> None:
    inner: Frame = ("inner", "/venv/lib/python3.11/site-packages/numpy/x.py", 3)
    assert place_rows(heap_of(Sample((inner, LIBRARY), 1, 5))) == [
        ("inner /venv/lib/python3.11/site-packages/numpy/x.py:3", 1, 5)
    ]


def test_functions_count_each_stack_once() -> None:
    again: Frame = ("train_step", "/app/train.py", 55)  # the same function on another line
    heap = heap_of(*SAMPLES, Sample((again, STEP, MAIN), 1, 50))
    assert function_rows(heap) == [
        ("main", 7, 5750, 0),
        ("load", 1, 5000, 5000),
        ("train_step", 6, 750, 750),
        ("apply", 3, 600, 0),
    ]


def test_of_functions_of_one_size_the_one_that_allocated_it_comes_first() -> None:
    assert function_rows(
        heap_of(Sample((LOAD,), 1, 0), Sample((STEP, LOAD), 2, 50), Sample((MAIN,), 1, 9))
    ) == [
        ("train_step", 2, 50, 50),
        ("load", 3, 50, 0),
        ("main", 1, 9, 9),
    ]


@pytest.mark.parametrize(("n", "more"), [(40, ""), (41, " < … 1 more"), (1500, " < … 1,460 more")])
def test_long_stacks_are_cut_as_texts(n: int, more: str) -> None:
    frames = [(f"f{i}", "/app/a.py", i + 1) for i in range(n)]
    heap = Heap("", *(np.zeros(1, np.int64),) * 5, ("",), ("",), stacks_of([list(range(n))], frames))
    shown = " < ".join(f"f{i} /app/a.py:{i + 1}" for i in range(40))
    assert stack_text(heap.stacks, 0) == shown + more


def test_functions_of_one_name_in_two_files_are_two() -> None:
    other: Frame = ("load", "/app/other.py", 7)
    heap = heap_of(Sample((LOAD,), 1, 5), Sample((other,), 2, 9))
    assert function_rows(heap) == [("load", 2, 9, 9), ("load", 1, 5, 5)]


@pytest.mark.parametrize(
    ("file", "is_library"),
    [
        ("/app/train.py", False),
        ("/app/jax/train.py", False),
        ("/app/libs/train.py", False),
        ("C:\\me\\train.py", False),
        ("/v/site-packages/a.py", True),
        ("/usr/lib/python3/dist-packages/a.py", True),
        ("/usr/lib/python3.12/threading.py", True),
        ("C:\\v\\site-packages\\a.py", True),
        ("/src/jax/_src/pjit.py", True),
        ("<frozen importlib>", True),
        ("<ipython-input-1>", False),
        ("??", True),
        ("", True),
        ("a.cpp", True),
        ("/x/libc.so.6", True),
        ("a.cpp.py", False),
    ],
)
def test_what_is_a_library(file: str, is_library: bool) -> None:
    stacks = stacks_of([[0, 1]], [("f", file, 1), ("g", "/app/g.py", 2)])
    assert place_of_stack(stacks).tolist() == [1 if is_library else 0]


def test_texts() -> None:
    frames = [("f", "a.py", 3), ("", "b.py", 0), ("g", "", 5), ("", "", 0)]
    stacks = stacks_of([[0, 1], [2, 3], []], frames)
    assert [frame_text(stacks, frame) for frame in (-1, 0, 1, 2, 3)] == [
        NO_STACK,
        "f a.py:3",
        "b.py",
        "g",
        "(unknown)",
    ]
    assert [stack_text(stacks, i) for i in range(3)] == ["f a.py:3 < b.py", "g < (unknown)", NO_STACK]
    assert stack_text(stacks, 0, 1) == "f a.py:3 < … 1 more"
    assert stack_text(stacks, 0, 2) == "f a.py:3 < b.py"


def test_sums_are_exact_beyond_floats() -> None:
    heap = heap_of(Sample((STEP,), 1, 2**61), Sample((STEP,), 1, 2**53 + 1, "executable"))
    assert place_rows(heap)[0][2] == 2**61 + 2**53 + 1


def test_an_empty_heap() -> None:
    heap = heap_of()
    assert place_rows(heap) == function_rows(heap) == []
    assert len(order_of_rows(heap)) == 0
    only = heap_of(Sample((), 2, 7))
    assert (place_rows(only), function_rows(only)) == ([(NO_STACK, 2, 7)], [])


def test_random_heaps_against_plain_loops() -> None:
    for seed in range(25):
        rng = random.Random(seed)
        frames: list[Frame] = [
            (f"f{i % 4}", rng.choice(["/me/a.py", "/me/b.py", "/v/site-packages/c.py"]), i) for i in range(9)
        ]
        samples = [
            Sample(
                [rng.choice(frames) for _ in range(rng.randrange(5))],
                rng.randrange(1, 4),
                rng.randrange(1000),
                rng.choice(["buffer", "executable"]),
            )
            for _ in range(30)
        ]
        by_place: Counter[Frame | None] = Counter()
        by_function: Counter[tuple[str, str]] = Counter()
        for sample in samples:
            own = [frame for frame in sample.stack if "site-packages" not in frame[1]]
            by_place[(own or list(sample.stack) or [None])[0]] += sample.size_bytes
            for name in {frame[:2] for frame in sample.stack}:
                by_function[name] += sample.size_bytes
        heap = heap_of(*samples)
        assert {text: size for text, _, size in place_rows(heap)} == {
            f"{frame[0]} {frame[1]}:{frame[2]}"
            if frame and frame[2]
            else f"{frame[0]} {frame[1]}"
            if frame
            else NO_STACK: size
            for frame, size in by_place.items()
        }
        totals = functions(heap)
        stacks = heap.stacks
        assert {
            (stacks.function[frame], stacks.file[frame]): size
            for frame, size in zip(totals.frame.tolist(), totals.size_bytes.tolist(), strict=True)
        } == by_function
        assert np.all(np.diff(totals.size_bytes) <= 0)
        assert np.all(np.diff(heap.size_bytes[order_of_rows(heap)]) <= 0)


def test_growth_by_place() -> None:
    before = heap_of(Sample((STEP,), 3, 600), Sample((LOAD,), 1, 5000), Sample((MAIN,), 2, 40))
    after = heap_of(
        Sample((STEP,), 5, 900),
        Sample((LIBRARY, STEP), 1, 100),  # the same place
        Sample((MAIN,), 2, 40),
        Sample((), 1, 7),
    )
    changes = growth(before, after)
    assert list(
        zip(
            changes.place,
            changes.before_bytes.tolist(),
            changes.after_bytes.tolist(),
            changes.n_more_blocks.tolist(),
            strict=True,
        )
    ) == [
        ("train_step /app/train.py:41", 600, 1000, 3),
        (NO_STACK, 0, 7, 1),
        ("load /app/data.py:7", 5000, 0, -1),
    ]


def test_blocks_that_were_split_are_a_change() -> None:
    changes = growth(heap_of(Sample((STEP,), 1, 10)), heap_of(Sample((STEP,), 2, 10)))
    assert (changes.before_bytes.tolist(), changes.after_bytes.tolist(), changes.n_more_blocks.tolist()) == (
        [10],
        [10],
        [1],
    )
    same = heap_of(*SAMPLES)
    assert growth(same, same).place == ()
