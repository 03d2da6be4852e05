"""The communication of all hosts → what no single host shows: how much hiding it would save, and which hosts
the others wait for.

The Communication page and the pod viewer show the same numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.comm.join import Comm
from tb_tpuprof.analysis.pod.host import WHOLE
from tb_tpuprof.analysis.pod.stragglers import Straggler, host_stragglers, own_by_host

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class OwnTimes:
    """Times of hosts without waiting for one another. `own_ps`: float64[hosts, steps], the mean over the
    cores of a host in the steps that all have; `slow`: the hosts that delay the others.
    """

    hosts: tuple[str, ...]
    own_ps: Floats
    slow: tuple[Straggler, ...]


@dataclass(frozen=True)
class JobExchange:
    """The communication of a job. `gain_ps`: by how much each of `step_names` would be shorter, at most, with
    all of it hidden, mean over the devices. `own`: None where waiting cannot be separated from transferring.
    """

    step_names: tuple[str, ...]
    gain_ps: Floats
    own: OwnTimes | None

    @property
    def mean_gain_ps(self) -> float:
        """Per step."""
        return float(self.gain_ps.mean()) if len(self.gain_ps) else 0.0

    def of_step(self, number: int) -> JobExchange:
        """The same of one step, in which hosts are not compared."""
        row = slice(number, number + 1)
        return JobExchange(self.step_names[row], self.gain_ps[row], None)


def job_exchange(comm: Comm) -> JobExchange | None:
    """The communication of a job with steps; None without steps, or if nothing moves data in them."""
    if not comm.has_traffic or comm.step_names == (WHOLE,):
        return None
    return JobExchange(comm.step_names, comm.gain_ps.mean(axis=0), _own_times(comm))


def _own_times(comm: Comm) -> OwnTimes | None:
    pod = comm.pod
    separates = pod.kind != "CPU" and pod.is_synchronous and pod.is_wait_known
    if len(pod.hosts) < 2 or not separates or not pod.own_ps.size:
        return None
    return OwnTimes(pod.hosts, own_by_host(pod), host_stragglers(pod))
