"""Hosts whose files are damaged, cut off, empty, gone or never came: every tool shows the others and names
them.
"""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import pytest

from tb_tpuprof.analysis.steps.diagnostics import trace_notices
from tb_tpuprof.errors import HostNotFound, HostsUnreadable, ToolUnavailable, TraceFormatError
from tb_tpuprof.serve.logdirs import Logdirs
from tb_tpuprof.serve.routes import Routes
from tb_tpuprof.session import Session
from tb_tpuprof.tools import all_tools, get_tool
from tb_tpuprof.tools.payload import Payload
from tb_tpuprof.tools.tool import Tool
from tb_tpuprof.tools.unreadable import missing_hosts
from tests.golden_files import demo_runs
from tests.synthetic import TpuJob, tpu_xspace
from tests.synthetic_devices import kernels_xspace, memory_xspace

# They read graphs and pages next to the hosts' files, and runs of memory snapshots.
READ_NO_TRACE = {"tpu_compatibility", "saved_pages", "memory_snapshot"}
TOOL_NAMES = [tool.name for tool in all_tools() if tool.name not in READ_NO_TRACE]


@pytest.fixture(scope="module")
def candidates(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """One host's file of each kind of job that the tests know."""
    demo = [sorted(folder.glob("*.xplane.pb"))[0].read_bytes() for folder in demo_runs().values()]
    return [*demo, kernels_xspace(), memory_xspace(), tpu_xspace(TpuJob())]


def write(folder: Path, hosts: dict[str, bytes]) -> Path:
    """A run of these hosts."""
    folder.mkdir(parents=True)
    for host, data in hosts.items():
        (folder / f"{host}.xplane.pb").write_bytes(data)
    return folder


def run_for(tool: Tool, candidates: list[bytes], folder: Path) -> tuple[Path, bytes, bool]:
    """A run of two good hosts that have something to show for the tool, what a host's file is, and whether
    there is such a one.
    """
    for i, data in enumerate(candidates):
        run = write(folder / str(i), {"good-a": data, "good-b": data})
        if tool.availability(Session(str(run), cache=False)):
            return run, data, True
    return run, data, False


def told(payload: Payload) -> str:
    """All that the payload says of the trace itself, warnings and errors."""
    return "\n".join(f"{one.message} {one.remedy}" for one in payload.diagnostics if one.severity != "info")


@pytest.mark.parametrize("name", TOOL_NAMES)
@pytest.mark.parametrize("damage", ["empty", "junk", "cut off at once", "is a page"])
def test_every_tool_shows_the_others_and_names_the_one_that_is_bad(
    name: str, damage: str, candidates: list[bytes], tmp_path: Path
) -> None:
    tool = get_tool(name)
    run, data, has_something = run_for(tool, candidates, tmp_path)
    bad = {
        "empty": b"",
        "junk": b"\xff" * 500,
        "cut off at once": data[:5],
        "is a page": b"<html>Not found</html>",
    }[damage]
    (run / "a-bad.xplane.pb").write_bytes(bad)
    session = Session(str(run), cache=False)
    if not has_something:
        with pytest.raises(ToolUnavailable, match="a-bad cannot be read"):
            tool.run(session, None, {})
        return
    assert tool.availability(session), "the first host is bad, the others tell"
    payload = tool.run(session, None, {})
    assert payload.hosts == ("good-a", "good-b") if tool.hosts == "many" else ("good-a",)
    n_hosts = len(session.hosts)
    assert f"1 of {n_hosts} hosts could not be read: a-bad.xplane.pb is " in told(payload)
    assert sum(table.n_rows for table in payload.tables.values()) > 0
    with pytest.raises(HostsUnreadable, match=r"a-bad\.xplane\.pb") as raised:
        tool.run(session, ["a-bad"], {})
    kind = "trace_format" if damage == "empty" else "not_a_trace"
    assert (raised.value.kind, raised.value.http_status, raised.value.exit_code) == (kind, 422, 3)


@pytest.mark.parametrize("name", TOOL_NAMES)
def test_every_tool_tells_of_a_host_that_is_there_in_part(
    name: str, candidates: list[bytes], tmp_path: Path
) -> None:
    tool = get_tool(name)
    run, data, has_something = run_for(tool, candidates, tmp_path)
    if not has_something:
        pytest.skip("no run of the tests has something to show for it; the test above holds that it says so")
    broken = data + b"\x0a\x04\xff\xff\xff\xff"  # one more plane, which is no plane
    (run / "good-b.xplane.pb").write_bytes(broken)
    session = Session(str(run), cache=False)
    assert session.trace("good-b").info.n_damaged
    payload = tool.run(session, ["good-a", "good-b"] if tool.hosts == "many" else ["good-b"], {})
    assert "good-b: 1 damaged part was skipped" in told(payload)
    assert told(payload).count("good-b: 1 damaged part") == 1


@pytest.mark.parametrize("name", TOOL_NAMES)
def test_every_tool_names_hosts_that_are_gone(name: str, candidates: list[bytes], tmp_path: Path) -> None:
    tool = get_tool(name)
    run, _, has_something = run_for(tool, candidates, tmp_path)
    session = Session(str(run), cache=False)
    with pytest.raises(HostNotFound):
        tool.run(session, ["gone"], {})
    if not has_something:
        return
    assert "gone is not in this run" in told(tool.run(session, ["good-a", "gone"], {}))
    (run / "good-a.xplane.pb").unlink()
    payload = tool.run(session, None, {})
    assert payload.hosts == ("good-b",)
    assert "1 of 2 hosts could not be read" in told(payload)
    assert "good-a" in told(payload)


@pytest.mark.parametrize("word", ["ALL_HOSTS", "all"])
@pytest.mark.parametrize("name", TOOL_NAMES)
def test_every_tool_takes_all_hosts_by_a_word(
    name: str, word: str, candidates: list[bytes], tmp_path: Path
) -> None:
    tool = get_tool(name)
    run, _, has_something = run_for(tool, candidates, tmp_path)
    session = Session(str(run), cache=False)
    if has_something:
        assert tool.run(session, [word], {}).hosts == (
            session.hosts if tool.hosts == "many" else session.hosts[:1]
        )


def test_a_file_that_becomes_whole_is_read_again(tmp_path: Path) -> None:
    good = tpu_xspace(TpuJob())
    run = write(tmp_path / "run", {"a": good, "b": good[:5]})
    session = Session(str(run), cache=False)
    first = get_tool("overview_page").run(session, None, {})
    assert first.hosts == ("a",)
    assert "still being written" in told(first)
    (run / "b.xplane.pb").write_bytes(good)
    assert get_tool("overview_page").run(session, None, {}).hosts == ("a", "b")


def test_a_bad_file_is_not_read_again_and_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(str(write(tmp_path / "run", {"a": b"\xff" * 100})), cache=False)
    with pytest.raises(TraceFormatError):
        session.trace("a")
    monkeypatch.setattr("tb_tpuprof.session.host_store.open_trace", None)
    with pytest.raises(TraceFormatError) as raised:
        session.trace("a")
    assert raised.value.host == "a"


def test_all_hosts_bad_is_one_error_that_names_them(tmp_path: Path) -> None:
    session = Session(str(write(tmp_path / "run", dict.fromkeys("abcdef", b"\xff" * 100))), cache=False)
    with pytest.raises(
        HostsUnreadable, match=r"None of the 6 hosts can be read\. a\.xplane\.pb is "
    ) as raised:
        get_tool("overview_page").run(session, None, {})
    assert [line.split(".")[0] for line in raised.value.details.splitlines()] == list("abcdef")
    assert sorted(raised.value.failures) == list("abcdef")


def test_very_many_bad_hosts_are_counted(tmp_path: Path) -> None:
    hosts = {f"bad-{i}": b"" for i in range(20)}
    payload = get_tool("overview_page").run(
        Session(str(write(tmp_path / "run", {"a": tpu_xspace(TpuJob()), **hosts})), cache=False), None, {}
    )
    (diagnostic,) = [one for one in payload.diagnostics if one.severity == "error"]
    assert diagnostic.message.startswith("20 of 21 hosts could not be read: bad-0.xplane.pb is empty.")
    assert diagnostic.message.count("is empty.") == 8  # the others are named only
    assert "Also left out: " in diagnostic.message
    assert diagnostic.message.endswith(" and 4 more.")


def test_a_reason_names_the_file_and_its_details_the_place(tmp_path: Path) -> None:
    session = Session(str(write(tmp_path / "run", {"a": b""})), cache=False)
    with pytest.raises(HostsUnreadable) as raised:
        get_tool("overview_page").run(session, None, {})
    assert raised.value.message == "a.xplane.pb is empty."
    assert raised.value.details == str(tmp_path / "run" / "a.xplane.pb")
    error = TraceFormatError("gs://bucket/run/a.xplane.pb", 12345, "is cut off or damaged")
    assert (error.message, error.details) == (
        "a.xplane.pb is cut off or damaged.",
        "gs://bucket/run/a.xplane.pb, byte 12,345",
    )


@pytest.mark.parametrize(
    ("hosts", "missing"),
    [
        (["w-0", "w-1", "w-3"], ["w-2"]),
        (["w-00", "w-01", "w-03", "w-04"], ["w-02"]),
        (["host1.x", "host2.x", "host5.x", "host6.x"], ["host3.x", "host4.x"]),
        (["w-0", "w-1", "w-2"], []),
        (["w-0", "w-2"], []),  # two names are no count
        (["w-0", "w-1", "w-999999"], []),
        (["10.0.0.1", "10.0.0.2", "10.0.0.4"], []),
        (["h_6009", "h_6010", "h_6012"], []),
        (["a-0", "a-1", "b-3"], []),
        (["a", "b", "c"], []),
    ],
)
def test_a_gap_in_a_count_of_hosts_is_a_missing_host(hosts: list[str], missing: list[str]) -> None:
    assert missing_hosts(hosts) == missing


def test_a_missing_host_is_named_where_all_are_asked_for(tmp_path: Path) -> None:
    data = tpu_xspace(TpuJob())
    session = Session(str(write(tmp_path / "run", {f"w-{i}": data for i in (0, 1, 3)})), cache=False)
    assert "w-2 has no file in this run" in told(get_tool("overview_page").run(session, None, {}))
    assert "w-2" not in told(get_tool("overview_page").run(session, ["w-0", "w-1"], {}))


def test_the_menu_offers_what_readable_hosts_have(tmp_path: Path) -> None:
    from werkzeug.test import Client

    folder = write(
        tmp_path / "log" / "plugins" / "profile" / "run", {"a": b"\xff" * 9, "b": kernels_xspace()}
    )
    apps = Routes(Logdirs.of(str(tmp_path / "log"), ""), "profile").apps()
    answer = Client(apps["/tools"]).get("/tools", query_string={"run": "run"}).json
    assert answer
    assert {tool["name"]: tool["available"] for tool in answer["tools"]}["kernel_stats"]
    shutil.rmtree(folder)


def test_a_trace_file_is_made_of_the_hosts_that_can_be_read(tmp_path: Path) -> None:
    run = write(tmp_path / "run", {"a": b"\xff" * 9, "b": kernels_xspace()})
    tool = get_tool("trace_viewer")
    name, parts = tool.file(Session(str(run), cache=False), [], {}, "trace")
    assert (name, gzip.decompress(b"".join(parts))[:1]) == ("run.trace.json.gz", b"{")
    with pytest.raises(HostsUnreadable):
        tool.file(Session(str(run), cache=False), ["a"], {}, "trace")


@pytest.mark.parametrize("name", [tool.name for tool in all_tools() if tool.hosts == "one"])
def test_a_page_of_one_host_names_others_that_are_known_to_be_bad(
    name: str, candidates: list[bytes], tmp_path: Path
) -> None:
    """An empty file is known at once, a damaged one when any page has tried to read it; nothing is read to
    find out.
    """
    tool = get_tool(name)
    run, _, has_something = run_for(tool, candidates, tmp_path)
    if not has_something:
        pytest.skip("no candidate has something to show")
    (run / "z-bad.xplane.pb").write_bytes(b"\xff" * 500)
    (run / "z-empty.xplane.pb").write_bytes(b"")
    session = Session(str(run), cache=False)
    first = told(tool.run(session, None, {}))
    assert "z-empty cannot be chosen" in first
    assert "z-bad" not in first
    with pytest.raises(HostsUnreadable):
        session.map(trace_notices, ["z-bad"])
    both = told(tool.run(session, None, {}))
    assert "z-empty cannot be chosen" in both
    assert "z-bad cannot be chosen" in both
    assert "z-bad" not in told(tool.run(session, ["good-b"], {}))
