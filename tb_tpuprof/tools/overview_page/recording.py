"""How hosts were recorded → rows of the run environment: tracer levels and settings of devices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from tb_tpuprof.analysis.overview.recording import Recording
from tb_tpuprof.units import format_time

UNKNOWN = "unknown: not stated in the trace"
_HOST_LEVELS = ("off", "critical events only", "info", "verbose")
_ON_OR_OFF = ("off", "on")


def recording_pairs(recordings: Sequence[Recording | None]) -> list[tuple[str, str]]:
    """(name, value) of each row; None stands for a host whose trace does not state it."""
    if not any(recordings):
        return [("Tracing levels", UNKNOWN)]
    rows: list[tuple[str, Callable[[Recording], str]]] = [
        ("Host tracing", lambda one: _level(one.host_level, _HOST_LEVELS)),
        ("Device tracing", lambda one: _level(one.device_level, _ON_OR_OFF)),
        ("Python tracing", lambda one: _level(one.python_level, _ON_OR_OFF)),
        ("Requested duration", lambda one: format_time(one.duration_ms * 10**9) if one.duration_ms else ""),
        ("Host event filter", lambda one: "" if one.filter_mask is None else f"{one.filter_mask:#x}"),
        ("Device settings", lambda one: ", ".join(f"{key}={value}" for key, value in one.settings)),
    ]
    pairs = [(name, [UNKNOWN if one is None else text(one) for one in recordings]) for name, text in rows]
    return [(name, _joined(texts)) for name, texts in pairs if set(texts) - {UNKNOWN, ""}]


def _level(level: int, words: Sequence[str]) -> str:
    """`2 (info)`; the number alone if it has no name."""
    return f"{level} ({words[level]})" if level < len(words) else str(level)


def _joined(texts: Sequence[str]) -> str:
    """The text that all hosts have in common, else each with the number of its hosts, the most frequent
    first.
    """
    counts = Counter(text or "none" for text in texts)
    if len(counts) == 1:
        return texts[0]
    return "; ".join(f"{text} on {n} host{'s' if n != 1 else ''}" for text, n in counts.most_common())
