"""Hosts of a session → clock corrections that put their times on one axis, and warnings about clocks that
are off.
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
    """The correction of each host's clock, 0 if it agrees or cannot be compared; `diagnostics` names the
    clocks that are off. The first `n_apart` diagnostics are about hosts that were captured at another time.
    """

    correction_ns: tuple[int, ...]
    diagnostics: tuple[Diagnostic, ...] = ()
    n_apart: int = 0


def clocks_of(session: Session, hosts: Sequence[str]) -> Clocks:
    """The clock corrections of hosts, from collectives or steps that they share; a single host needs none.
    Raises HostsUnreadable.
    """
    if len(hosts) < 2:
        return Clocks((0,) * len(hosts))
    offsets = clock_offsets(session.map(clock_marks, hosts))
    sentences = clock_sentences(hosts, offsets)
    apart = [Diagnostic("warning", text, _TOGETHER) for text in apart_sentences(hosts, offsets)[:_NAMED]]
    named = [Diagnostic("warning", text, _REMEDY) for text in sentences[:_NAMED]]
    if len(sentences) > _NAMED:
        text = f"{len(sentences) - _NAMED} more hosts have clock offsets; their timestamps were corrected."
        named.append(Diagnostic("warning", text, _REMEDY))
    return Clocks(tuple(offset.correction_ns for offset in offsets), (*apart, *named), len(apart))
