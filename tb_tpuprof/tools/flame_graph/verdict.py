"""What the page says first: the user's function with the most self time, or how to record functions."""

from __future__ import annotations

from collections.abc import Sequence

from tb_tpuprof.analysis.diagnosis.wording import python_option_of
from tb_tpuprof.analysis.events.frameworks import software, sum_software
from tb_tpuprof.analysis.flame.frames import Family, label_of
from tb_tpuprof.analysis.flame.nodes import Function
from tb_tpuprof.tools.flame_graph.flame import Flame
from tb_tpuprof.tools.payload import NextStep, Verdict
from tb_tpuprof.units import format_fraction, format_time

_MOST = 0.5
_MATTERS = 0.01  # of the steps' time
_TF_DATA = ("Iterator::",)  # stages wait for one another: no operations of their own
_LONG = 60


def verdict_of(flame: Flame, functions: Sequence[Function]) -> Verdict | None:
    """The verdict about the shown threads and steps; None if nothing ran in them."""
    if not any(max(one.own_ps[0], one.with_calls_ps[0]) for one in functions):
        return None
    users = sorted(
        (one for one in functions if one.with_calls_ps[0] > _MATTERS * flame.durations_ps[0]),
        key=lambda one: -one.with_calls_ps[0],
    )
    return _of_users(flame, users) if users else _of_operations(flame, functions)


def _of_users(flame: Flame, users: Sequence[Function]) -> Verdict:
    """The function with the most self time on the threads that steps run on, else on any shown thread."""
    own = [one for one in users if _time_in(flame, one) > _MATTERS * flame.durations_ps[0]]
    first = max(own, key=lambda one: _time_in(flame, one)) if own else users[0]
    time_ps, waiting_ps = first.with_calls_ps[0], first.waiting_ps[0]
    waits = waiting_ps > _MOST * time_ps
    text = (
        f"Most self time in your code: {label_of(first.name).title} takes {_amount(flame, time_ps)}"
        + (f", {format_time(waiting_ps / flame.n_windows[0])} of it waiting" if waits else "")
        + "."
    )
    details = []
    if first.caller and first.caller != first.name:
        details.append(f"It is called by {label_of(first.caller).title}.")
    working = next((one for one in users if one.waiting_ps[0] <= _MOST * one.with_calls_ps[0]), None)
    other = working if waits and working else None if users[0] is first else users[0]
    if other and other.with_calls_ps[0] > _MATTERS * flame.durations_ps[0]:
        where = _thread_of(flame, other)
        details.append(
            f"{'Of the functions that do not wait, ' if waits else 'On other threads, '}"
            f"{label_of(other.name).title} takes the most: {_amount(flame, other.with_calls_ps[0])}"
            + (f", on thread {where}." if where else ".")
        )
    return Verdict(
        "unknown",
        text,
        "wait" if waits else "python",
        tuple(details),
        (NextStep("Show who calls it and what it calls", "flame_graph", {"function": first.name}),),
    )


def _time_in(flame: Flame, one: Function) -> int:
    """Its self time on the threads that steps run on."""
    return sum(time for group, time in one.by_group.items() if group in flame.own_groups)


def _thread_of(flame: Flame, one: Function) -> str:
    """The thread on which a function takes the most time; empty for the steps' own."""
    group = max(one.by_group, key=lambda place: one.by_group[place], default=-1)
    return flame.groups[group].title if group >= 0 and group not in flame.own_groups else ""


def _of_operations(flame: Flame, functions: Sequence[Function]) -> Verdict:
    """Without functions: the largest operation, and how to record functions."""
    operations = (Family.OPERATION, Family.WAITING)
    largest = min(
        functions,
        key=lambda one: (
            one.family not in operations or one.own_ps[0] < _MATTERS * flame.durations_ps[0],
            one.name.startswith(_TF_DATA),
            -one.own_ps[0],
        ),
    )
    has_frames = any(one.is_users and label_of(one.name).file for one in functions)
    framework = sum_software([software(host.trace) for host in flame.hosts]).framework
    kind = "operation" if largest.family in operations else "call"
    waits = ", which only waits" if largest.family == Family.WAITING else ""
    where = _device_of(flame, largest)
    text = (
        f"The largest {kind}{where} is `{short(largest.name)}`{waits}: {_amount(flame, largest.own_ps[0])}. "
    ) + (
        "No function of your code takes 1% or more."
        if has_frames
        else "The trace has no Python calls on these threads, so none of your functions can be named."
    )
    option = python_option_of(framework)
    return Verdict(
        "unknown",
        text,
        "compute",
        () if has_frames else (f"To see the functions of your code, record Python calls: `{option}`.",),
        (NextStep("Show it on its own", "flame_graph", {"function": largest.name}),),
    )


def _device_of(flame: Flame, largest: Function) -> str:
    """Names the device that ran an operation, if only one of several is shown."""
    devices = {i: group.section for i, group in enumerate(flame.groups) if group.is_device}
    shown = {devices[i] for i in flame.shown if i in devices}
    is_one_of_several = len(shown) == 1 and len(set(devices.values())) > 1
    return f" on {min(shown)}" if largest.is_device and is_one_of_several else ""


def short(name: str) -> str:
    """A name without the parameters of its templates, if it is long."""
    cut = name if len(name) <= _LONG else f"{name.partition('<')[0]}<…>" if "<" in name else name
    return cut if len(cut) <= _LONG else f"{cut[: _LONG // 2]}…{cut[-_LONG // 2 :]}"


def _amount(flame: Flame, time_ps: int) -> str:
    """`3.40 ms (27.6%) per step`, or of the trace if it has no steps."""
    mean, share = time_ps / flame.n_windows[0], time_ps / max(flame.durations_ps[0], 1)
    return f"{format_time(mean)} ({format_fraction(share)})" + (" per step" if flame.has_steps else "")
