"""A pod's numbers as sentences: which core or host holds up the others and what that costs, or how the time
is spent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tb_tpuprof.analysis.pod.host import WHOLE
from tb_tpuprof.analysis.pod.join import Pod
from tb_tpuprof.analysis.pod.parts import Part
from tb_tpuprof.analysis.pod.senders import late_sender
from tb_tpuprof.analysis.pod.stragglers import LEAST_EXCESS, MIN_STEPS, Straggler, others_median
from tb_tpuprof.tools.core_names import core_name, unit_of
from tb_tpuprof.tools.findings_tables import cause_color
from tb_tpuprof.tools.payload import NextStep, Subject, Verdict
from tb_tpuprof.tools.pod_viewer.tables import host_name, part_text, straggler_name
from tb_tpuprof.tools.verdicts import JobLimits, in_sentence
from tb_tpuprof.units import all_of, counted, format_fraction, format_time

_MUCH_WAITING = 0.1
_ALIKE = 0.01  # of the step: largest difference between cores that do the same work
_UNEVEN = 0.2
_NS_PER_DAY = 86_400 * 10**9
_NAMED = 5
_CAUSE_WORDS = {
    "compute": "compute",
    "input": "input and output",
    "network": "moving data",
    "idle": "idle time, waiting for its host",
}
_CAUSE_COLORS = {"compute": "compute", "input": "input", "network": "collective", "idle": "idle"}


def verdict(pod: Pod, stragglers: Sequence[Straggler], limits: JobLimits | None = None) -> Verdict:
    """The straggler, or how the time is spent; for hosts that compute themselves by the causes of `limits`,
    if known.
    """
    largest, waiting = _largest(pod, limits), (*_waiting(pod), *_late_sender_text(pod))
    of_time = (
        [f"Of {_time(pod)}, {largest.share} is {largest.word} (mean of {_cores(pod)})."] if largest else []
    )
    details = (*of_time, *waiting)
    if stragglers:
        more = [straggler_text(pod, straggler) for straggler in stragglers[1:4]]
        more += [f"{len(stragglers) - 4:,} more are in the table."] if len(stragglers) > 4 else []
        links = (NextStep("See what it does on the timeline", "trace_viewer", {"hosts": stragglers[0].host}),)
        is_bad = stragglers[0].gain_fraction >= LEAST_EXCESS
        color = _CAUSE_COLORS[stragglers[0].slow.cause]
        return Verdict(
            "bad" if is_bad else "warn",
            straggler_text(pod, stragglers[0]),
            color,
            (*details, *more),
            links,
            (_subject(pod, stragglers[0]),),
        )
    color, copies = (
        largest.color if largest else "",
        float(pod.part_ps[:, :, Part.COPY_WAIT].sum() / max(pod.total_ps.sum(), 1)),
    )
    if len(pod.cores) == 1:
        only = f"Only one {unit_of(pod)} was profiled, so there is nothing to compare."
        if pod.apart:
            only = (
                f"`{core_name(pod, 0)}` is shown alone, because no other host was captured at the same time."
            )
        time = _time(pod)
        text = f"Of {time}, {largest.share} is {largest.word}. {only}" if largest else only
        return Verdict("warn" if copies >= _MUCH_WAITING else "unknown", text, color, waiting)
    if are_alike(pod):
        text = f"{all_of(len(pod.cores))} {unit_of(pod)}s do the same work"
        text += f": of {_time(pod)}, {largest.share} is {largest.word} on each." if largest else "."
        return Verdict("warn" if copies >= _MUCH_WAITING else "good", text, color, waiting)
    if len(pod.step_names) < MIN_STEPS:
        return Verdict("unknown", _spread_text(pod), "", details)
    n_units = len(pod.hosts) if len(pod.hosts) > 1 else len(pod.cores)
    unit = "host" if len(pod.hosts) > 1 else unit_of(pod)
    text = (
        f"No straggler: none of {counted(n_units, unit)} is consistently slower than the others by "
        f"{LEAST_EXCESS * 100:g}% or more."
    )
    return Verdict("good", text, "", details)


def _late_sender_text(pod: Pod) -> tuple[str, ...]:
    """The host that sends late, with its slowest channel; none if no host does."""
    late = late_sender(pod)
    if late is None:
        return ()
    channel, host = pod.channels[late.channel], host_name(pod, pod.hosts[late.host])
    others = (
        f"against {format_time(late.others_ps)} elsewhere" if late.others_ps >= 1 else "unlike any other host"
    )
    return (
        f"`{host}` sends late: {format_time(late.delay_ps)} after its receivers are ready, {others}. Its "
        f"longest delay is {format_time(channel.send_delay_ps)}, from `{core_name(pod, channel.source)}` to "
        f"`{core_name(pod, channel.target)}`.",
    )


def _subject(pod: Pod, straggler: Straggler) -> Subject:
    return Subject(
        "stragglers",
        "straggler",
        straggler_name(pod, straggler),
        {"excess_ps": straggler.slow.excess_ps, "excess_fraction": straggler.slow.excess_fraction},
    )


def _waiting(pod: Pod) -> tuple[str, ...]:
    """Sentences about cores that wait for one another."""
    mean_ps, sentences = float(pod.total_ps.mean()) or 1.0, []
    waits = float(pod.part_ps[:, :, [Part.COLLECTIVE_WAIT, Part.RECV]].sum(axis=2).mean()) / mean_ps
    if waits >= _MUCH_WAITING:
        sentences.append(f"They wait for one another for {format_fraction(waits)} of their time.")
    if pod.collectives and not pod.is_wait_known:
        sentences.append(
            "Only one participant of each collective was captured: the time of collectives includes "
            "waiting for the others."
        )
    if len(pod.cores) > 1 and not pod.is_synchronous:
        units = "hosts" if len(pod.hosts) > 1 else f"{unit_of(pod)}s"
        text = (
            f"No collectives or transfers between these {units} were traced, so they count as independent: "
        )
        sentences.append(f"{text}the job is as slow as its slowest.")
    return tuple(sentences)


def straggler_text(pod: Pod, straggler: Straggler) -> str:
    """A sentence about one straggler, with the base of every share."""
    slow, name = straggler.slow, straggler_name(pod, straggler)
    since = "" if slow.since == 0 else f" since step {pod.step_names[slow.since]}"
    text = f"`{name}` takes {format_time(slow.excess_ps)} longer per step than the others{since} "
    text += (
        f"({format_time(slow.own_ps)}; their median is {format_time(slow.usual_ps)}), mostly in "
        f"{_cause_words(pod, slow.cause)}. "
    )
    if straggler.gain_fraction < 0.005:
        return text + "At the median speed it would save the job almost nothing: others take as long."
    saved = (
        f"save {format_time(straggler.gain_ps)} of {format_time(straggler.job_ps)} per step "
        f"({format_fraction(straggler.gain_fraction)})"
    )
    return f"{text}If it ran at the median speed, the job would {saved}."


def _cause_words(pod: Pod, cause: str) -> str:
    """What a straggler does longer; without any output, only input is meant."""
    if cause == "input" and Part.OUTPUT not in pod.parts:
        return "waiting for input"
    return _CAUSE_WORDS[cause]


def apart_text(pod: Pod, n_hosts: int) -> str:
    """Names the hosts that were captured at another time than the others."""
    named = [f"{host} ({_gap(gap)})" for host, gap in pod.apart[:_NAMED]]
    more = f" and {len(pod.apart) - _NAMED:,} more" if len(pod.apart) > _NAMED else ""
    were = "was" if len(pod.apart) == 1 else "were"
    return (
        f"{len(pod.apart):,} of {counted(n_hosts, 'host')} {were} captured at another time and left out: "
        f"{', '.join(named)}{more}. Captures that do not overlap in time are neither aligned nor averaged."
    )


def _gap(gap_ns: int) -> str:
    days = abs(gap_ns) / _NS_PER_DAY
    amount = f"{days:,.0f} days" if days >= 2 else format_time(abs(gap_ns) * 1000.0)
    return f"{amount} {'later' if gap_ns >= 0 else 'earlier'}"


def _cores(pod: Pod) -> str:
    return counted(len(pod.cores), unit_of(pod))


def _time(pod: Pod) -> str:
    time = format_time(float(pod.total_ps.mean()))
    if pod.step_names != (WHOLE,):
        return f"{time} per step"
    whose = "" if len(pod.cores) == 1 else f" of any {unit_of(pod)}"
    return f"the {time} from the first to the last operation{whose}"


@dataclass(frozen=True)
class _Largest:
    """The part that takes most of the time: its share and name for a sentence, and its color."""

    share: str
    word: str
    color: str


def _largest(pod: Pod, limits: JobLimits | None) -> _Largest | None:
    """The part that takes most of the time; None if something other than waiting limits the hosts, which
    the verdict says instead. Parts of hosts are kinds of time: callbacks and dispatch count as computing.
    """
    if limits and pod.kind == "CPU" and pod.step_names != (WHOLE,):
        if limits.are_elsewhere("pod_viewer"):
            return None
        cause = limits.diagnosis.causes[0]
        return _Largest(
            format_fraction(cause.share), in_sentence(cause.cause), cause_color(cause.cause, pod.kind)
        )
    mean = pod.part_ps.mean(axis=(0, 1))
    largest = Part(int(mean.argmax()))
    text = part_text(pod, largest)
    share = format_fraction(float(mean[largest]) / (float(pod.total_ps.mean()) or 1.0))
    word = text.title if largest == Part.PYTHON else text.title[0].lower() + text.title[1:]
    return _Largest(share, word, text.color)


def are_alike(pod: Pod) -> bool:
    """Whether no part differs between cores by more than a hundredth of the step; true for one core."""
    parts = pod.part_ps.mean(axis=1)
    return bool((parts.max(axis=0) - parts.min(axis=0)).max() <= _ALIKE * float(pod.total_ps.mean()))


def _spread_text(pod: Pod) -> str:
    """A sentence about unlike cores in too few steps to find stragglers: the slowest one, or how uneven the
    work is.
    """
    own_ps, steps = pod.own_ps.mean(axis=1).astype(np.float64), counted(len(pod.step_names), "step")
    period = "in the whole capture" if pod.step_names == (WHOLE,) else f"in {steps}"
    longest = int(own_ps.argmax())
    median_ps = float(others_median(own_ps[:, None])[longest, 0])
    if own_ps[longest] >= (1 + LEAST_EXCESS) * median_ps:
        text = (
            f"`{core_name(pod, longest)}` takes longest {period}: its own time is "
            f"{format_time(own_ps[longest])}, the others' median "
        )
        return text + f"{format_time(median_ps)}. Detecting a straggler takes at least {MIN_STEPS} steps."
    busy = (pod.total_ps - pod.part_ps[:, :, Part.IDLE]).mean(axis=1)
    most, least = int(busy.argmax()), int(busy.argmin())
    if busy[most] - busy[least] >= _UNEVEN * float(pod.total_ps.mean()):
        return (
            f"Work is uneven: of {_time(pod)}, `{core_name(pod, most)}` is busy for "
            f"{format_time(float(busy[most]))}, `{core_name(pod, least)}` "
            f"{f'for {format_time(float(busy[least]))}' if busy[least] else 'not at all'}."
        )
    return f"No {unit_of(pod)} takes {LEAST_EXCESS * 100:g}% longer than the others {period}."
