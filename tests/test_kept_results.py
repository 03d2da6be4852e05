"""What tools ask of every host is kept on disk: a second process answers for many hosts without reading their
traces.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest

from tb_tpuprof.errors import ToolUnavailable
from tb_tpuprof.ingest.opening import open_trace
from tb_tpuprof.ingest.storage import result_cache
from tb_tpuprof.parallel.executors import HostExecutor, one_request
from tb_tpuprof.parallel.policy import POLICY
from tb_tpuprof.session import Session
from tb_tpuprof.session.host_store import Contents, HostStore
from tb_tpuprof.tools import all_tools
from tb_tpuprof.tools.tool import Tool
from tb_tpuprof.trace.trace import Trace
from tests.golden_files import DEMO_LOGS
from tests.synthetic import TpuJob, tpu_hosts, write_run
from tests.synthetic_comm import comm_hosts
from tests.synthetic_dcn import dcn_hosts
from tests.synthetic_devices import MemoryJob, kernels_xspace, memory_xspace
from tests.synthetic_serving import Server, serving

N_HOSTS = 8  # more than fit into memory here, so that not even columns are kept
# These draw the traces themselves, of at most 16 hosts, or the files of runs without a trace.
OF_TRACES = {"trace_viewer", "flame_graph", "memory_snapshot"}


def two_workers() -> bytes:
    """A host with tf.data pipelines."""
    return next((DEMO_LOGS / "tf_two_workers").glob("plugins/profile/*/*.xplane.pb")).read_bytes()


MAKERS: dict[str, Callable[[], dict[str, bytes]]] = {
    "tpu": lambda: tpu_hosts(TpuJob(), (1.0,) * N_HOSTS),
    "gpu": lambda: dict.fromkeys((f"h{i}" for i in range(N_HOSTS)), kernels_xspace()),
    "comm": lambda: dict.fromkeys((f"h{i}" for i in range(N_HOSTS)), comm_hosts(has_hlo=False)["h0"]),
    "memory": lambda: dict.fromkeys(
        (f"h{i}" for i in range(N_HOSTS)), memory_xspace(MemoryJob(leak_bytes=4096))
    ),
    "requests": lambda: dict.fromkeys((f"h{i}" for i in range(N_HOSTS)), serving(Server(n_requests=30)).data),
    "tf_data": lambda: dict.fromkeys((f"h{i}" for i in range(N_HOSTS)), two_workers()),
    "dcn": lambda: dict.fromkeys((f"h{i}" for i in range(N_HOSTS)), dcn_hosts()["synthetic-2"]),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("kept")
    return {name: write_run(folder / name, make()) for name, make in MAKERS.items()}


@pytest.fixture(autouse=True)
def many_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The runs have too many hosts to keep their traces in memory."""
    monkeypatch.setattr(POLICY, "max_hosts_in_memory", N_HOSTS - 1)


def answers(tool: Tool, run: Path) -> bool:
    """Whether the tool has something to show of all hosts."""
    try:
        tool.run(Session(str(run)), None, {})
    except ToolUnavailable:
        return False
    return True


def tools() -> list[object]:
    """Those that do not draw the traces themselves; all but the page that opens first are slow."""
    marks = {True: [], False: [pytest.mark.slow]}
    return [
        pytest.param(tool, id=tool.name, marks=marks[tool.name == "overview_page"])
        for tool in all_tools()
        if tool.name not in OF_TRACES
    ]


@pytest.mark.slow
@pytest.mark.parametrize("tool", tools())
def test_a_second_look_at_many_hosts_reads_at_most_one_trace(
    tool: Tool, runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TPUPROF_CACHE_DIR", str(tmp_path / "cache"))
    with one_request(N_HOSTS):  # the same processes for all runs: most of the time is their start
        shown = [name for name, run in runs.items() if answers(tool, run)]
    opened: list[str] = []
    opening = HostStore._open

    def counted(self: HostStore, contents: Contents, keeps_trace: bool) -> Trace:
        if self._run.traces.get(contents.state) is None:
            opened.append(self.host)
        return opening(self, contents, keeps_trace)

    monkeypatch.setattr(HostStore, "_open", counted)
    for name in shown:
        opened.clear()
        assert answers(tool, runs[name])
        assert len(opened) <= 1, f"{tool.name} of {name} reads {len(opened)} traces again"
    with_hosts = {
        "graph_viewer",
        "memory_viewer",
        "saved_pages",
        "tpu_compatibility",
    }  # of programs, graphs and saved pages, which these runs may lack
    assert shown or tool.name in with_hosts


# What of a page is drawn from one host's trace: that of the chosen pipeline or memory, the texts of
# operations, the slow input stage. The diagnosis of many hosts reads the slowest again, which are known only
# when all have been read.
DRAWN = {"overview_page": 1 + 4, "memory_profile": 1, "tf_data_bottleneck_analysis": 1, "hlo_stats": 1}


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["threads", "processes"])
@pytest.mark.parametrize("tool", tools())
def test_the_first_look_at_many_hosts_reads_each_trace_once(
    tool: Tool, executor: str, runs: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decoding is most of the first look, and traces of many hosts are not kept: what a page asks of them is
    asked at once.
    """
    opened: list[str] = []

    def counted(path: str, *more: Any) -> Any:
        opened.append(path)
        return open_trace(path, *more)

    def here(_name: str, _n_hosts: int) -> Any:
        """An executor that may only do what one in other processes may, and is seen here."""
        return nullcontext(HostExecutor(ThreadPoolExecutor(2), is_remote=executor == "processes"))

    monkeypatch.setattr("tb_tpuprof.session.host_store.open_trace", counted)
    monkeypatch.setattr("tb_tpuprof.ingest.evaluation.open_trace", counted)
    monkeypatch.setattr("tb_tpuprof.parallel.executors.host_executor", here)
    for name, run in runs.items():
        opened.clear()
        try:
            tool.run(Session(str(run), cache=False), None, {}, waits=False)
        except ToolUnavailable:
            continue
        most = N_HOSTS if tool.hosts == "many" else 1
        assert len(opened) - len(set(opened)) <= DRAWN.get(tool.name, 0), (
            f"{tool.name} of {name} reads {len(opened)} traces"
        )
        assert len(set(opened)) <= most


def test_what_is_mapped_over_hosts_can_be_kept(
    runs: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reason for the test above: an analysis that stands elsewhere than in `analysis/`, or gives what
    cannot be packed, is not kept.
    """
    mapping = Session.map
    seen: set[str] = set()

    def checked(
        self: Session,
        function: Callable[..., Any],
        hosts: Sequence[str],
        *with_it: Callable[..., Any],
        **named: Any,
    ) -> list[Any]:
        found = mapping(self, function, hosts, *with_it, **named)
        for one in (function, *with_it):
            assert result_cache.travels(one), f"{one.__module__}.{one.__qualname__}"
        assert all(result_cache.pack(result) is not None for result in found), function.__qualname__
        seen.add(function.__qualname__)
        return found

    monkeypatch.setattr(Session, "map", checked)
    for run in runs.values():
        whole = Session(str(run), cache=False)
        session = whole.subset(whole.hosts[:2])
        for tool in all_tools():
            if tool.name not in OF_TRACES and tool.available(session):
                with suppress(ToolUnavailable):  # programs without buffers
                    tool.run(session, None, {})
    assert {"summary", "kernels", "host_memory", "host_pipelines", "pod_host", "hlo_ops"} <= seen
