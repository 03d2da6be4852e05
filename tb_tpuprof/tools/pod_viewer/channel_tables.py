"""The channels between cores: all of them, in a step or on average, and one of them step by step."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.device.attainable import share_of_peak
from tb_tpuprof.analysis.pod.join import Pod
from tb_tpuprof.analysis.pod.link_times import ChannelSteps, ChannelTimes, mean_times
from tb_tpuprof.analysis.pod.topology import Topology, links
from tb_tpuprof.tools.base import Param
from tb_tpuprof.tools.core_names import core_name
from tb_tpuprof.tools.payload import Table
from tb_tpuprof.tools.pod_viewer import declared
from tb_tpuprof.tools.pod_viewer.tables import per_step
from tb_tpuprof.tools.spec import TableSpec, Values, number, text

Floats = npt.NDArray[np.float64]
CHANNEL_PARAMS = (
    Param("channel", "Channel", "int", None, "Row of the channel in the table `channels`", is_required=True),
)
CHANNEL_STEPS = TableSpec(
    "channel_steps",
    "Channel by step",
    (
        text("step", "Step", "Name of the step"),
        number(
            "latency_ps",
            "Latency",
            "ps",
            "From when both ends are ready to the end of the receive",
            unknown=declared.NOT_RUN,
        ),
        number(
            "send_delay_ps",
            "Send delay",
            "ps",
            "Time that the receiver was ready before the sender",
            unknown=declared.NOT_RUN,
        ),
    ),
    "A row for each step of one channel",
    chart="steps",
)


def channels_table(
    pod: Pod, slice_of_pod: Topology | str, in_step: tuple[int, ChannelTimes] | None = None
) -> Table:
    """Links between cores, busiest first, with their means; `in_step`: with these times in this step instead.
    `source_row` and `target_row` are rows of `cores`.
    """
    rows = pod.channels
    of_step = mean_times(pod) if in_step is None else in_step[1]
    base = "" if in_step is None else f"in step {pod.step_names[in_step[0]]}"
    size = np.array([channel.size_bytes or np.nan for channel in rows], np.float64)
    rate = np.divide(
        size * 1e12, of_step.latency_ps, out=np.full(len(rows), np.nan), where=of_step.latency_ps > 0
    )
    more = f"{pod.n_unplaced:,} more lead to cores outside these hosts" if pod.n_unplaced else ""
    return declared.CHANNELS.fill(
        {
            "source": [core_name(pod, channel.source) for channel in rows],
            "target": [core_name(pod, channel.target) for channel in rows],
            **_links(pod, slice_of_pod, rate),
            "size_bytes": size,
            "send_delay_ps": of_step.send_delay_ps,
            "latency_ps": of_step.latency_ps,
            "bytes_per_s": rate,
            "n_per_step": of_step.n_per_step,
            "ops": [", ".join(channel.ops) for channel in rows],
            "channel_id": np.array([channel.channel_id or np.nan for channel in rows], np.float64),
            "send_op": [channel.halves[0] for channel in rows],
            "receive_op": [channel.halves[2] for channel in rows],
            "source_row": np.array([channel.source for channel in rows], np.float64),
            "target_row": np.array([channel.target for channel in rows], np.float64),
        },
        "; ".join(text for text in (base, more) if text),
        titles={"n_per_step": f"Times {per_step(pod)}"},
    )


def _links(pod: Pod, slice_of_pod: Topology | str, rate: Floats) -> Mapping[str, Values]:
    """The columns of the channels' links; none if the places are unknown. `rate`: bytes per second."""
    if isinstance(slice_of_pod, str):
        return {}
    source, target = (
        np.array([getattr(channel, end) for channel in pod.channels], np.int64)
        for end in ("source", "target")
    )
    ways = links(slice_of_pod, source, target)
    fraction = share_of_peak(rate, slice_of_pod.generation.link_bytes_per_s)
    return {
        "link": ways.names(),
        "hops": ways.hops,
        "link_fraction": np.where(ways.hops == 1, fraction, np.nan),
    }


def channel_steps_table(pod: Pod, by_step: ChannelSteps) -> Table:
    """One channel in each step."""
    return CHANNEL_STEPS.fill(
        {
            "step": pod.step_names,
            "latency_ps": by_step.latency_ps,
            "send_delay_ps": by_step.send_delay_ps,
        }
    )
