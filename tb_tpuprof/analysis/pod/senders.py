"""Channels of a pod → the host that sends late.

A receiver that is ready waits for its sender. A host whose chips send late holds up its neighbors, whatever
the links can carry.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_tpuprof.analysis.pod.join import Pod

_OF_STEP = 0.01
_TIMES_OTHERS = 2.0


@dataclass(frozen=True)
class LateSender:
    """`host`: a row of the pod's hosts; `delay_ps`: by how much its chips send after their receivers are
    ready, mean over what they send; `others_ps`: the same of all other hosts; `channel`: the row of its
    channel with the longest delay.
    """

    host: int
    delay_ps: float
    others_ps: float
    channel: int


def late_sender(pod: Pod) -> LateSender | None:
    """The host with the longest mean send delay, if it is at least twice that of the others and the
    difference is 1% of the step or more; else None.
    """
    if not pod.channels or len(pod.hosts) < 2:
        return None
    delay = np.array([channel.send_delay_ps for channel in pod.channels])
    times = np.array([max(channel.n_per_step, 1e-9) for channel in pod.channels])
    delay, weight = np.nan_to_num(delay), np.where(np.isnan(delay), 0.0, times)
    host = pod.host_of[[channel.source for channel in pod.channels]]
    n_hosts = len(pod.hosts)
    total, n_sent = (np.bincount(host, values, n_hosts) for values in (delay * weight, weight))
    mean = np.divide(total, n_sent, out=np.zeros(n_hosts), where=n_sent > 0)
    late = int(mean.argmax())
    sent_by_others = float(n_sent.sum() - n_sent[late])
    if sent_by_others <= 0:
        return None
    others = float(total.sum() - total[late]) / sent_by_others
    excess = float(mean[late]) - others
    if mean[late] < _TIMES_OTHERS * others or excess < _OF_STEP * float(pod.total_ps.mean()):
        return None
    longest = int(np.where(host == late, delay, -1.0).argmax())
    return LateSender(late, float(mean[late]), others, longest)
