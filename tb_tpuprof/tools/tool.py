"""A tool that answers: what it declares, with hosts and parameters validated and unreadable hosts
left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tb_tpuprof.session import Session
from tb_tpuprof.tools.arguments import validate_hosts, validate_params
from tb_tpuprof.tools.base import Availability, Declaration, Payload
from tb_tpuprof.tools.unreadable import available_readable, view_readable
from tb_tpuprof.tools.verdicts import await_limits, is_diagnosed


@dataclass(frozen=True)
class Tool(Declaration):
    """A page of the profiler."""

    def run(
        self, session: Session, hosts: Sequence[str] | None, params: Mapping[str, object], waits: bool = True
    ) -> Payload:
        """Validate hosts and parameters, then make the payload, of the hosts that can be read; it names the
        others.

        Without `waits` the verdict may lack what limits the job, where that takes a while to find out:
        `Payload.is_diagnosed`. Raises BadParameter, HostNotFound, ToolUnavailable; TraceFormatError or
        StorageError as HostsUnreadable where none can be read.
        """
        asked, validated = validate_hosts(self, session, hosts), validate_params(self.params, params)
        if waits:
            await_limits(self.name, session, asked.hosts)
        payload = view_readable(self, session, asked, validated)
        return (
            payload
            if is_diagnosed(self.name, session, payload.hosts)
            else replace(payload, is_diagnosed=False)
        )

    def file(
        self, session: Session, hosts: Sequence[str] | None, params: Mapping[str, object], form: str
    ) -> tuple[str, Iterable[bytes]]:
        """One of `files` with its whole name. Raises as `run` does, and StopIteration for a format that it
        has not.
        """
        kind = next(kind for kind in self.files if kind.format == form)
        name, parts = kind.make(
            session, validate_hosts(self, session, hosts).hosts, validate_params(self.params, params)
        )
        return f"{re.sub(r'[^A-Za-z0-9_.()-]+', '_', name)[:150]}.{kind.ending}", parts

    def availability(self, session: Session) -> Availability:
        """`available`, asked of the hosts that can be read. Raises HostsUnreadable where none can."""
        return available_readable(self, session)
