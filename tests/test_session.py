"""Sessions: each analysis once, files read anew when they change, memory bounded."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from bench.large_program import large_program
from tb_tpuprof.analysis.device.hardware import hardware
from tb_tpuprof.errors import HostNotFound, HostsUnreadable, NotATrace
from tb_tpuprof.ingest.storage.runs import find_run
from tb_tpuprof.parallel.policy import POLICY
from tb_tpuprof.parallel.threads import n_threads
from tb_tpuprof.session import Session, SessionStore
from tb_tpuprof.session.memory import Memory
from tb_tpuprof.tools import get_tool
from tb_tpuprof.trace.graph import Graph
from tb_tpuprof.trace.trace import Trace
from tests.graph_files import event_file, field, graph_def, node
from tests.ingest.xspaces import small_xspace


def make_run(folder: Path, n_hosts: int) -> str:
    """A run of that many equal hosts."""
    folder.mkdir(parents=True)
    for i in range(n_hosts):
        (folder / f"h{i}.xplane.pb").write_bytes(small_xspace())
    return str(folder)


def test_an_analysis_runs_once_until_the_file_changes(tmp_path: Path) -> None:
    session = Session(make_run(tmp_path / "r", 1), cache=False)
    calls = []

    def count(trace: Trace) -> int:
        calls.append(trace)
        return trace.n_events

    assert [session.get(count, "h0"), session.get(count, "h0")] == [80, 80]
    assert len(calls) == 1
    os.utime(tmp_path / "r" / "h0.xplane.pb", ns=(5, 5))
    session.get(count, "h0")
    assert len(calls) == 2


def test_what_is_known_needs_no_reading(tmp_path: Path) -> None:
    session = Session(make_run(tmp_path / "r", 2), cache=False)
    assert session.known(hardware, ["h0", "h1"]) is None
    session.map(hardware, ["h0"])
    assert session.known(hardware, ["h0", "h1"]) is None
    found = session.map(hardware, ["h1", "h0"])
    assert session.known(hardware, ["h1", "h0"]) == found
    os.utime(tmp_path / "r" / "h0.xplane.pb", ns=(5, 5))
    assert session.known(hardware, ["h1", "h0"]) is None


def test_map_keeps_the_order_of_hosts(tmp_path: Path) -> None:
    session = Session(make_run(tmp_path / "r", 5), cache=False)
    assert session.map(lambda trace: trace.info.host, ["h3", "h0", "h4"]) == ["h3", "h0", "h4"]


@pytest.mark.parametrize(("n_hosts", "n_more", "threads_each"), [(8, 0, 1), (2, 0, 2), (8, 10, 2)])
def test_hosts_that_fill_the_processors_are_not_cut_further(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_hosts: int, n_more: int, threads_each: int
) -> None:
    """Where there are few, or one is far larger than the others, a processor would be idle at the end: there
    each host is cut.
    """
    monkeypatch.setattr(POLICY, "n_processors", lambda: 2)
    folder = make_run(tmp_path / "r", n_hosts)
    (tmp_path / "r" / "h0.xplane.pb").write_bytes(small_xspace() * (1 + n_more))
    session = Session(folder, cache=False)
    assert session.map(lambda trace: n_threads(), session.hosts) == [threads_each] * n_hosts
    assert n_threads() == 2


def test_functions_of_other_modules_are_mapped_over_many_hosts(tmp_path: Path) -> None:
    """A lambda does not travel to another process: its hosts stay on threads, however many they are."""
    session = Session(make_run(tmp_path / "r", POLICY.max_hosts_in_memory + 1), cache=False)
    assert session.map(lambda trace: trace.n_events, session.hosts) == [80] * len(session.hosts)
    assert session.size_bytes == 0


def test_hosts_that_fail_are_named_once_the_others_are_computed(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "r", 3)
    (tmp_path / "r" / "h1.xplane.pb").write_bytes(b"\xff" * 99)
    session = Session(folder, cache=False)
    with pytest.raises(HostsUnreadable) as raised:
        session.map(hardware, ["h2", "gone", "h1", "h0"])
    assert list(raised.value.failures) == ["gone", "h1"]
    assert [type(error) for error in raised.value.failures.values()] == [HostNotFound, NotATrace]
    assert session.known(hardware, ["h0", "h2"])
    assert list(session.known_failures(["h0", "h1", "gone"])) == ["h1", "gone"]


def test_a_subset_has_some_hosts_and_all_that_is_known_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session(make_run(tmp_path / "r", 4), cache=False, name="named")
    found = session.map(hardware, session.hosts)
    trace = session.trace("h2")
    monkeypatch.setattr("tb_tpuprof.session.host_store.open_trace", None)
    part = session.subset(["h2", "h0", "nobody"])
    assert (part.hosts, part.run) == (("h0", "h2"), "named")
    assert [file.host for file in part.info.files] == ["h0", "h2"]
    assert part.known(hardware, ["h2", "h0"]) == [found[2], found[0]]
    assert part.map(hardware, part.hosts) == [found[0], found[2]]
    assert part.trace("h2") is trace
    assert part.size_bytes == session.size_bytes > 0
    assert part.subset(["h2", "h3"]).hosts == ("h2",)
    for ask in (part.trace, part.file, part.outline, part.notices):
        with pytest.raises(HostNotFound, match="h1"):
            ask("h1")
    assert (session.hosts, len(session.info.files)) == (("h0", "h1", "h2", "h3"), 4), "as it was"


def test_what_a_subset_computes_the_whole_session_knows_until_the_file_changes(tmp_path: Path) -> None:
    session = Session(make_run(tmp_path / "r", 3), cache=False)
    part = session.subset(["h1"])
    assert part.get(hardware, "h1") is session.get(hardware, "h1")
    assert session.known(hardware, ["h1"])
    os.utime(tmp_path / "r" / "h1.xplane.pb", ns=(5, 5))
    assert part.known(hardware, ["h1"]) is None
    assert session.known(hardware, ["h1"]) is None
    assert part.fingerprint() != session.fingerprint()
    assert part.fingerprint() in session.fingerprint()


def test_traces_beyond_the_memory_are_dropped(tmp_path: Path) -> None:
    session = Session(make_run(tmp_path / "r", 4), cache=False)
    limit = int(session.trace("h0").size_bytes * 2.5)
    session = Session(session.info.path, cache=False, memory=Memory(limit))
    for host in session.hosts:
        session.trace(host)
    assert 0 < session.size_bytes <= limit


def test_the_store_keeps_the_last_used_sessions_and_sees_new_files(tmp_path: Path) -> None:
    store = SessionStore(limit=2)
    runs = [Session(make_run(tmp_path / name, 1)).info for name in "abc"]
    first = store.open(runs[0])
    assert store.open(runs[0]) is first
    store.open(runs[1])
    store.open(runs[2])
    assert store.open(runs[0]) is not first
    (tmp_path / "b" / "h1.xplane.pb").write_bytes(small_xspace())
    changed = Session(str(tmp_path / "b")).info
    assert store.open(changed).hosts == ("h0", "h1")


def test_runs_of_a_relative_logdir_stay_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`tensorboard --logdir logs`: each request finds the run anew, and must find the session that knows its
    results.
    """
    make_run(tmp_path / "logs" / "plugins" / "profile" / "r", 1)
    monkeypatch.chdir(tmp_path)
    store = SessionStore()
    assert store.open(find_run("logs", "r")) is store.open(find_run("logs", "r"))
    os.utime(tmp_path / "logs" / "plugins" / "profile" / "r" / "h0.xplane.pb", ns=(5, 5))
    assert store.open(find_run("logs", "r")) is store.open(find_run("logs", "r"))


@pytest.mark.parametrize("name", ["", "named/run"])
def test_a_sessions_name_is_the_runs_unless_given(tmp_path: Path, name: str) -> None:
    assert Session(make_run(tmp_path / "r", 1), name=name).run == (name or "r")


def test_an_outline_has_programs_and_hardware_without_events(tmp_path: Path) -> None:
    large_program(tmp_path, 2_000)
    session = Session(str(tmp_path), cache=False)
    host = session.hosts[0]
    outline = session.outline(host)
    assert (outline.n_events, len(outline.lines), outline.info.is_outline) == (0, 0, True)
    whole = session.trace(host)
    assert (whole.n_events, whole.info.is_outline) == (1_999, False)
    assert hardware(outline) == hardware(whole)
    assert list(outline.programs) == list(whole.programs)
    assert outline.programs.module(7) is not None
    assert session.notices(host) == ()
    assert session.outline(host) is outline
    assert Session(str(tmp_path), cache=False).notices(host) == ()


def test_results_of_graphs_are_kept_until_the_file_changes_or_others_take_their_place(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "plugins" / "profile" / "r", 1)
    session = Session(folder, cache=False, memory=Memory(4 * 2**20))
    assert not session.graphs.search().places
    events = tmp_path / "events.out.tfevents.1.h"
    events.write_bytes(event_file(*[graph(f"n{i}") for i in range(5)]))
    places = session.graphs.search().places
    calls: list[str] = []

    def first_name(found: Graph) -> FirstName:
        calls.append(found.name(0))
        return FirstName(found.name(0), b"-" * 2**20)

    for place in (*places[:2], *places[:2]):
        session.graphs.get(first_name, place)
    assert calls == ["n0", "n1"]
    for place in (*places, places[0]):
        session.graphs.get(first_name, place)
    assert calls == [*(f"n{i}" for i in range(5)), "n0"]
    os.utime(events, ns=(5, 5))
    anew = session.subset([]).graphs.get(first_name, places[0])
    assert (anew.text, len(anew.ballast)) == ("n0", 2**20)
    assert len(calls) == 7


@dataclass
class FirstName:
    """A result of more than a quarter of the memory."""

    text: str
    ballast: bytes


def graph(name: str) -> bytes:
    """An event with a graph of one node."""
    return field(4, graph_def([node("Add", name)]))


def test_the_memory_viewer_reads_no_events_of_large_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tb_tpuprof.tools.memory_viewer.view.QUICK_BYTES", 0)
    large_program(tmp_path, 500)
    session = Session(str(tmp_path), cache=False)
    payload = get_tool("memory_viewer").run(session, None, {})
    # Parameter and result; what the layer keeps; what is written and what is read for it.
    assert payload.scalars["peak_bytes"].value == 4 * 128 * 512 * (2 + 499 // 20 + 2)
    assert session.size_bytes == 0
