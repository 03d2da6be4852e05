"""The diagnosis of many hosts reads the slowest and a spread of the others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tb_tpuprof.analysis.diagnosis.evidence import host_evidence
from tb_tpuprof.analysis.overview.summary import summary
from tb_tpuprof.cli import main
from tb_tpuprof.parallel.policy import POLICY
from tb_tpuprof.session import Session, host_store
from tb_tpuprof.tools import get_tool
from tb_tpuprof.tools.verdicts import limits_of
from tb_tpuprof.tools.why import diagnosis, explained_hosts
from tb_tpuprof.trace.trace import Trace
from tests.synthetic import GpuJob, Parts, gpu_xspace, write_run

N, SLOW = 40, 23


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """40 hosts in lockstep: host 23 computes through each step, the others wait for it in a collective for
    30, 31 or 32% of it.
    """
    jobs = {
        f"h{i:02d}": GpuJob(Parts(0.68 - 0.01 * (i % 3), collective=0.3 + 0.01 * (i % 3))) for i in range(N)
    }
    jobs[f"h{SLOW}"] = replace(jobs["h00"], parts=Parts(0.97, collective=0.01))
    return write_run(
        tmp_path_factory.mktemp("many"), {host: gpu_xspace(job, host) for host, job in jobs.items()}
    )


def test_the_slowest_are_among_those_that_are_read(run: Path) -> None:
    session = Session(str(run), cache=False)
    chosen = explained_hosts(session, session.hosts)
    assert f"h{SLOW}" in chosen
    assert {"h00", f"h{N - 1}"} <= set(chosen)
    assert POLICY.max_hosts_in_memory - 4 < len(chosen) <= POLICY.max_hosts_in_memory
    assert chosen == sorted(chosen)
    few = session.hosts[: POLICY.max_hosts_in_memory]
    assert explained_hosts(session, few) == list(few)


def test_one_pass_reads_all_summaries_and_the_evidence_of_a_spread(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host is decoded once for both; evidence is computed of those hosts only."""
    opened: list[str] = []
    opening = host_store.open_trace

    def counted(path: str, *more: bool) -> Trace:
        opened.append(path)
        return opening(path, *more)

    monkeypatch.setattr(host_store, "open_trace", counted)
    session = Session(str(run), cache=False, executor="threads")
    explained_hosts(session, session.hosts)
    assert len(opened) == len(set(opened)) == N
    with_evidence = [host for host in session.hosts if session.known(host_evidence, [host])]
    assert len(with_evidence) == POLICY.max_hosts_in_memory - 4
    assert {with_evidence[0], with_evidence[-1]} == {"h00", f"h{N - 1}"}
    assert all(session.known(summary, [host]) for host in session.hosts)


def test_the_answer_says_of_how_many_hosts_it_is(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session = Session(str(run), cache=False)
    result = diagnosis(session)
    n = len(explained_hosts(session, session.hosts))
    assert result.note.startswith(f"Causes are those of {n} of {N} hosts: the 4 slowest")
    assert not diagnosis(session, session.hosts[:2]).note
    overview = get_tool("overview_page").run(session, None, {})
    assert result.note in [one.message for one in overview.diagnostics]
    assert main(["why", str(run), "--no-cache"]) == 0
    assert result.note in capsys.readouterr().out


def test_pages_use_what_the_overview_read(run: Path) -> None:
    session = Session(str(run), cache=False)
    assert limits_of(session, session.hosts) is None
    get_tool("overview_page").run(session, None, {})
    limits = limits_of(session, session.hosts)
    assert limits is not None
    assert limits.diagnosis.text == diagnosis(session).text
