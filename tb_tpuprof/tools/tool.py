"""A tool that answers requests: its declaration, with validated hosts and parameters, without unreadable
hosts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from tb_tpuprof.errors import BadParameter
from tb_tpuprof.parallel.executors import one_request
from tb_tpuprof.session import Session
from tb_tpuprof.tools.arguments import validate_hosts, validate_params
from tb_tpuprof.tools.base import Availability, Declaration, File, Params, Question
from tb_tpuprof.tools.payload import Payload
from tb_tpuprof.tools.plain_decoder import plain_decoder_diagnostics
from tb_tpuprof.tools.tiles import shown_tiles, tiles
from tb_tpuprof.tools.unreadable import available_readable, of_readable, view_readable
from tb_tpuprof.tools.verdicts import await_limits, is_diagnosed


@dataclass(frozen=True)
class Tool(Declaration):
    """A page of the profiler."""

    def question(self, name: str) -> Question:
        """The question of that name; empty: the page. Raises BadParameter."""
        for question in (self.page, *self.questions):
            if question.name == name:
                return question
        allowed = (
            ", ".join(question.name for question in self.questions) or "empty: this tool has only its page"
        )
        raise BadParameter("question", name, allowed)

    def run(
        self,
        session: Session,
        hosts: Sequence[str] | None,
        params: Mapping[str, object],
        question: str = "",
        waits: bool = True,
    ) -> Payload:
        """Validate hosts and parameters, then return the payload of the hosts that can be read; it names
        the others.

        Without `waits` the verdict may lack the diagnosis if that takes a while; see
        `Payload.is_diagnosed`. Raises BadParameter, HostNotFound, ToolUnavailable; TraceFormatError or
        StorageError as HostsUnreadable if no host can be read.
        """
        asked_question = self.question(question)
        chosen, validated = (
            validate_hosts(self, session, hosts),
            validate_params(asked_question.params, params),
        )
        with one_request(len(chosen.hosts)):
            if waits and not question:
                await_limits(self.name, session, chosen.hosts)
            payload = view_readable(self, asked_question.view, session, chosen, validated)
        asked_question.check(payload)
        declared = tiles(*payload.scalars) if self.tiles is None else self.tiles
        return replace(
            payload,
            tiles=() if question else shown_tiles(declared, payload.scalars),
            diagnostics=(*plain_decoder_diagnostics(), *payload.diagnostics),
            is_diagnosed=payload.is_diagnosed
            and (bool(question) or is_diagnosed(self.name, session, payload.hosts)),
        )

    def file(
        self, session: Session, hosts: Sequence[str] | None, params: Mapping[str, object], form: str
    ) -> tuple[str, Iterable[bytes]]:
        """One of `files` with its full name. Raises as `run` does, and BadParameter for an unknown format."""
        for kind in self.files:
            if kind.format == form:
                values, chosen = validate_params(kind.params, params), validate_hosts(self, session, hosts)
                (name, parts), _ = of_readable(session, chosen, partial(_made, kind, session, values))
                return f"{re.sub(r'[^A-Za-z0-9_.()-]+', '_', name)[:150]}.{kind.ending}", parts
        raise BadParameter(
            "format", form, ", ".join(kind.format for kind in self.files) or "none: this tool has no files"
        )

    def availability(self, session: Session) -> Availability:
        """`available` for the hosts that can be read. Raises HostsUnreadable if none can be read."""
        return available_readable(self, session)


def _made(
    kind: File, session: Session, params: Params, hosts: tuple[str, ...]
) -> tuple[str, Iterable[bytes]]:
    return kind.make(session, hosts, params)
