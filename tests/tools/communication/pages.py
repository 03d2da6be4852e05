"""The job of `synthetic_comm.py` as a session, and what its hosts communicate, joined."""

from __future__ import annotations

from pathlib import Path

from tb_tpuprof.analysis.comm.host import comm_host
from tb_tpuprof.analysis.comm.join import Comm, join_comm
from tb_tpuprof.session import Session
from tests.synthetic import write_run
from tests.synthetic_comm import comm_hosts

US = 1_000_000


def comm_session(folder: Path, has_steps: bool = True) -> Session:
    return Session(str(write_run(folder, comm_hosts(has_steps=has_steps))), cache=False)


def joined(session: Session) -> Comm:
    return join_comm(session.map(comm_host, session.hosts))


def us(values: list[object]) -> list[float]:
    """Picoseconds as microseconds."""
    return [float(value) / US for value in values]  # type: ignore[arg-type]
