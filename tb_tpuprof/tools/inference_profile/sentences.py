"""The page's verdict on requests: what limits them, and the evidence."""

from __future__ import annotations

from typing import Literal

import numpy as np

from tb_tpuprof.analysis.inference.limits import FEWEST, Limits, Padding, limits, padding_of
from tb_tpuprof.analysis.inference.names import Phase
from tb_tpuprof.analysis.inference.record import HostInference
from tb_tpuprof.analysis.inference.work import Part
from tb_tpuprof.tools.payload import NextStep, Verdict
from tb_tpuprof.tools.requests import counted_requests, span_of, unit_word
from tb_tpuprof.units import format_fraction, format_time, three_digits

_COLORS = {"queue": "input", "host": "host", "transfer": "output", "device": "compute", "wait": "wait"}
_WORDS = {
    "host": "host work",
    "queue": "the queue",
    "transfer": "copies",
    "device": "the device's work",
    "wait": "waiting",
}
_STANDS_OUT = 0.1  # of the slots: padding from here on is worth a sentence
_IDLE = 0.9
_FULL = " It has little room left, so requests queue for it: make batches cheaper, or serve on more devices."
_UNASSIGNED = 0.05


def verdict_of(found: HostInference, more: tuple[str, ...] = ()) -> Verdict:
    """What limits these requests; they are at least one. `more`: further sentences of evidence."""
    found_limits = limits(found)
    details = [
        text
        for text in (
            _device_sentence(found, found_limits),
            _host_sentence(found, found_limits),
            _tail_sentence(found),
            _phase_sentence(found),
            _padding_sentence(padding_of(found.batches)),
        )
        if text
    ]
    return Verdict(
        _level(found_limits),
        _text(found, found_limits),
        _COLORS.get(found_limits.limit, ""),
        (*details, *more),
        _next(found, found_limits),
    )


def limit_sentence(found: HostInference) -> str:
    """What limits these requests, empty if there are too few or no single part does."""
    found_limits = limits(found)
    return "" if found_limits.limit in ("mixed", "unknown") else _text(found, found_limits)


def limit_level(found: HostInference) -> Literal["good", "warn", "unknown"]:
    """How the page of requests rates what limits them."""
    return _level(limits(found))


def _level(found_limits: Limits) -> Literal["good", "warn", "unknown"]:
    if found_limits.limit == "device":
        return "good"
    return "unknown" if found_limits.limit in ("mixed", "unknown") else "warn"


def _text(found: HostInference, found_limits: Limits) -> str:
    side, time_ps = found_limits.side_ps[0]
    share = format_fraction(time_ps / found_limits.tail_ps) if found_limits.tail_ps else "0%"
    of_all = f"{format_time(time_ps)} of their {format_time(found_limits.tail_ps)} ({share})"
    who = f"the slowest tenth of the {unit_word(found, 2)}"
    if found_limits.limit == "unknown":
        return _too_few(found)
    if found_limits.limit == "mixed":
        parts = ", ".join(
            f"{_WORDS[name]} {format_fraction(time / found_limits.tail_ps)}"
            for name, time in found_limits.side_ps
            if time >= 0.05 * found_limits.tail_ps
        )
        return (
            f"No single part limits the {unit_word(found, 2)}: of the {format_time(found_limits.tail_ps)} "
            f"that {who} take, {parts}."
        )
    if side == "queue":
        if len(found.batches):
            return f"Limited by batching: {who} wait {of_all} in the queue."
        return f"Limited by busy devices: {who} wait {of_all} while devices work for others."
    if side == "host":
        return f"Limited by the host: {who} spend {of_all} in host work."
    if side == "transfer":
        return f"Limited by copies: {who} spend {of_all} on copies between host and device."
    if side == "device":
        where = (
            "the processors, which run the model"
            if found.device_kind == "CPU"
            else f"the {found.device_kind}"
        )
        return f"Limited by {where}: {who} spend {of_all} in the model's operations."
    return f"Limited by waiting: nothing traced happens in {of_all} that {who} take."


def _too_few(found: HostInference) -> str:
    mean_ps = float(found.latency_ps.mean())
    took = (
        f"It took {format_time(mean_ps)}"
        if len(found) == 1
        else f"They took {format_time(mean_ps)} on average"
    )
    total = float(found.latency_ps.sum())
    named = [
        f"{format_fraction(time / total)} {word}"
        for time, word in sorted(
            ((float(found.part_ps[:, list(parts)].sum()), word) for word, parts in _LISTED.items()),
            reverse=True,
        )
        if total and time >= 0.01 * total
    ]
    return (
        f"Too few {unit_word(found, 2)} to say what limits them: the trace has {len(found):,}; at least "
        f"{FEWEST} are needed. {took}: {', '.join(named)}."
    )


_LISTED = {
    "host work": (Part.HOST_BEFORE, Part.HOST_RUNTIME, Part.HOST_AFTER),
    "queue": (Part.QUEUE,),
    "copies": (Part.TO_DEVICE, Part.TO_HOST),
    "device": (Part.DEVICE,),
    "waiting": (Part.WAIT,),
}


def _device_sentence(found: HostInference, found_limits: Limits) -> str:
    """How busy the device is, and whether more requests would fit: unknown of an engine's passes."""
    if not found.span_ps:
        return ""
    busy = found.busy_ps / found.span_ps
    who = "Operations of the model run" if found.device_kind == "CPU" else f"The {found.device_kind} works"
    is_told = len(found) >= FEWEST and found.unit == "request" and found.device_kind != "CPU"
    if not is_told:
        room = ""
    elif busy < _IDLE:
        room = " There is room for more requests."
    else:
        room = _FULL if found_limits.limit == "queue" else ""
    return (
        f"{who} in {format_fraction(busy)} of the {format_time(found.span_ps)} from the first {found.unit} "
        f"to the last{span_of(found)}.{room}"
    )


def _host_sentence(found: HostInference, found_limits: Limits) -> str:
    """Which host work takes the time, if host work limits the requests."""
    if found_limits.limit != "host":
        return ""
    mean = found.part_ps[found_limits.tail].mean(axis=0)
    named = {
        "before the first launch": float(mean[Part.HOST_BEFORE]),
        "between the first launch and the end of the device's work": float(mean[Part.HOST_RUNTIME]),
        "after the device's work": float(mean[Part.HOST_AFTER]),
    }
    where, most = max(named.items(), key=lambda item: item[1])
    total = sum(named.values())
    return f"{format_fraction(most / total)} of that host work is {where}." if total else ""


def _tail_sentence(found: HostInference) -> str:
    by_name = {one.name: one for one in found.percentiles}
    median, last = by_name["p50"], by_name["p99"]
    if last.row < 0 or median.latency_ps <= 0 or last.latency_ps < 2 * median.latency_ps:
        return ""
    times = three_digits(last.latency_ps / median.latency_ps)
    return (
        f"p99 is {times} times p50: {format_time(last.latency_ps)} versus {format_time(median.latency_ps)}."
    )


def _phase_sentence(found: HostInference) -> str:
    """The phase that takes most of the device's time, if there are passes of several phases."""
    device = found.part_ps[:, Part.DEVICE].astype(np.float64)
    times = {phase: float(device[found.phase == phase].sum()) for phase in Phase if phase is not Phase.NONE}
    total = sum(times.values())
    if not total or sum(time > 0 for time in times.values()) < 2:
        return ""
    phase, most = max(times.items(), key=lambda item: item[1])
    each = most / int((found.phase == phase).sum())
    return (
        f"{phase.label} passes take {format_fraction(most / total)} of the device's time, "
        f"{format_time(each)} each."
    )


def _padding_sentence(padding: Padding | None) -> str:
    if padding is None or padding.fraction < _STANDS_OUT:
        return ""
    text = (
        f"{format_fraction(padding.fraction)} of the batches' slots are padding ({padding.n_padding:,} of "
        f"{padding.n_slots:,}); {format_fraction(padding.worst_share)} of it comes from batches of "
        f"{padding.worst_size:,} padded to {padding.worst_padded:,}."
    )
    if padding.better_size > 0:
        text += (
            f" Allowing batches of {padding.better_size:,} as well would cut padding to "
            f"{format_fraction(padding.better_fraction)}."
        )
    return text


def _next(found: HostInference, found_limits: Limits) -> tuple[NextStep, ...]:
    row = int(found_limits.tail[0])
    start, end = int(found.start_ps[row]), int(found.start_ps[row] + found.latency_ps[row])
    params = {"hosts": found.hosts[int(found.host[row])], "start_ps": str(start), "end_ps": str(end)}
    steps = [
        NextStep(
            f"See the slowest {found.unit} ({format_time(end - start)}) on the timeline",
            "trace_viewer",
            params,
        )
    ]
    if found_limits.limit == "host":
        steps.append(NextStep("See which functions take the host's time", "flame_graph"))
    if found_limits.limit == "device":
        tool = "op_profile" if found.device_kind == "TPU" else "framework_op_stats"
        steps.append(NextStep("See which operations take the device's time", tool))
    return tuple(steps)


def notices(found: HostInference) -> list[tuple[str, str]]:
    """Sentences about the trace that matter for trusting the numbers, each with a remedy."""
    result = []
    if found.span_ps and found.unassigned_ps > _UNASSIGNED * max(found.busy_ps, 1):
        share = format_fraction(found.unassigned_ps / max(found.busy_ps, 1))
        result.append(
            (
                f"{share} of the device's work belongs to no {found.unit} that the trace shows; it counts as "
                f"waiting where a {found.unit} waits for it.",
                f"Annotate all {unit_word(found, 2)}, each with a step number "
                "(jax.profiler.StepTraceAnnotation), so that work on other threads can be assigned.",
            )
        )
    if not found.counts_others:
        result.append(
            (
                f"Too many {unit_word(found, 2)} overlap to see for which of them a device works: waiting "
                "for it counts as Wait instead of Queue.",
                "Capture for a shorter time.",
            )
        )
    if found.unit == "batch":
        result.append(
            (
                f"The trace has {counted_requests(found, len(found))} of a model server, but not the "
                "requests in them, so the time in queues is unknown.",
                "Capture with host_tracer_level 2 or higher.",
            )
        )
    return result
