"""What a list of runs says about one of them: devices, framework and damaged hosts, without reading large
files.

Known results come first; otherwise the first small files are read, and the outlines of larger ones. What
neither shows stays unknown: a list of 500 runs must not read them.
"""

from __future__ import annotations

from dataclasses import dataclass

from tb_tpuprof.analysis.device.hardware import Hardware, hardware
from tb_tpuprof.analysis.events.frameworks import UNKNOWN, Software, software, sum_software
from tb_tpuprof.analysis.steps.combine import sum_hardware
from tb_tpuprof.errors import ProfilerError
from tb_tpuprof.session import Session

_HOSTS_READ = 4
# Small files are decoded: it takes some 20 ms, and what is found stays in the result cache. Of larger XSpace
# files the outline is read, which skips the events; it names no framework that only the events name.
_SMALL_BYTES = 2 * 2**20
_LARGEST_OUTLINE_BYTES = 64 * 2**20


@dataclass(frozen=True)
class RunCard:
    """`device`: the product's name, `CPU`, or empty if unknown; `n_devices`: of all hosts, 0 if unknown.
    `framework`: empty if unknown. `damaged`: hosts whose files cannot be read, as far as that is known.
    """

    device: str = ""
    n_devices: int = 0
    framework: str = ""
    damaged: tuple[str, ...] = ()


def run_card(session: Session) -> RunCard:
    """The card of an open run."""
    parts: list[tuple[Hardware, Software]] = []
    is_whole = bool(session.hosts)
    n_read = 0
    for host in session.hosts:
        try:
            part = _known(session, host)
            if part is None and n_read < _HOSTS_READ:
                n_read += 1
                part = _read(session, host)
        except ProfilerError:
            continue  # one of the known failures
        if part is None:
            is_whole = False
        else:
            parts.append(part)
    damaged = tuple(session.known_failures(session.hosts))
    if not parts:
        return RunCard(damaged=damaged)
    devices = sum_hardware([part for part, _ in parts])
    framework = sum_software([part for _, part in parts]).framework
    return RunCard(
        devices.title if devices.n_devices else "CPU",
        devices.n_devices if is_whole else 0,
        "" if framework == UNKNOWN else framework,
        damaged,
    )


def _known(session: Session, host: str) -> tuple[Hardware, Software] | None:
    """What earlier requests found, from memory or the result cache."""
    devices, framework = session.known(hardware, (host,)), session.known(software, (host,))
    return (devices[0], framework[0]) if devices and framework else None


def _read(session: Session, host: str) -> tuple[Hardware, Software] | None:
    """What the file says; None: it is too large to be read for this."""
    file = session.file(host)
    if file.size_bytes <= _SMALL_BYTES:
        return session.get(hardware, host), session.get(software, host)
    if file.size_bytes > _LARGEST_OUTLINE_BYTES or not file.path.endswith(".xplane.pb"):
        return None
    outline = session.outline(host)
    return hardware(outline), software(outline)
