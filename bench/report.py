"""Results -> a table with ratios and the project's targets, as Markdown."""

from __future__ import annotations

import datetime
import os
import platform
from importlib.metadata import version

from bench.cases import TARGETS, Target
from bench.clients import KINDS
from bench.environments import peer_python, versions
from bench.measurement import OURS, PEER, Result
from bench.requests import Sample
from bench.small_requests import MAX_P95_S, TITLES, Beside, Spread
from bench.traces import JAX_CPU

HEADER = (
    "run",
    "measure",
    "ours",
    "peer",
    "faster",
    "our peak",
    "peer's peak",
    "our share",
    "we send",
    "peer sends",
    "we read",
)


def report(results: list[Result], beside: Beside | None = None) -> str:
    """The whole of results.md; `beside`: small requests beside a large one, if they were measured."""
    parts = [
        _title(),
        "## Targets",
        _targets(results, beside),
        "## Measurements",
        _table(HEADER, [_row(result) for result in results]),
    ]
    if beside:
        parts += ["## Small requests beside a large one", _beside(beside)]
    failures = [
        f"- {result.run.name}, {result.measure.title}, {side}: {text}"
        for result in results
        for side, text in result.failures.items()
    ]
    if failures:
        parts += ["## Without an answer", "\n".join(failures)]
    return "\n\n".join(parts) + "\n"


def _title() -> str:
    peer = versions(peer_python(), ("xprof",))
    memory_gb = _memory_bytes() / 1e9
    lines = (
        f"Measured on {datetime.date.today().isoformat()} on a machine with {os.cpu_count()} cores "
        f"({platform.machine()}, {platform.system()}) and {memory_gb:.0f} GB of memory: tb-tpuprof "
        f"{_own_version()} with Python {platform.python_version()} and numpy {version('numpy')}, beside "
        f"xprof {peer['xprof']} with Python {peer['Python']}.",
        "`make bench` writes this file; README.md beside it says how to read it.",
    )
    return "# Results\n\n" + "\n".join(lines)


def _own_version() -> str:
    import tb_tpuprof

    return tb_tpuprof.__version__


def _memory_bytes() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 0


def _row(result: Result) -> tuple[str, ...]:
    ours, peer = result.typical(OURS), result.typical(PEER)
    both = ours is not None and peer is not None
    return (
        f"{result.run.name} ({_size(result.run.size_bytes)})",
        result.measure.title,
        _seconds(ours.seconds) if ours else "–",
        _seconds(peer.seconds) if peer else "–",
        f"{peer.seconds / ours.seconds:,.1f} ×" if both and ours and peer else "–",
        _size(ours.peak_bytes) if ours else "–",
        _size(peer.peak_bytes) if peer else "–",
        f"{ours.peak_bytes / peer.peak_bytes:.2f}" if both and ours and peer else "–",
        _sent(ours),
        _sent(peer),
        _rate(result),
    )


def _rate(result: Result) -> str:
    """Bytes, and events where their number is known, by the time to the answer: of runs without a peer."""
    ours, run = result.typical(OURS), result.run
    if ours is None or result.measure.peer or not result.measure.reads_files:
        return "–"
    events = f", {run.n_events / ours.seconds:,.0f} events/s" if run.n_events else ""
    return f"{_size(run.size_bytes / ours.seconds)}/s{events}"


def _sent(sample: Sample | None) -> str:
    return f"{_size(sample.gzip_bytes)} ({_size(sample.body_bytes)})" if sample else "–"


def _beside(measured: Beside) -> str:
    """The spread of each kind of request, alone and beside the openings."""
    header = ("50 clients", "requests", "p50", "p95", "longest", "beside", "p50", "p95", "longest")
    rows = [
        (title, *_spread(measured.alone.get(kind)), *_spread(measured.beside.get(kind)))
        for kind, title in TITLES.items()
    ]
    first, *others = (_seconds(seconds) for seconds in measured.openings_s)
    return "\n\n".join(
        (
            _table(header, rows),
            f"Opening the large run took {first} without the clients and {', '.join(others)} beside them; "
            f"load average when it began: {measured.load_average:.1f}.",
        )
    )


def _spread(spread: Spread | None) -> tuple[str, ...]:
    if spread is None:
        return ("0", "–", "–", "–")
    return (str(spread.n), *(_seconds(value) for value in (spread.p50, spread.p95, spread.longest)))


def _beside_target(kind: str, measured: Beside | None) -> tuple[str, ...]:
    title = f"{TITLES[kind]}, 50 clients, beside a cold run of 10 M events"
    head = (JAX_CPU, title, f"95th percentile ≤ {MAX_P95_S * 1e3:.0f} ms")
    spread = measured.beside.get(kind) if measured else None
    if spread is None:
        return (*head, "–", "not measured")
    return (*head, _seconds(spread.p95), "yes" if spread.p95 <= MAX_P95_S else "**no**")


def _targets(results: list[Result], beside: Beside | None) -> str:
    by_measure = {(result.run.name, result.measure): result for result in results}
    rows = [_target_row(target, by_measure.get((target.run, target.measure))) for target in TARGETS]
    rows += [_beside_target(kind, beside) for kind in KINDS]
    return _table(("run", "measure", "target", "figure", "met"), rows)


def _target_row(target: Target, result: Result | None) -> tuple[str, ...]:
    head = (target.run, target.measure.title, target.text)
    ours = result.typical(OURS) if result else None
    peer = result.typical(PEER) if result else None
    if result is None or ours is None or (target.needs_peer and peer is None):
        return (*head, "–", "not measured")
    value = target.figure(ours, peer or ours, result.run.size_bytes)
    return (*head, _figure(value, target.unit), "yes" if target.is_met(value) else "**no**")


def _figure(value: float, unit: str) -> str:
    if unit == "s":
        return _seconds(value)
    return _size(value) if unit == "B" else f"{value:,.2f} {unit}"


def _seconds(value: float) -> str:
    return f"{value:.2f} s" if value >= 1 else f"{value * 1e3:.1f} ms"


def _size(value: float) -> str:
    if value >= 1e9:
        return f"{value / 1e9:.2f} GB"
    return f"{value / 1e6:.1f} MB" if value >= 1e6 else f"{value / 1e3:.0f} kB"


def _table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A Markdown table that reads well as text too."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    lines = [header, tuple("-" * width for width in widths), *rows]
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |"
        for line in lines
    )
