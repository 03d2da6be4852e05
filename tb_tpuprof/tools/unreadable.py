"""A tool's view and hosts, some of which cannot be read → the payload of the others; it names the
unreadable ones, and why.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from tb_tpuprof.analysis.steps.diagnostics import Notice
from tb_tpuprof.errors import HostsUnreadable, ProfilerError, ToolUnavailable
from tb_tpuprof.tools.arguments import ChosenHosts, lacks_trace
from tb_tpuprof.tools.base import Availability, Declaration, Params
from tb_tpuprof.tools.payload import Diagnostic, Payload

if TYPE_CHECKING:
    from tb_tpuprof.session import Session

T = TypeVar("T")
View = Callable[["Session", tuple[str, ...], Params], Payload]
_NAMED = 8  # more hosts than these are counted
_RECENT_SECONDS = 120
_NUMBERED = re.compile(r"(.*\D|)(\d{1,6})(\D*)")


def view_readable(
    tool: Declaration, view: View, session: Session, chosen: ChosenHosts, params: Params
) -> Payload:
    """The tool's payload of the hosts that can be read. Raises HostsUnreadable if none can, and whatever
    else the view raises.
    """
    payload, failures = of_readable(session, chosen, lambda hosts: view(session, hosts, params))
    notices, unread = ([], {}) if not session.info.has_trace else _notices(session, payload.hosts)
    failures |= unread
    n_asked = len(chosen.hosts if tool.hosts == "many" else session.hosts)
    named = [*_unreadable(session, failures, n_asked), *_gone(chosen)]
    if chosen.is_default and tool.hosts == "many":
        named += _missing(session.hosts)
    elif chosen.is_default and session.info.has_hosts:
        named += _other_failures(
            session, [host for host in session.hosts if host not in payload.hosts and host not in failures]
        )
    reported = {diagnostic.message for diagnostic in payload.diagnostics}
    if not session.info.has_hosts:
        return replace(payload, diagnostics=(Diagnostic("info", session.info.message), *payload.diagnostics))
    damaged = [
        Diagnostic(n.severity, n.message, n.remedy)
        for n in notices
        if n.severity != "info" and n.message not in reported
    ]
    hosts = tuple(host for host in payload.hosts if host not in unread)
    return replace(payload, hosts=hosts, diagnostics=(*named, *payload.diagnostics, *damaged))


def _notices(session: Session, hosts: Sequence[str]) -> tuple[list[Notice], dict[str, ProfilerError]]:
    """Notices about the hosts, and errors of hosts that cannot be read: views of files next to the traces
    do not read them.
    """
    notices: list[Notice] = []
    failures: dict[str, ProfilerError] = {}
    for host in hosts:
        try:
            notices += session.notices(host)
        except ProfilerError as error:
            failures[host] = error
    return notices, failures


def of_readable(
    session: Session, chosen: ChosenHosts, make: Callable[[tuple[str, ...]], T]
) -> tuple[T, dict[str, ProfilerError]]:
    """The result of `make` for the hosts that can be read, and why the others cannot. Raises as
    `view_readable` does.
    """
    failures: dict[str, ProfilerError] = {}
    remaining = chosen.hosts
    while True:
        try:
            return make(remaining), failures
        except ToolUnavailable as error:
            raise _explained(error, failures) from None
        except ProfilerError as error:
            new_failures = _failures(error, remaining)
            if not new_failures:
                raise
            failures |= new_failures
        remaining = tuple(host for host in remaining if host not in failures)
        if not remaining and chosen.is_default:  # a tool that shows one host falls back to the next one
            remaining = tuple(host for host in session.hosts if host not in failures)[:1]
        if not remaining:
            raise HostsUnreadable(failures)


def available_readable(tool: Declaration, session: Session) -> Availability:
    """The tool's availability for the hosts that can be read. Raises HostsUnreadable if none can."""
    lacking = lacks_trace(tool, session)
    if not lacking:
        return lacking
    failures: dict[str, ProfilerError] = {}
    while True:
        try:
            return tool.available(session)
        except ProfilerError as error:
            new_failures = _failures(error, session.hosts)
            if not new_failures:
                raise
            failures |= new_failures
        session = session.subset(host for host in session.hosts if host not in new_failures)
        if not session.hosts:
            raise HostsUnreadable(failures)


def _failures(error: ProfilerError, hosts: Sequence[str]) -> dict[str, ProfilerError]:
    """The errors by host, of these hosts, if the error means that a host cannot be read; else empty."""
    failures = error.failures if isinstance(error, HostsUnreadable) else {error.host: error}
    return {host: failure for host, failure in failures.items() if host in hosts}


def _explained(error: ToolUnavailable, failures: Mapping[str, ProfilerError]) -> ToolUnavailable:
    """Adds that the unreadable hosts may have something to show."""
    if not failures:
        return error
    why = " ".join(failure.message for failure in list(failures.values())[:_NAMED])
    return ToolUnavailable(
        error.tool, f"{error.reason} {_hosts(failures)} cannot be read: {why}", error.remedy
    )


def _unreadable(session: Session, failures: Mapping[str, ProfilerError], n_asked: int) -> list[Diagnostic]:
    """How many of the hosts could not be read, which, and why; the first few with their reasons."""
    if not failures:
        return []
    order = {host: i for i, host in enumerate(session.hosts)}
    failures = dict(sorted(failures.items(), key=lambda item: order.get(item[0], len(order))))
    first_host, first = next(iter(failures.items()))
    reasons = " ".join(failure.message for failure in list(failures.values())[:_NAMED])
    rest = list(failures)[_NAMED:]
    more = f" Also left out: {_hosts(rest)}." if rest else ""
    count = f"{len(failures):,} of {n_asked:,} hosts could not be read"
    named = "" if rest or _names_hosts(failures) else f" ({_hosts(failures)})"
    return [Diagnostic("error", f"{count}{named}: {reasons}{more}", _remedy(session, first_host, first))]


def _names_hosts(failures: Mapping[str, ProfilerError]) -> bool:
    """Whether each reason names its host, as the names of most files do."""
    return all(host in failure.message for host, failure in failures.items())


def _other_failures(session: Session, hosts: Sequence[str]) -> list[Diagnostic]:
    """The run's other hosts that are known to be unreadable, for a page that shows one host; no file is
    read to find out.
    """
    failures = session.known_failures(hosts)
    texts = [
        f"{host} cannot be chosen because its file cannot be read: {error.message}"
        for host, error in list(failures.items())[:_NAMED]
    ]
    diagnostics = [
        Diagnostic("warning", text, _remedy(session, host, failures[host]))
        for host, text in zip(failures, texts, strict=False)
    ]
    if len(failures) > _NAMED:
        diagnostics.append(
            Diagnostic("warning", f"{len(failures) - _NAMED} more hosts of the run cannot be read.")
        )
    return diagnostics


def _remedy(session: Session, host: str, error: ProfilerError) -> str:
    """The remedy; a file that changed just now may still be incomplete."""
    age_seconds = time.time() - session.file(host).mtime_ns / 1e9
    if 0 <= age_seconds < _RECENT_SECONDS:
        return (
            "The file changed just now: if it is still being written, reload once writing has "
            f"finished. {error.remedy}"
        )
    return error.remedy


def _gone(chosen: ChosenHosts) -> list[Diagnostic]:
    if not chosen.gone:
        return []
    verb = "is" if len(chosen.gone) == 1 else "are"
    return [
        Diagnostic(
            "error",
            f"{_hosts(chosen.gone)} {verb} not in this run (any more).",
            "Choose hosts from the list.",
        )
    ]


def _missing(hosts: Sequence[str]) -> list[Diagnostic]:
    missing = missing_hosts(hosts)
    if not missing:
        return []
    verb = "has" if len(missing) == 1 else "have"
    remedy = (
        "Copy their files into the run's folder, or capture again, if these hosts belong to the job. "
        "Otherwise ignore this."
    )
    return [
        Diagnostic(
            "warning",
            f"{_hosts(missing)} {verb} no file in this run, although hosts with neighboring numbers do.",
            remedy,
        )
    ]


def missing_hosts(hosts: Sequence[str]) -> list[str]:
    """Hosts missing from a numbering that starts at 0 or 1: worker-2 if there are worker-0, worker-1 and
    worker-3. Only if all hosts are named alike and more are present than missing, so that ports and parts
    of IP addresses are not taken for numbers of hosts.
    """
    matches = [_NUMBERED.fullmatch(host) for host in hosts]
    parts = [match.groups() for match in matches if match]
    if (
        len(parts) < 3
        or len(parts) != len(hosts)
        or len({(before, after) for before, _, after in parts}) != 1
    ):
        return []
    before, _, after = parts[0]
    texts = {int(number): number for _, number, _ in parts}
    width = (
        len(texts[min(texts)])
        if any(text.startswith("0") and len(text) > 1 for text in texts.values())
        else 0
    )
    n_missing = max(texts) - min(texts) + 1 - len(texts)
    if min(texts) > 1 or before.endswith(".") or n_missing >= len(texts):
        return []
    return [
        f"{before}{number:0{width}d}{after}"
        for number in range(min(texts), max(texts))
        if number not in texts
    ]


def _hosts(hosts: Iterable[str]) -> str:
    names = list(hosts)
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
