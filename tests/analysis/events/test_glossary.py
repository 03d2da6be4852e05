"""The glossary of events: every pattern works, and no entry hides another."""

from __future__ import annotations

import re
import time
from collections import Counter

import numpy as np
import pytest

from tb_tpuprof.analysis.events.glossary import Entry, entries, explained
from tb_tpuprof.session import Session
from tests.golden_files import demo_runs

KINDS = [
    "steps",
    "launches",
    "modules",
    "scope",
    "ops",
    "hlo_ops",
    "async",
    "exposed",
    "overhead",
    "source",
    "stream",
    "python",
    "thread",
    "tf_data",
]


def test_there_are_at_least_150_terms() -> None:
    assert len(entries()) >= 150


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry.term)
def test_an_entry_is_whole(entry: Entry) -> None:
    for pattern in entry.patterns:
        matcher = re.compile(pattern)
        assert any(matcher.fullmatch(example) for example in entry.examples) or len(entry.patterns) > 1
    assert all(
        any(re.fullmatch(pattern, example) for pattern in entry.patterns) for example in entry.examples
    )
    assert entry.text.endswith(".")
    assert 20 <= len(entry.text) <= 330
    assert 1 <= len(re.findall(r"[.:?](?:\s|$)", entry.text)) <= 4
    assert re.match(r"https://\S+|docs/tools/\w+\.md|[A-Z]|lib", entry.source)
    assert not set(entry.tracks) - set(KINDS)


def test_no_term_and_no_pattern_occurs_twice() -> None:
    terms = Counter(entry.term for entry in entries())
    patterns = Counter((pattern, entry.tracks) for entry in entries() for pattern in entry.patterns)
    assert [term for term, n in terms.items() if n > 1] == []
    assert [pattern for pattern, n in patterns.items() if n > 1] == []


def test_no_entry_hides_another() -> None:
    """Each example is explained by its own entry, not by an earlier one."""
    hidden = [
        (example, entry.term)
        for entry in entries()
        if not entry.tracks
        for example in entry.examples
        if explained(example) != entry
    ]
    assert hidden == []


@pytest.mark.parametrize(
    ("name", "kind", "term"),
    [
        ("copy-done.4", "hlo_ops", "copy-done"),
        ("copy-start", "hlo_ops", "copy-start"),
        ("all-reduce.17", "hlo_ops", "all-reduce"),
        ("ThunkExecutor::Execute (wait for completion)", "thread", "ThunkExecutor::Execute"),
        ("TfrtCpuExecutable::Execute", "thread", "TfrtCpuExecutable"),
        ("PjitFunction(train_step)", "python", "PjitFunction"),
        ("PrefetchConsume", "tf_data", "PrefetchConsume"),
        ("Iterator::Root::Prefetch::BatchV2", "tf_data", "BatchV2"),
        ("cuLaunchKernel", "thread", "cudaLaunchKernel"),
        ("cudaStreamSynchronize", "thread", "cudaStreamSynchronize"),
        ("MemcpyH2D", "stream", "MemcpyH2D"),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclArgs)", "stream", "ncclAllReduce"),
        ("ProfilerStep#12", "thread", "ProfilerStep#"),
        ("autograd::engine::evaluate_function: MmBackward0", "thread", "autograd::engine"),
        ("$train.py:41 load_batch", "python", "Python function"),
        ("my_kernel(float const*)", "stream", "GPU kernel"),
        ("1234", "steps", "step"),
    ],
)
def test_known_names_are_explained(name: str, kind: str, term: str) -> None:
    entry = explained(name, kind)
    assert entry is not None
    assert entry.term == term


@pytest.mark.parametrize("name", ["load_images_of_my_project", "", "Ω", "prepare minibatch"])
def test_names_of_the_program_are_not_explained(name: str) -> None:
    assert explained(name, "thread") is None


def test_only_the_first_400_letters_of_a_name_count() -> None:
    entry = explained("aten::" + "a" * 394, "thread")
    assert entry is not None
    assert explained("aten::" + "a" * 394 + "\n", "thread") == entry
    assert explained("aten::" + "a" * 393 + "\n", "thread") is None


@pytest.mark.parametrize("letter", ["a", "_", ".", "-", "aten::", "void ", "$", "a_", "cudnn::", "(", "\n"])
def test_hostile_names_take_no_time(letter: str) -> None:
    """Names come from files: no pattern backtracks for long."""
    explained("warm up")
    start = time.perf_counter()
    explained(letter * 100_000, "stream")
    assert time.perf_counter() - start < 0.5


@pytest.mark.parametrize("log", sorted(demo_runs()))
def test_most_of_a_run_is_explained(log: str) -> None:
    """Counted by a plain loop over the names of a demo run's events."""
    session = Session(str(demo_runs()[log]), cache=False)
    trace = session.trace(session.hosts[0])
    metadata = trace.events["metadata"]
    n_events = np.bincount(metadata, minlength=len(trace.metadata["name"]))
    codes = np.where(
        trace.metadata["display_name"] >= 0, trace.metadata["display_name"], trace.metadata["name"]
    )
    names = [trace.strings.get(code) for code in codes.tolist()]
    n_explained = sum(
        int(count) for name, count in zip(names, n_events.tolist(), strict=True) if explained(name)
    )
    assert n_explained >= 0.9 * int(n_events.sum())
