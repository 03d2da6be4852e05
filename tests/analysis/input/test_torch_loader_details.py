"""PyTorch's data loader at limits: what begins in a step, fetches inside one another, and every sentence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tb_tpuprof.analysis.input.torch_loader import (
    MOST_WORKERS,
    Copies,
    LoaderUse,
    loader_changes,
    loader_use,
)
from tests.analysis.flame.test_modules import call, trace_of
from tests.analysis.input.test_torch_loader import (
    MANY,
    MULTI,
    PAGEABLE,
    PINNED,
    SINGLE,
    US,
    copy,
    kernel,
    marked,
)

STEPS = ((100, 200), (300, 450), (500, 900))


def steps() -> list[dict[str, Any]]:
    """Three unlike steps, each with a kernel at its end."""
    marks = [marked(i, *span) for i, span in enumerate(STEPS)]
    return [*marks, *(one for i, (_, end) in enumerate(STEPS) for one in kernel(end - 3, end - 1, 90 + i))]


def test_copies_count_in_the_step_that_they_begin_in(tmp_path: Path) -> None:
    """Copies before, at both ends of, between and after three steps, each of another length."""
    starts = [50, 100, 199, 200, 250, 300, 449, 450, 480, 500, 899, 900, 950]
    events = steps()
    events += [call(SINGLE, "user_annotation", begin + 10, 5) for begin, _ in STEPS]
    for i, start in enumerate(starts):
        events.append(copy(PAGEABLE if i % 3 else PINNED, start, start + 2**i / 1024, i + 1))
    use = loader_use(trace_of(tmp_path, events))
    assert use is not None
    inside = [i for i, at in enumerate(starts) if any(begin <= at < end for begin, end in STEPS)]
    pageable, pinned = [i for i in inside if i % 3], [i for i in inside if not i % 3]
    assert (use.pageable.n, use.pinned.n) == (len(pageable), len(pinned))
    assert use.pageable.time_ps / US == pytest.approx(sum(2**i for i in pageable) / 1024, abs=0.02)
    assert use.pinned.time_ps / US == pytest.approx(sum(2**i for i in pinned) / 1024, abs=0.02)
    assert (use.n_steps, use.steps_ps) == (3, 650 * US)


def test_markers_without_steps_have_no_loader(tmp_path: Path) -> None:
    """Nothing runs on a device, so the markers are no steps."""
    marks = [marked(i, *span) for i, span in enumerate(STEPS)]
    fetches = [call(SINGLE, "user_annotation", begin + 10, 5) for begin, _ in STEPS]
    assert loader_use(trace_of(tmp_path, [*marks, *fetches])) is None


def test_fetches_inside_one_another_are_one(tmp_path: Path) -> None:
    """PyTorch's event encloses the frames of its loader, one of which starts with it; two fetches touch."""
    frame, other = (
        "torch/utils/data/dataloader.py(700): __next__",
        "torch/utils/data/dataloader.py(9): __next__",
    )
    events = steps()
    for start, length in ((110, 20), (310, 40), (350, 10), (600, 90)):
        events.append(call(MULTI, "user_annotation", start, length))
        events.append(call(frame, "python_function", start, length - 1))
        events.append(call(other, "python_function", start + 1, length - 3))
    use = loader_use(trace_of(tmp_path, events))
    assert use is not None
    assert (use.name, use.mode) == (MULTI, "workers")
    assert (use.n_fetches, use.fetch_ps) == (4, 160 * US)
    assert (use.longest_ps, use.median_ps) == (90 * US, 30 * US)


def test_the_call_with_most_time_names_the_loader(tmp_path: Path) -> None:
    """Twice 30 µs are more than once 50."""
    events = steps()
    for start, length, loader in ((110, 30, MULTI), (310, 50, SINGLE), (600, 30, MULTI)):
        events.append(call(loader, "user_annotation", start, length))
    use = loader_use(trace_of(tmp_path, events))
    assert use is not None
    assert (use.name, use.fetch_ps, use.longest_ps) == (MULTI, 110 * US, 50 * US)
    assert (use.waiting_ps, use.pinning_ps) == (110 * US, 0)


def test_a_long_fetch_names_the_loader_whenever_it_was(tmp_path: Path) -> None:
    events = steps()
    for start, length, loader in ((110, 50, SINGLE), (310, 10, SINGLE), (600, 30, MULTI)):
        events.append(call(loader, "user_annotation", start, length))
    use = loader_use(trace_of(tmp_path, events))
    assert use is not None
    assert (use.name, use.mode) == (SINGLE, "in_process")


def test_frames_alone_do_not_say_where_batches_are_made(tmp_path: Path) -> None:
    frame = "torch/utils/data/dataloader.py(700): __next__"
    calls = [call(frame, "python_function", begin + 10, 20) for begin, _ in STEPS]
    use = loader_use(trace_of(tmp_path, [*steps(), *calls]))
    assert use is not None
    assert (use.name, use.mode, use.n_fetches) == (frame, "unknown", 3)


def test_pinning_counts_outside_of_fetches_and_kernels(tmp_path: Path) -> None:
    """Of 80 µs a kernel hides 30, a fetch 10, and a second kernel on the same stretch nothing more."""
    events = steps()
    events += [call(SINGLE, "user_annotation", begin + 10, 20) for begin, _ in STEPS]
    events.append(call("aten::pin_memory", "cpu_op", 520, 80))
    events += [*kernel(560, 590, 1), *kernel(570, 580, 2)]
    use = loader_use(trace_of(tmp_path, events))
    assert use is not None
    assert use.pinning_ps == 40 * US


IN_PROCESS = replace(MANY, mode="in_process", n_fetches=10, steps_ps=1000 * US, waiting_ps=390 * US)


@pytest.mark.parametrize(
    ("use", "text", "why"),
    [
        (
            replace(IN_PROCESS, fetch_ps=600 * US),
            "Load in worker processes: `DataLoader(num_workers=1, persistent_workers=True)`, or more",
            "A batch takes 60.0 µs to load, on the thread that trains; the rest of a step takes 61.0 µs: 1 "
            "worker can keep up, if as many processors are free.",
        ),
        (
            replace(IN_PROCESS, fetch_ps=MOST_WORKERS * 610 * US),
            "Load in worker processes: `DataLoader(num_workers=64, persistent_workers=True)`, or more",
            "A batch takes 3.90 ms to load, on the thread that trains; the rest of a step takes 61.0 µs: 64 "
            "workers can keep up, if as many processors are free.",
        ),
        (
            replace(IN_PROCESS, fetch_ps=MOST_WORKERS * 610 * US + 1),
            "Load in worker processes (`num_workers`), and make loading a batch much cheaper",
            "A batch takes 3.90 ms to load, on the thread that trains; the rest of a step takes 61.0 µs: 65 "
            "workers would be needed to keep up.",
        ),
        (
            replace(IN_PROCESS, mode="unknown"),
            "Load in worker processes, or in more of them (`num_workers`)",
            "A fetch takes 5.00 µs (median); the trace does not show where batches are made.",
        ),
        (
            replace(IN_PROCESS, mode="workers", longest_ps=6 * US),
            "Use 1.6 times as many `num_workers`, or make loading cheaper (decoding, transforms, storage)",
            "The workers deliver a batch every 100 µs; "
            "without waiting, the steps would take one every 61.0 µs.",
        ),
    ],
)
def test_what_is_said_of_loading(use: LoaderUse, text: str, why: str) -> None:
    (change,) = loader_changes(use)
    assert (change.text, change.why, change.host) == (text, why, "h")
    assert (change.gain_ps, change.gain_fraction) == (39 * US, 0.39)


def test_a_burst_and_the_rest_have_their_own_reasons() -> None:
    burst, rest = loader_changes(MANY)
    assert burst.text.startswith("If an epoch begins at the longest fetch, keep the workers:")
    assert burst.why == (
        "One of 8 fetches took 365 µs, the median is 5.00 µs: workers were starting, "
        "or none had its batch ready."
    )
    # Of 390 µs of waiting 30 are left: 1000 ÷ 970.
    assert rest.text.startswith("Use 1.0 times as many")
    assert rest.why.endswith("batch every 125 µs; without waiting, the steps would take one every 121 µs.")


def test_a_loop_that_only_waits() -> None:
    every = loader_changes(replace(IN_PROCESS, waiting_ps=1000 * US, fetch_ps=1000 * US))[0]
    assert "1,000,000,000 workers would be needed" in every.why
    workers = loader_changes(replace(MANY, n_fetches=7, waiting_ps=1000 * US))[0]
    assert workers.text.startswith("Use 1000000000.0 times as many")
    assert loader_changes(replace(MANY, steps_ps=0, waiting_ps=0, fetch_ps=0)) == ()


def test_copies_from_both_kinds_of_memory() -> None:
    """Three quarters of the copies' time is from pageable memory, and so are 75 of 100 µs of waiting."""
    use = replace(
        MANY, waiting_ps=0, pageable=Copies(1, 30 * US), pinned=Copies(2000, 10 * US), copy_wait_ps=100 * US
    )
    assert use.pageable_share == 0.75
    first, second = loader_changes(use)
    assert (first.gain_ps, second.gain_ps) == (7.5 * US, 2.5 * US)
    assert first.why == "1 copy from pageable memory took 30.0 µs, during which the host waits, too."
    assert second.why == "2,000 copies from pinned memory took 10.0 µs, partly while no kernel ran."
    assert replace(use, pageable=Copies(0, 0), pinned=Copies(0, 0)).pageable_share == 0
    # Copies of unknown sources alone say nothing.
    assert loader_changes(replace(use, pageable=Copies(0, 0), pinned=Copies(0, 0))) == ()


def test_pinning_says_its_share_of_the_steps() -> None:
    (change,) = loader_changes(replace(MANY, waiting_ps=0, pinning_ps=125 * US))
    assert change.why == "The thread that trains pins memory while no kernel runs: 12.5% of the steps."
    assert loader_changes(replace(MANY, waiting_ps=0, pinning_ps=9 * US)) == ()
