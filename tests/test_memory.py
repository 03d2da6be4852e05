"""One memory budget for all that sessions keep: every kind of it counts, and the least recently used goes."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from weakref import ref

import numpy as np
import numpy.typing as npt
import pytest

from bench.large_program import large_program
from tb_tpuprof.analysis.diagnosis.evidence import host_evidence
from tb_tpuprof.analysis.overview.summary import summary
from tb_tpuprof.ingest.opening import open_trace
from tb_tpuprof.ingest.storage.run_info import RunInfo
from tb_tpuprof.session import Session, SessionStore
from tb_tpuprof.session.memory import Memory
from tb_tpuprof.trace.graph import Graph
from tb_tpuprof.trace.held import Sizes, held_bytes
from tb_tpuprof.trace.trace import Trace
from tests.golden_files import demo_runs
from tests.graph_files import event_file, field, graph_def, node

MIB = 2**20


@dataclass
class Result:
    """What an analysis returns: of a size that can be told apart."""

    values: npt.NDArray[np.uint8]


def of_mib(n: int) -> Result:
    return Result(np.zeros(n * MIB, np.uint8))


def three_mib(_trace: Trace) -> Result:
    return of_mib(3)


def five_mib(trace: Trace) -> int:
    trace.memo.get(lambda _trace: of_mib(5), trace)
    return 1


def seven_mib(_graph: Graph) -> Result:
    return of_mib(7)


def joined(session: Session) -> None:
    session.joined.get("sum", [], lambda: of_mib(2))


def graph(session: Session) -> None:
    session.graphs.get(seven_mib, session.graphs.search().places[0])


def program(session: Session) -> None:
    module = session.outline(session.hosts[0]).programs.module(7)
    assert module is not None
    assert module.size_bytes > MIB / 4
    module.memo.get(lambda _module: of_mib(4), module)


# What is kept → its least size in MiB.
KINDS: dict[str, tuple[Callable[[Session], object], float]] = {
    "results": (lambda session: session.get(three_mib, session.hosts[0]), 3),
    "what a trace's analyses keep": (lambda session: session.get(five_mib, session.hosts[0]), 5),
    "programs and their costs": (program, 4.25),
    "graphs": (graph, 7),
    "several hosts together": (joined, 2),
}


@pytest.fixture
def info(tmp_path: Path) -> RunInfo:
    """A run with a program, and a graph next to it."""
    large_program(tmp_path, 2_000)
    events = event_file(field(4, graph_def([node("Add", "n")])))
    (tmp_path / "events.out.tfevents.1.h").write_bytes(events)
    return Session(str(tmp_path), cache=False).info


@pytest.fixture(autouse=True)
def no_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TPUPROF_CACHE_DIR", str(tmp_path / "cache"))


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_counts_and_is_dropped_when_others_need_the_room(info: RunInfo, kind: str) -> None:
    use, least = KINDS[kind]
    store = SessionStore()
    session = store.open(info)
    session.trace(session.hosts[0])
    before = session.kept_bytes
    use(session)
    grown = session.kept_bytes - before
    assert least * MIB <= grown <= (least + 1.5) * MIB
    assert store.open(info).kept_bytes == session.kept_bytes >= before + grown, "it fits"
    store.memory.limit_bytes = int(MIB)
    joined_later(session)
    store.open(info)
    assert session.kept_bytes <= MIB


def joined_later(session: Session) -> None:
    session.joined.get("later", [], lambda: Result(np.zeros(9, np.uint8)))


def test_the_least_recently_used_goes_first_whatever_its_kind(info: RunInfo) -> None:
    store = SessionStore(memory_bytes=17 * MIB)
    session = store.open(info)
    calls: list[str] = []

    def graph_result(_graph: Graph) -> Result:
        calls.append("graph")
        return of_mib(6)

    def host_result(_trace: Trace) -> Result:
        calls.append("host")
        return of_mib(5)

    def sum_of_hosts() -> Result:
        calls.append("joined")
        return of_mib(4)

    place = session.graphs.search().places[0]
    uses = (
        lambda: session.graphs.get(graph_result, place),
        lambda: session.get(host_result, session.hosts[0]),
        lambda: session.joined.get("sum", [], sum_of_hosts),
    )
    for use in (*uses, *uses):
        use()
    assert calls == ["graph", "host", "joined"]
    session.joined.get("more", [], lambda: of_mib(3))
    store.open(info)
    assert session.kept_bytes <= 17 * MIB
    for use in reversed(uses):
        use()
    assert calls == ["graph", "host", "joined", "graph"], "only the graph's result, used first, was dropped"


def test_a_dropped_session_no_longer_counts(info: RunInfo) -> None:
    memory = Memory(2**30)
    session = Session(info.path, cache=False, memory=memory)
    session.get(three_mib, session.hosts[0])
    assert memory.size_bytes >= 3 * MIB
    del session
    gc.collect()
    assert memory.size_bytes == 0


def test_results_of_a_host_that_is_being_computed_stay(info: RunInfo) -> None:
    memory = Memory(MIB)
    session = Session(info.path, cache=False, memory=memory)
    host = session.hosts[0]
    session.get(three_mib, host)

    def trims(_trace: Trace) -> int:
        joined_later(session)
        memory.trim(is_between_requests=True)
        return 8

    assert session.get(trims, host) == 8
    joined_later(session)
    memory.trim(is_between_requests=True)
    assert memory.size_bytes <= MIB


def test_a_trace_is_freed_when_nobody_uses_it() -> None:
    """Not only when Python looks for circles: of many hosts, each next one would need memory of its own."""
    path = next(demo_runs()["jax_train"].glob("*.xplane.pb"))
    gc.disable()
    try:
        trace = open_trace(str(path))
        assert summary(trace).n_events
        assert host_evidence(trace).n_steps
        assert trace.programs.module(trace.programs[0])
        watched = ref(trace)
        del trace
        assert watched() is None
    finally:
        gc.enable()


def test_sizes_of_arrays_texts_and_long_lists() -> None:
    array = np.zeros(1000)
    assert held_bytes(array) == 8000
    assert held_bytes([array, array[:10], {"same": array}]) < 8600
    assert held_bytes(array[:10], (array,)) == 0
    unlike = [b"-" * 1000] * 3 + [bytes([i % 256]) * 5000 for i in range(1000)]
    assert 4_500_000 <= held_bytes(unlike) <= 5_500_000
    texts = {i: f"{i:09}" * 100 for i in range(1000)}
    assert 900_000 <= held_bytes(texts) < 1_200_000


def test_what_grows_is_measured_again() -> None:
    sizes, growing = Sizes(), [b""]
    items = {"a": growing, "b": np.zeros(10), "c": "text"}
    before = sizes.total(items)
    growing.append(b"-" * 5000)
    assert [sizes.total(items, again=False)] == [before]
    assert max(sizes.total(items) for _ in range(3)) >= before + 5000
