"""Hosts of a session → the clocks by which their times are laid onto one axis, and what the reader must know
of those that are off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tb_tpuprof.analysis.steps.clocks import apart_sentences, clock_marks, clock_offsets, clock_sentences
from tb_tpuprof.session import Session
from tb_tpuprof.tools.payload import Diagnostic

_NAMED = 8
_REMEDY = "Synchronize the hosts' clocks (NTP or PTP) to compare their times more closely."
_TOGETHER = (
    "To compare hosts, capture them at the same time. If they were, synchronize their clocks (NTP or PTP)."
)


@dataclass(frozen=True)
class Clocks:
    """What to add to each host's clock, 0 where it agrees or nothing tells; `diagnostics` says so of those
    that are off.

    The first `n_apart` of them are of hosts that were captured at another time.
    """

    correction_ns: tuple[int, ...]
    diagnostics: tuple[Diagnostic, ...] = ()
    n_apart: int = 0


def clocks_of(session: Session, hosts: Sequence[str]) -> Clocks:
    """The clocks of hosts, by collectives or steps that they share; a single host's agrees with itself.
    Raises HostsUnreadable.
    """
    if len(hosts) < 2:
        return Clocks((0,) * len(hosts))
    offsets = clock_offsets(session.map(clock_marks, hosts))
    told = clock_sentences(hosts, offsets)
    apart = [Diagnostic("warning", text, _TOGETHER) for text in apart_sentences(hosts, offsets)[:_NAMED]]
    named = [Diagnostic("warning", text, _REMEDY) for text in told[:_NAMED]]
    if len(told) > _NAMED:
        text = f"{len(told) - _NAMED} more hosts have clock offsets; their timestamps were corrected."
        named.append(Diagnostic("warning", text, _REMEDY))
    return Clocks(tuple(offset.correction_ns for offset in offsets), (*apart, *named), len(apart))
