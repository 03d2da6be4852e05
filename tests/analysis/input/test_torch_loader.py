"""PyTorch's data loader in the steps: waiting, copies and pinning on drawn traces with three unlike steps,
and what to change; on real captures, what the jobs measured of themselves.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tb_tpuprof.analysis.input.torch_loader import Copies, LoaderUse, loader_changes, loader_use
from tb_tpuprof.session import Session
from tests.analysis.flame.test_modules import call, trace_of

US = 1_000_000
DATA = Path(__file__).parents[2] / "data" / "gpu"
LOADER = "enumerate(DataLoader)#_{}DataLoaderIter.__next__"
SINGLE, MULTI = LOADER.format("SingleProcess"), LOADER.format("MultiProcessing")
PAGEABLE, PINNED = "Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD (Pinned -> Device)"


def kernel(start: float, end: float, number: int) -> list[dict[str, Any]]:
    device = {"device": 0, "stream": 7, "correlation": number}
    ran = {**call("gemm", "kernel", start, end - start, 7, **device), "pid": 0}
    return [call("cudaLaunchKernel", "cuda_runtime", start - 1, 0.5, correlation=number), ran]


def copy(name: str, start: float, end: float, number: int) -> dict[str, Any]:
    args = {"device": 0, "stream": 7, "correlation": number}
    return {**call(name, "gpu_memcpy", start, end - start, 7, **args), "pid": 0}


def marked(number: int, start: float, end: float) -> dict[str, Any]:
    return call(f"ProfilerStep#{number}", "user_annotation", start, end - start)


def drawn(loader: str = SINGLE) -> list[dict[str, Any]]:
    """Steps of 1000, 1400 and 900 µs."""
    return [
        marked(1, 0, 1000),
        call(loader, "user_annotation", 0, 300),
        *kernel(100, 200, 1),  # hides a third of the fetch
        copy(PAGEABLE, 310, 350, 2),
        *kernel(400, 900, 3),
        marked(2, 1000, 2400),
        call(loader, "user_annotation", 1000, 500),
        copy(PAGEABLE, 1510, 1570, 4),  # half of it while a kernel runs
        *kernel(1540, 1600, 5),
        copy(PINNED, 2010, 2030, 6),
        *kernel(1650, 2000, 7),
        marked(3, 2400, 3300),
        call(loader, "user_annotation", 2400, 10),
        call("aten::pin_memory", "cpu_op", 2420, 80),
        call("aten::_pin_memory", "cpu_op", 2430, 20),
        *kernel(2480, 2600, 8),  # the end of pinning is hidden
        call("aten::pin_memory", "cpu_op", 2700, 30, 99),  # on another thread
    ]


def used(folder: Path, loader: str = SINGLE) -> LoaderUse:
    use = loader_use(trace_of(folder, drawn(loader)))
    assert use is not None
    return use


def test_times_of_the_loader(tmp_path: Path) -> None:
    assert used(tmp_path) == LoaderUse(
        "h",
        SINGLE,
        "in_process",
        n_steps=3,
        steps_ps=3300 * US,
        n_fetches=3,
        fetch_ps=810 * US,
        waiting_ps=710 * US,
        longest_ps=500 * US,
        median_ps=300 * US,
        pageable=Copies(2, 100 * US),
        pinned=Copies(1, 20 * US),
        copy_wait_ps=90 * US,
        pinning_ps=60 * US,
    )


def test_steps_of_several_threads_overlap(tmp_path: Path) -> None:
    """A copy is in the steps if any thread's step is around it, also after a short one has ended."""
    launch, short = kernel(150, 160, 4)
    events = [
        marked(1, 0, 1000),
        {**marked(2, 100, 200), "tid": 99},
        {**launch, "tid": 99},
        short,
        call(SINGLE, "user_annotation", 0, 50),
        copy(PINNED, 500, 530, 1),
        *kernel(600, 900, 5),
        copy(PINNED, 1000, 1007, 2),
        marked(3, 1100, 1300),
        copy(PINNED, 1090, 1101, 3),
        *kernel(1200, 1250, 6),
    ]
    use = loader_use(trace_of(tmp_path, events))
    assert use is not None
    assert (use.n_steps, use.pinned) == (3, Copies(1, 30 * US))


def test_changes_gain_no_more_than_the_steps_wait(tmp_path: Path) -> None:
    changes = loader_changes(used(tmp_path))
    assert [(round(one.gain_ps * 3 / US), round(one.gain_fraction * 3300)) for one in changes] == [
        (710, 710),
        (75, 75),  # of copies while nothing runs, those from pageable memory
        (60, 60),
    ]
    assert "num_workers=1" in changes[0].text
    assert "270 µs to load" in changes[0].why
    assert "pin_memory=True" in changes[1].text
    assert "2 copies from pageable memory took 100 µs" in changes[1].why
    assert "pin_memory()" in changes[2].text


def test_workers_that_are_too_slow(tmp_path: Path) -> None:
    use = used(tmp_path, MULTI)
    assert (use.mode, use.waiting_ps) == ("workers", 710 * US)
    first = loader_changes(use)[0]
    assert first.text.startswith("Use 1.3 times as many `num_workers`")  # 3300 ÷ 2590
    assert first.gain_ps * 3 == 710 * US


MANY = LoaderUse(
    "h",
    MULTI,
    "workers",
    10,
    1000 * US,
    8,
    400 * US,
    390 * US,
    365 * US,
    5 * US,
    Copies(0, 0),
    Copies(0, 0),
    0,
    0,
)


@pytest.mark.parametrize(
    ("use", "gains"),
    [
        (MANY, [360, 30]),
        (replace(MANY, n_fetches=7), [390]),
        (replace(MANY, longest_ps=325 * US), [320, 70]),
        (replace(MANY, longest_ps=324 * US), [390]),
        (replace(MANY, waiting_ps=350 * US), [350]),  # never more than the wait
        (replace(MANY, waiting_ps=10 * US, longest_ps=20 * US), [10]),
        (replace(MANY, waiting_ps=9 * US, longest_ps=20 * US), []),  # less than 1%
        (replace(MANY, mode="unknown"), [390]),
    ],
)
def test_a_fetch_that_stands_out_and_the_rest(use: LoaderUse, gains: list[int]) -> None:
    changes = loader_changes(use)
    assert [round(one.gain_ps * 10 / US) for one in changes] == gains
    assert sum(one.gain_ps for one in changes) * 10 <= use.waiting_ps
    assert any("persistent_workers" in one.text for one in changes) == (len(gains) == 2 or gains == [350])


@pytest.mark.parametrize(
    ("fetch_us", "text"), [(610, "num_workers=1,"), (611, "num_workers=2,"), (64 * 610 + 1, "much cheaper")]
)
def test_as_many_workers_as_the_steps_need(fetch_us: int, text: str) -> None:
    use = replace(MANY, mode="in_process", fetch_ps=fetch_us * US)
    assert text in loader_changes(use)[0].text


def test_copies_from_pinned_memory_alone() -> None:
    use = replace(MANY, waiting_ps=0, pinned=Copies(10, 200 * US), copy_wait_ps=50 * US)
    (change,) = loader_changes(use)
    assert "non_blocking=True" in change.text
    assert "pin_memory=True" not in change.text
    assert change.gain_ps * 10 == 50 * US


def test_no_loader_and_no_steps(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    without = [event for event in drawn() if event["name"] != SINGLE]
    assert loader_use(trace_of(tmp_path / "a", without)) is None
    unmarked = [event for event in drawn() if not event["name"].startswith("ProfilerStep")]
    assert loader_use(trace_of(tmp_path / "b", unmarked)) is None


@pytest.mark.parametrize(("run", "mode"), [("torch_loader0", "in_process"), ("torch_loader4", "workers")])
def test_what_jobs_on_a_gpu_measured(run: str, mode: str) -> None:
    """The job timed `next(batches)` and its steps; the first and the last step are left out."""
    truth = json.loads((DATA / "index.json").read_text("utf-8"))["runs"][run]
    session = Session(str(DATA / f"{run}.pt.trace.json.gz"), cache=False)
    use = session.get(loader_use, session.hosts[0])
    assert use is not None
    assert (use.mode, use.n_steps, use.n_fetches) == (mode, 4, 4)
    fetched, longest = sum(truth["input"][1:-1]), max(truth["input"][1:-1])
    assert use.fetch_ps / 1e12 == pytest.approx(fetched, abs=6e-4)  # 4 calls
    assert use.longest_ps / 1e12 == pytest.approx(longest, rel=0.02)
    # The loop waits for its results, so no kernel hides a fetch.
    assert use.waiting_ps / 1e12 == pytest.approx(fetched, abs=6e-4)
    assert (use.pageable.n, use.pinned.n) == (8, 0)
    gains = [one.gain_ps for one in loader_changes(use)]
    assert sum(gains) * 4 <= use.waiting_ps + use.copy_wait_ps
    if mode == "in_process":
        # 64 samples of 0.5 ms and more on one thread, and a step of about 5 ms: ten workers.
        rest = sum(truth["steps"][1:-1]) - fetched
        assert f"num_workers={-(-fetched // rest):.0f}" in loader_changes(use)[0].text
