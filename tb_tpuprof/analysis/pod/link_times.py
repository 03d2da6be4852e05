"""Hosts' transfers by step → when each began and ended on each core, for the two ends of channels.

`PodHost` keeps means over all steps; these are read once a step or a channel is chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.pod.comms import exchanges
from tb_tpuprof.analysis.pod.host import host_cores
from tb_tpuprof.analysis.pod.join import Channel, Pod
from tb_tpuprof.trace.trace import Trace

Floats = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True)
class LinkTimes:
    """`begin_ps`, `end_ps`: mean begin and end of an operation's runs in a step, since the start of the
    core's own step; NaN where it did not run. `n_runs`: how often it ran. All [n_cores, n_steps, n_ops].
    """

    ops: tuple[str, ...]
    begin_ps: Floats
    end_ps: Floats
    n_runs: Int64s


@dataclass(frozen=True)
class ChannelSteps:
    """A channel by common step of the pod, NaN where one of its ends did not run."""

    latency_ps: Floats
    send_delay_ps: Floats


@dataclass(frozen=True)
class ChannelTimes:
    """All channels of a pod, of one step or on average: times in ps, NaN where one of its ends did not run;
    `n_per_step`: how often it is used in a step.
    """

    latency_ps: Floats
    send_delay_ps: Floats
    n_per_step: Floats


def link_times(trace: Trace) -> LinkTimes:
    """The transfers of a host that have a source and a target, by core and step."""
    host_steps, _, _, cores = host_cores(trace)
    ops, op_of = exchanges(trace, [(core.rows, core.step) for core in cores])
    linking = [i for i, op in enumerate(ops) if len(op.pairs) or op.starts_as or op.kind in ("send", "recv")]
    n_steps, n_ops = len(host_steps), len(linking)
    column = np.full(len(ops) + 1, -1, np.int64)
    column[linking] = np.arange(n_ops)
    shape = len(cores), n_steps, n_ops
    begin, end, n = np.full(shape, np.nan), np.full(shape, np.nan), np.zeros(shape, np.int64)
    for i, core in enumerate(cores if n_ops else []):
        op = column[op_of[i]]
        is_link = op >= 0
        cell = core.step[is_link] * n_ops + op[is_link]
        start, length = core.begin_ps[is_link], core.duration_ps[is_link]
        n_runs = np.bincount(cell, minlength=n_steps * n_ops)
        n[i] = n_runs.reshape(n_steps, n_ops)
        for times, values in ((begin, start), (end, start + length)):
            total = np.bincount(cell, values, n_steps * n_ops)
            mean = np.divide(total, n_runs, out=np.full(n_steps * n_ops, np.nan), where=n_runs > 0)
            times[i] = mean.reshape(n_steps, n_ops)
    return LinkTimes(tuple(ops[i].name for i in linking), begin, end, n)


def mean_times(pod: Pod) -> ChannelTimes:
    """The channels' means over all steps."""
    rows = pod.channels
    return ChannelTimes(
        *(
            np.array([getattr(channel, name) for channel in rows], np.float64)
            for name in ChannelTimes.__dataclass_fields__
        )
    )


def times_in_step(pod: Pod, step: int, times: Sequence[LinkTimes]) -> ChannelTimes:
    """The channels in one common step of the pod, as `Channel` defines their times. `times`: of each of the
    pod's hosts.
    """
    source, target = (
        np.array([getattr(channel, end) for channel in pod.channels], np.int64)
        for end in ("source", "target")
    )
    send, ready, last = ([channel.halves[half] for channel in pod.channels] for half in range(3))
    sent, _, n_sent = _in_step(pod, step, times, (source, send))
    is_ready, _, _ = _in_step(pod, step, times, (target, ready))
    _, received, _ = _in_step(pod, step, times, (target, last))
    latency = np.maximum(received - np.maximum(sent, is_ready), 0)
    return ChannelTimes(latency, np.maximum(sent - is_ready, 0), n_sent)


def _in_step(
    pod: Pod, step: int, times: Sequence[LinkTimes], ends: tuple[Int64s, Sequence[str]]
) -> tuple[Floats, Floats, Floats]:
    """Begins, ends and numbers of runs of operations in a common step. `ends`: the core of each, and its
    name.
    """
    core, names = ends
    begin, end, n = np.full(len(core), np.nan), np.full(len(core), np.nan), np.zeros(len(core))
    code_of = {name: code for code, name in enumerate(dict.fromkeys(names))}
    code = np.array([code_of[name] for name in names], np.int64)
    host_of = pod.host_of[core]
    order = np.argsort(host_of, kind="stable")
    for host in np.unique(host_of).tolist():
        rows = order[slice(*np.searchsorted(host_of[order], (host, host + 1)).tolist())]
        of_host = times[host]
        index = {name: column for column, name in enumerate(of_host.ops)}
        column = np.array([index.get(name, -1) for name in code_of], np.int64)[code[rows]]
        rows, column = rows[column >= 0], column[column >= 0]
        place = core[rows] - int(np.searchsorted(pod.host_of, host)), pod.first_step[host] + step, column
        begin[rows], end[rows] = of_host.begin_ps[place], of_host.end_ps[place]
        n[rows] = of_host.n_runs[place]
    return begin, end, n


def channel_steps(pod: Pod, channel: Channel, ends: Sequence[LinkTimes]) -> ChannelSteps:
    """A channel's latency and send delay in each step, as `Channel` defines them. `ends`: the times of the
    source's and of the target's host.
    """
    send, ready, last = channel.halves
    sent = _of_core(pod, channel.source, ends[0], send)[0]
    is_ready = _of_core(pod, channel.target, ends[1], ready)[0]
    received = _of_core(pod, channel.target, ends[1], last)[1]
    latency = np.maximum(received - np.maximum(sent, is_ready), 0)
    return ChannelSteps(latency, np.maximum(sent - is_ready, 0))


def _of_core(pod: Pod, core: int, times: LinkTimes, op: str) -> tuple[Floats, Floats]:
    """Begins and ends of an operation on a core, by common step; unknown if it did not run there."""
    n_steps, host = len(pod.step_names), int(pod.host_of[core])
    if op not in times.ops:
        return np.full(n_steps, np.nan), np.full(n_steps, np.nan)
    row, column = core - int(np.searchsorted(pod.host_of, host)), times.ops.index(op)
    steps = slice(pod.first_step[host], pod.first_step[host] + n_steps)
    return times.begin_ps[row, steps, column], times.end_ps[row, steps, column]
