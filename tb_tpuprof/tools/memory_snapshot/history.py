"""The history of a snapshot's devices → the page's tables, numbers and sentences on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.memory.heap import place_of_stack
from tb_tpuprof.analysis.memory.heap_history import contents, event_at, kept, levels, ooms
from tb_tpuprof.errors import BadParameter
from tb_tpuprof.tools.memory_snapshot.history_rows import (
    OLDER,
    Device,
    Failure,
    Places,
    Window,
    by_place,
    contents_tables,
    devices_table,
    failures_of,
    failures_table,
    kept_table,
    timeline_table,
)
from tb_tpuprof.tools.payload import Diagnostic, Table
from tb_tpuprof.tools.spec import Number
from tb_tpuprof.trace.heap_history import DeviceHistory, Recording
from tb_tpuprof.units import format_bytes, format_fraction, format_time

Int64s = npt.NDArray[np.int64]
_MOST_DEVICES_NAMED = 20
_MOST_GROWING_NAMED = 3
_EXPANDABLE = "`PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`"
_LESS = "a smaller batch, activation checkpointing (`torch.utils.checkpoint`), or lower precision"


@dataclass(frozen=True)
class History:
    """The history that the page shows: tables and numbers by name, what failed, what leaks, sentences and
    notices.
    """

    tables: dict[str, Table]
    numbers: dict[str, Number | float | None]
    failure: str
    leak: str
    details: tuple[str, ...]
    diagnostics: tuple[Diagnostic, ...]


def history_of(recording: Recording, params: Mapping[str, object]) -> History:
    """The page's part on the history. Raises BadParameter."""
    if not recording.devices:
        return History({}, {}, "", "", (), _diagnostics(recording, []))
    frames = place_of_stack(recording.stacks)
    devices = [_device(history, frames) for history in recording.devices]
    devices.sort(key=lambda device: -device.peak_bytes)
    chosen = _chosen(devices, params)
    window, places = _window(chosen, params), Places(recording, frames)
    tables: dict[str, Table] = {}
    failures = failures_of(chosen, places)
    if failures:
        tables["failures"] = failures_table(failures, len(ooms(chosen.history)), places)
    tables |= {
        "timeline": timeline_table(chosen, window, places),
        **contents_tables(chosen, window, places),
        "kept": kept_table(chosen, places),
        "devices": devices_table(devices),
    }
    return History(
        tables,
        _numbers(devices, chosen, window),
        _failure_sentence(chosen, failures[-1], places) if failures else "",
        _leak_sentence(chosen, places),
        (*_failed_elsewhere(devices, chosen), *_peak_sentence(chosen, places)),
        _diagnostics(recording, devices),
    )


def _device(history: DeviceHistory, frames: Int64s) -> Device:
    known = levels(history)
    return Device(history, known, kept(history, known, frames))


def _chosen(devices: list[Device], params: Mapping[str, object]) -> Device:
    """The requested device; else one that ran out of memory, else the one with the largest peak."""
    name = str(params.get("device", ""))
    if not name:
        return next((device for device in devices if len(ooms(device.history))), devices[0])
    for device in devices:
        if device.history.device == name:
            return device
    names = ", ".join(device.history.device for device in devices[:_MOST_DEVICES_NAMED])
    raise BadParameter("device", name, f"a device with a history: {names}")


def _window(device: Device, params: Mapping[str, object]) -> Window:
    last_ps = max(1, int(device.history.time_ps[-1]))
    start_ps, end_ps = _whole(params, "start_ps", 0), _whole(params, "end_ps", last_ps)
    if end_ps <= start_ps:
        raise BadParameter("end_ps", end_ps, f"more than start_ps, which is {start_ps}")
    event, moment = device.levels.peak, "at the peak"
    if "at_ps" in params:
        at_ps = _whole(params, "at_ps", 0)
        event, moment = event_at(device.history, at_ps), f"at {format_time(at_ps)}"
    return Window(start_ps, end_ps, _whole(params, "width_px", 800), event, moment)


def _whole(params: Mapping[str, object], name: str, absent: int) -> int:
    value = params.get(name, absent)
    return int(value) if isinstance(value, int | float) else absent


def _numbers(devices: list[Device], chosen: Device, window: Window) -> dict[str, Number | float | None]:
    history, known = chosen.history, chosen.levels
    of = f"of {history.device}, " if len(devices) > 1 else ""
    peak_ps = int(history.time_ps[known.peak])
    most_held = int(np.argmax(known.reserved_bytes))
    reserved, used = int(known.reserved_bytes[most_held]), int(known.used_bytes[most_held])
    unused = f"{format_fraction(1 - used / reserved)} of it not in use then" if used <= reserved > 0 else ""
    return {
        "peak_bytes": Number(chosen.peak_bytes, f"{of}{format_time(peak_ps)} into the history"),
        "peak_ps": peak_ps,
        "reserved_peak_bytes": Number(reserved, f"{of}{unused}".removesuffix(", ")),
        "kept_bytes": Number(int(chosen.kept.kept_bytes.sum()), of.removesuffix(", ")),
        "n_failures": Number(
            sum(len(ooms(device.history)) for device in devices),
            "on all devices" if len(devices) > 1 else "",
        ),
        "n_history_events": sum(len(device.history) for device in devices),
        "history_ps": int(history.time_ps[-1]),
        "start_ps": window.start_ps,
        "end_ps": window.end_ps,
        "at_ps": Number(int(history.time_ps[window.event]), window.moment),
        "device_row": next(i for i, device in enumerate(devices) if device is chosen),
    }


def _failure_sentence(device: Device, failure: Failure, places: Places) -> str:
    """What failed last, what was in use, and what would help."""
    who = f"`{places.text(failure.frame)}` requested" if failure.frame >= 0 else "an allocation needed"
    text = (
        f"{device.history.device} ran out of memory: {who} {format_bytes(failure.requested_bytes)} while "
        f"{format_bytes(failure.used_bytes)} was in use"
    )
    if failure.holder_bytes > 0:
        text += f" ({_origin(failure.holder_bytes / failure.used_bytes, failure.holder, places)})"
    text += f" and the device had {format_bytes(failure.device_free_bytes)} left"
    if failure.unused_bytes >= failure.requested_bytes > 0:
        return (
            f"{text}. {format_bytes(failure.unused_bytes)} more was held but not in use, in pieces that are "
            f"too small or of another pool: {_EXPANDABLE} reduces fragmentation."
        )
    return f"{text}. Use {_LESS}."


def _failed_elsewhere(devices: list[Device], chosen: Device) -> list[str]:
    names = [one.history.device for one in devices if one is not chosen and len(ooms(one.history))]
    if not names:
        return []
    return [f"{', '.join(names[:_MOST_DEVICES_NAMED])} also ran out of memory."]


def _peak_sentence(device: Device, places: Places) -> list[str]:
    """The peak in the history and the place that had allocated most of it."""
    known = device.levels
    if not device.peak_bytes:
        return []
    frame, size, *_ = by_place(contents(device.history, known, known.peak), places)
    when = format_time(int(device.history.time_ps[known.peak]))
    text = f"{device.history.device} peaked at {format_bytes(device.peak_bytes)}, {when} into the history"
    return [f"{text}: {_origin(int(size[0]) / device.peak_bytes, int(frame[0]), places)}."]


def _origin(share: float, frame: int, places: Places) -> str:
    """Where a share of the memory in use comes from."""
    if frame == OLDER:
        return f"{format_fraction(share)} of it was allocated before the history"
    if frame < 0:
        return f"{format_fraction(share)} of it has no recorded stack"
    return f"{format_fraction(share)} of it was allocated at `{places.text(frame)}`"


def _leak_sentence(device: Device, places: Places) -> str:
    """Places whose kept memory grows all the time; empty if there are none."""
    stays = device.kept
    rows = np.flatnonzero(stays.is_steady)
    if not len(rows):
        return ""
    named = "; ".join(
        f"`{places.text(int(stays.frame[row]))}` keeps {format_bytes(int(stays.kept_bytes[row]))} in "
        f"{int(stays.n_kept[row]):,} of the {int(stays.n_allocated[row]):,} blocks it allocated"
        for row in rows[:_MOST_GROWING_NAMED].tolist()
    )
    more = f", and {len(rows) - _MOST_GROWING_NAMED:,} more places" if len(rows) > _MOST_GROWING_NAMED else ""
    return f"Possible leak: memory that is not freed grows through the whole history. {named}{more}."


def _diagnostics(recording: Recording, devices: list[Device]) -> tuple[Diagnostic, ...]:
    notices = []
    if recording.n_skipped:
        n = recording.n_skipped
        text = (
            f"{n:,} {'entry' if n == 1 else 'entries'} of the history {'is' if n == 1 else 'are'} left out: "
        )
        remedy = "Entries need a known `action` and a `time_us`, which current versions of PyTorch write."
        notices.append(Diagnostic("warning", f"{text}of an unknown kind, or without a time.", remedy))
    unsure = [device.history.device for device in devices if not device.levels.is_anchored]
    if unsure:
        text = (
            f"{', '.join(unsure[:_MOST_DEVICES_NAMED])}: the history and the blocks that the snapshot lists "
            "disagree, so levels may be off by a constant, and what was in use before it is not known."
        )
        remedy = (
            "Record all actions (no `skip_actions`) until the snapshot is saved: "
            "`torch.cuda.memory._record_memory_history()`."
        )
        notices.append(Diagnostic("warning", text, remedy))
    return tuple(notices)
