"""A real Dask cluster of two workers on this machine answers the same bytes as threads here."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tb_tpuprof.analysis.overview.summary import summary
from tb_tpuprof.encode import encode_json
from tb_tpuprof.errors import ExecutorFailed
from tb_tpuprof.session import Session
from tb_tpuprof.tools import all_tools, get_tool
from tests.free_port import free_port
from tests.synthetic import TpuJob, tpu_hosts, write_run

distributed = pytest.importorskip(
    "distributed", reason="*** NOT RUN: Dask is not installed; pip install 'tb-tpuprof[dask]'. ***"
)
N_WORKERS = 2

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """The name of the executor: workers are processes of their own."""
    with distributed.LocalCluster(n_workers=N_WORKERS, threads_per_worker=1, dashboard_address=None) as local:
        yield f"dask://{local.scheduler_address.removeprefix('tcp://')}"


@pytest.fixture
def run(tmp_path: Path) -> str:
    hosts = tpu_hosts(TpuJob(), tuple(1.3 if i == 7 else 1.0 for i in range(12)))
    return str(write_run(tmp_path / "run", {**hosts, "bad": b"\xff" * 99}))


@pytest.mark.parametrize("name", [tool.name for tool in all_tools()])
def test_every_tool_answers_the_same_bytes(cluster: str, run: str, name: str) -> None:
    tool = get_tool(name)
    here = Session(run, cache=False)
    if not tool.availability(here):
        pytest.skip("nothing to show on hosts of TPUs")
    expected = encode_json(tool.run(here, None, {}))
    assert encode_json(tool.run(Session(run, cache=False, executor=cluster), None, {})) == expected


def test_hosts_are_analysed_by_the_workers(cluster: str, run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "tb_tpuprof.session.host_store.open_trace", None
    )  # of this process; the workers have their own
    whole = Session(run, cache=False, executor=cluster)
    session = whole.subset(host for host in whole.hosts if host != "bad")
    assert len(session.map(summary, session.hosts)) == 12


def test_a_scheduler_that_is_not_there_is_an_error_with_a_remedy(
    run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tb_tpuprof.parallel.executors._CONNECT_SECONDS", 0.3)
    with pytest.raises(ExecutorFailed, match="does not answer") as raised:
        get_tool("overview_page").run(
            Session(run, cache=False, executor=f"dask://127.0.0.1:{free_port(40000)}"), None, {}
        )
    assert "scheduler" in raised.value.remedy
    assert sys.modules["distributed"]
