"""Hosts and parameters from a URL or a command line → validated values, or an error that says what is
allowed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tb_tpuprof.errors import BadParameter, HostNotFound, ToolUnavailable
from tb_tpuprof.ingest.storage.run_info import HLO, LEGACY, MEMORY
from tb_tpuprof.tools.base import Availability, Declaration, Param, Params, ParamValue

if TYPE_CHECKING:
    from tb_tpuprof.session import Session

ALL_HOSTS = ("ALL_HOSTS", "all")
_TRACE = (
    "Capture a profile, or copy the .xplane.pb files into the run's folder. The memory viewer and the "
    "graph viewer do not need one."
)
_TRACE_OF_SNAPSHOTS = "Capture a profile. The page Memory snapshot shows what this run has."
_TRUE = ("1", "true", "yes")
_FALSE = ("0", "false", "no")


@dataclass(frozen=True)
class ChosenHosts:
    """The hosts to show; `gone`: requested hosts that the run does not have; `is_default`: the request
    named none.
    """

    hosts: tuple[str, ...]
    gone: tuple[str, ...] = ()
    is_default: bool = False


def validate_hosts(tool: Declaration, session: Session, hosts: Sequence[str] | None) -> ChosenHosts:
    """The hosts to show: the requested ones; without any, or for ALL_HOSTS, all (the first for a tool that
    shows one).

    Raises HostNotFound if the run has none of them, BadParameter for several if the tool shows one,
    ToolUnavailable for a run without hosts.
    """
    run_hosts = session.hosts
    if not run_hosts:
        raise ToolUnavailable(tool.name, "the run holds no trace that can be opened.", session.info.message)
    lacking = lacks_trace(tool, session)
    if not lacking:
        raise ToolUnavailable(tool.name, lacking.reason, lacking.remedy)
    if not hosts or any(host in ALL_HOSTS and host not in run_hosts for host in hosts):
        return ChosenHosts(run_hosts if tool.hosts == "many" else run_hosts[:1], is_default=True)
    requested = dict.fromkeys(hosts)
    chosen = tuple(host for host in run_hosts if host in requested)
    if not chosen:
        raise HostNotFound(hosts[0], list(run_hosts))
    if tool.hosts == "one" and len(chosen) > 1:
        raise BadParameter("hosts", ",".join(hosts), f"one host at a time for {tool.name}")
    return ChosenHosts(chosen, tuple(host for host in requested if host not in run_hosts))


def lacks_trace(tool: Declaration, session: Session) -> Availability:
    """Why a tool that needs a trace has nothing to show for a run of programs, pages or memory snapshots."""
    state = session.info.state
    if tool.only_for != MEMORY and state == MEMORY:
        return Availability(
            f"{tool.title} needs a trace, and this run has only memory snapshots.",
            _TRACE_OF_SNAPSHOTS,
            "no trace",
        )
    if tool.needs_trace and state == LEGACY:
        return Availability(
            f"{tool.title} needs a trace, and this run has only pages that an older profiler saved.",
            "The page Saved pages shows them. Profile the job again to get a trace.",
            "no trace",
        )
    if tool.needs_trace and state == HLO:
        return Availability(
            f"{tool.title} needs a trace, and this run has only the HLO of compiled programs "
            "(*.hlo_proto.pb).",
            _TRACE,
            "no trace",
        )
    return Availability()


def validate_params(declared: Sequence[Param], given: Mapping[str, object]) -> Params:
    """Values of the declared parameters. Raises BadParameter for an unknown name or a value that is not
    allowed.
    """
    by_name = {param.name: param for param in declared}
    for name, value in given.items():
        if name not in by_name:
            raise BadParameter(name, value, "one of " + ", ".join(by_name) if by_name else "no parameters")
    values: dict[str, ParamValue] = {}
    for param in declared:
        text = given.get(param.name)
        if text is not None and text != "":
            values[param.name] = _value(param, text)
        elif param.default is not None:
            values[param.name] = param.default
        elif param.is_required:
            raise BadParameter(param.name, "", f"given: {param.help}")
    return values


def _value(param: Param, text: object) -> ParamValue:
    if param.kind == "bool":
        return _boolean(param, str(text).lower())
    if param.kind in ("int", "float"):
        return _number(param, text)
    word = str(text)
    if param.kind == "choice" and word not in param.choices:
        raise BadParameter(param.name, text, "one of " + ", ".join(param.choices))
    return word


def _boolean(param: Param, word: str) -> bool:
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise BadParameter(param.name, word, "true or false")


def _number(param: Param, text: object) -> int | float:
    kind = "a whole number" if param.kind == "int" else "a number"
    refusal = BadParameter(param.name, text, f"{kind} from {int(param.minimum)} to {int(param.maximum)}")
    value = _parsed(str(text), is_whole=param.kind == "int")
    if value is None or not param.minimum <= value <= param.maximum:
        raise refusal
    return value


def _parsed(text: str, is_whole: bool) -> int | float | None:
    """The number that a text states, exactly if it is whole; None if it states none."""
    try:
        if is_whole and text.strip().lstrip("-+").isdecimal():
            return int(text)
        value = float(text)
    except ValueError:
        return None
    if not math.isfinite(value) or (is_whole and value != int(value)):
        return None
    return int(value) if is_whole else value
