"""The measurements of each run and the project's targets for them, as data only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from bench.requests import Sample
from bench.traces import (
    DEVICES,
    EIGHT_HOSTS,
    FLEETS,
    JAX_CPU,
    MULTISLICE,
    OVERLAP,
    PROGRAM,
    REQUESTS,
    SNAPSHOT,
    STREAM,
    SYNTHETIC,
    SYNTHETIC_50M,
    TABLE,
    TF_DATA,
    TRACK_EVENTS,
)
from tb_tpuprof.parallel.policy import POLICY

READING = "reading"  # no tool: what the viewers of programs begin with
NODE = "add.100004"  # an instruction in the middle of the large program
MAX_ZOOM_S = 0.010
MAX_START_S = 2.0
MAX_FLEET_S = 15.0
MAX_FLEET_AGAIN_S = 1.0
LARGEST_FLEET = list(FLEETS)[-1]
CORES_SHARE = 0.8  # of the cores' number: starting processes, and what is done once, take their part
MAX_WARM_S = 0.5
MAX_SEARCH_S = 0.2
MAX_OP_PROFILE_S = 1.0
MAX_MEMORY_VIEWER_S = 2.0
MAX_MEGASCALE_S = 1.0
MAX_GRAPH_S = 0.3
MAX_INFERENCE_S = 2.0  # 100,000 requests
MAX_FLAME_S = 0.3
MAX_LARGE_FLAME_S = 5.0  # 4 million call paths
MAX_VIEW_BYTES = 500_000
MAX_LARGE_VIEW_BYTES = 300_000


@dataclass(frozen=True)
class Measure:
    """A question. `from_start` times it from outside, from the start of the process; `reopen` leaves caches
    on disk from before.

    `op`, `with_times`: for the graph viewer, the instruction in the middle and whether its times are
    requested. `peer`: whose child answers beside ours: `peer` is xprof, `tf` is TensorFlow 2.18.1,
    `one_core` is
    this project on one core, none if it is measured alone.
    """

    title: str
    tool: str
    mode: str = "first"
    reopen: bool = False
    from_start: bool = False
    peer: str = "peer"
    op: str = ""
    with_times: bool = True

    @property
    def reads_files(self) -> bool:
        """Whether its time is that of reading the run's files, first of all."""
        return self.mode == "first" and not self.reopen and not self.from_start


def _alone_of(measure: Measure) -> Measure:
    """The same question for this project only."""
    return replace(measure, title=f"{measure.title}, this project alone", peer="")


OVERVIEW_COLD = Measure("overview, cold", "overview_page")
OVERVIEW_WARM = Measure("overview, warm (asked again)", "overview_page", mode="again")
OVERVIEW_REOPEN = Measure("overview, reopened (cache on disk)", "overview_page", reopen=True)
OP_STATS_COLD = Measure("framework op stats, cold", "framework_op_stats")
INPUT_COLD = Measure("input pipeline, cold", "input_pipeline_analyzer")
TF_DATA_COLD = Measure(
    "tf.data bottleneck, cold (beside TensorFlow 2.18.1)", "tf_data_bottleneck_analysis", peer="tf"
)
KERNELS_COLD = Measure("kernel stats, cold", "kernel_stats")
OP_PROFILE_COLD = Measure("op profile, cold", "op_profile")
HLO_STATS_COLD = Measure("HLO stats, cold", "hlo_stats")
ROOFLINE_COLD = Measure("roofline model, cold", "roofline_model")
POD_COLD = Measure("pod viewer, cold", "pod_viewer")
MEGASCALE_COLD = Measure("megascale stats, cold", "megascale_stats")
COMM_COLD = Measure("communication, cold, this project alone", "communication", peer="")
COMM_AGAIN = Measure("communication, warm (asked again)", "communication", mode="again", peer="")
MEMORY_COLD = Measure("memory profile, cold", "memory_profile")
PROGRAM_MEMORY_COLD = Measure("memory viewer, cold, this project alone", "memory_viewer", peer="")
PROGRAM_GRAPH_COLD = Measure("graph viewer, cold, this project alone", "graph_viewer", peer="")
PROGRAM_MEMORY_BESIDE = Measure("memory viewer, cold", "memory_viewer")
PROGRAM_GRAPH_BESIDE = Measure(
    "graph viewer, cold: what the page draws first", "graph_viewer", op=NODE, with_times=False
)
PROGRAM_GRAPH_TIMES = Measure("graph viewer, cold, with times", "graph_viewer", peer="", op=NODE)
PROGRAM_GRAPH_AGAIN = Measure(
    "graph viewer, warm (asked again, with times)", "graph_viewer", mode="again", peer="", op=NODE
)
PROGRAM_READING = Measure("reading the file: programs and one module, nothing else", READING, peer="")
FLAME_COLD = Measure("flame graph, cold, this project alone", "flame_graph", peer="")
FLAME_AGAIN = Measure("flame graph, warm (asked again)", "flame_graph", mode="again", peer="")
INFERENCE_COLD = Measure("inference, cold", "inference_profile")
SNAPSHOT_COLD = Measure("memory snapshot, cold, this project alone", "memory_snapshot", peer="")
SNAPSHOT_AGAIN = Measure("memory snapshot, warm (asked again)", "memory_snapshot", mode="again", peer="")
VIEW_FIRST = Measure("trace view, first, 2,000 px", "trace_viewer")
VIEW_REOPEN = Measure("trace view, reopened (cache on disk)", "trace_viewer", reopen=True)
VIEW_ZOOM = Measure("trace view, 1% window", "trace_viewer", mode="zoom")
VIEW_AGAIN = Measure("trace view, warm (asked again)", "trace_viewer", mode="again")
VIEW_WINDOWS = Measure(
    "trace view, 200 random windows, 95th percentile", "trace_viewer", mode="windows", peer=""
)
VIEW_SEARCH = Measure("trace view, search, this project alone", "trace_viewer", mode="search", peer="")
VIEW_QUERY = Measure(
    "trace view, slowest of five queries, this project alone", "trace_viewer", mode="query", peer=""
)
VIEW_ALONE = Measure("trace view, first, this project alone", "trace_viewer", peer="")
VIEW_FROM_START = Measure("process start to first trace view", "trace_viewer", from_start=True)
FLEET_COLD, FLEET_REOPEN, FLEET_POD = (
    _alone_of(measure) for measure in (OVERVIEW_COLD, OVERVIEW_REOPEN, POD_COLD)
)
FLEET_CORES = Measure(
    "overview, cold, on all cores (beside: this project on one)", "overview_page", peer="one_core"
)
_PROGRAM_ALONE = (PROGRAM_GRAPH_TIMES, PROGRAM_GRAPH_AGAIN, PROGRAM_READING)

DEMO_MEASURES = (OVERVIEW_COLD, OP_STATS_COLD, VIEW_FIRST)
MEASURES = {
    JAX_CPU: (
        *(OVERVIEW_COLD, OVERVIEW_WARM, OVERVIEW_REOPEN, OP_STATS_COLD, INPUT_COLD),
        *(VIEW_FIRST, VIEW_REOPEN, VIEW_ZOOM, VIEW_FROM_START),
        *(PROGRAM_MEMORY_COLD, PROGRAM_GRAPH_COLD, FLAME_COLD, FLAME_AGAIN),
    ),
    SYNTHETIC: (
        *(OVERVIEW_COLD, OP_STATS_COLD, VIEW_FIRST, VIEW_ZOOM, VIEW_FROM_START),
        *(_alone_of(VIEW_AGAIN), _alone_of(VIEW_REOPEN), VIEW_WINDOWS, VIEW_SEARCH, VIEW_QUERY),
        *(FLAME_COLD, FLAME_AGAIN),
    ),
    SYNTHETIC_50M: (VIEW_ALONE, VIEW_WINDOWS),
    EIGHT_HOSTS: (OVERVIEW_COLD, POD_COLD, FLEET_CORES),
    **dict.fromkeys(FLEETS, (FLEET_COLD, FLEET_REOPEN, FLEET_POD, FLEET_CORES)),
    DEVICES: (KERNELS_COLD, MEMORY_COLD),
    MULTISLICE: (MEGASCALE_COLD,),
    OVERLAP: (OVERVIEW_COLD, POD_COLD, COMM_COLD, COMM_AGAIN),
    PROGRAM: (
        OP_PROFILE_COLD,
        HLO_STATS_COLD,
        ROOFLINE_COLD,
        PROGRAM_MEMORY_BESIDE,
        PROGRAM_GRAPH_BESIDE,
        *_PROGRAM_ALONE,
    ),
    TF_DATA: (OVERVIEW_COLD, INPUT_COLD, TF_DATA_COLD),
    REQUESTS: (OVERVIEW_COLD, INFERENCE_COLD),
    STREAM: (OVERVIEW_COLD, VIEW_FIRST),
    TRACK_EVENTS: (VIEW_ALONE,),
    SNAPSHOT: (SNAPSHOT_COLD, SNAPSHOT_AGAIN),
    TABLE: (VIEW_ALONE, _alone_of(OVERVIEW_COLD)),
}


@dataclass(frozen=True)
class Target:
    """A promise. `figure(ours, peer, size of the run's files)` must be at least, or at most, `limit`."""

    run: str
    measure: Measure
    text: str
    figure: Callable[[Sample, Sample, int], float]
    limit: float
    at_least: bool
    needs_peer: bool = True
    unit: str = "×"

    def is_met(self, value: float) -> bool:
        """Whether the figure keeps the promise."""
        return value >= self.limit if self.at_least else value <= self.limit


def speedup(ours: Sample, peer: Sample, _size_bytes: int) -> float:
    """Peer's time by ours."""
    return peer.seconds / ours.seconds


def memory_share(ours: Sample, peer: Sample, _size_bytes: int) -> float:
    """Our peak memory by the peer's."""
    return ours.peak_bytes / peer.peak_bytes


def memory_by_file(ours: Sample, _peer: Sample, size_bytes: int) -> float:
    """Our peak memory by the file's size."""
    return ours.peak_bytes / size_bytes


def server_seconds(ours: Sample, _peer: Sample, _size_bytes: int) -> float:
    """Our time, compression of the answer included."""
    return ours.seconds + ours.gzip_seconds


def own_seconds(ours: Sample, _peer: Sample, _size_bytes: int) -> float:
    """Our time; from the start of the process, compression is in it already."""
    return ours.seconds


def sent_bytes(ours: Sample, _peer: Sample, _size_bytes: int) -> float:
    """Size of our compressed answer."""
    return ours.gzip_bytes


def _at_least(run: str, measure: Measure, factor: float) -> Target:
    return Target(run, measure, f"≥ {factor:g} × faster than the peer", speedup, factor, at_least=True)


def _near_linear(run: str) -> Target:
    factor = CORES_SHARE * POLICY.n_processors()
    return Target(run, FLEET_CORES, f"≥ {factor:g} × faster than on one core", speedup, factor, at_least=True)


def _third_of_memory(measure: Measure) -> Target:
    return Target(JAX_CPU, measure, "peak memory ≤ 1/3 of the peer's", memory_share, 1 / 3, at_least=False)


def _alone(
    run: str,
    measure: Measure,
    text: str,
    figure: Callable[[Sample, Sample, int], float],
    limit: float,
    unit: str,
) -> Target:
    return Target(run, measure, text, figure, limit, at_least=False, needs_peer=False, unit=unit)


TARGETS = (
    _at_least(JAX_CPU, OVERVIEW_COLD, 10),
    _third_of_memory(OVERVIEW_COLD),
    _at_least(JAX_CPU, OP_STATS_COLD, 10),
    _at_least(JAX_CPU, INPUT_COLD, 10),
    _third_of_memory(OP_STATS_COLD),
    _at_least(JAX_CPU, VIEW_FIRST, 20),
    _alone(JAX_CPU, VIEW_FIRST, "≤ 500 kB sent", sent_bytes, MAX_VIEW_BYTES, "B"),
    _alone(SYNTHETIC, _alone_of(VIEW_AGAIN), "≤ 300 kB sent", sent_bytes, MAX_LARGE_VIEW_BYTES, "B"),
    _alone(JAX_CPU, VIEW_ZOOM, "≤ 10 ms in the server", server_seconds, MAX_ZOOM_S, "s"),
    _alone(JAX_CPU, FLAME_AGAIN, "≤ 0.3 s in the server", server_seconds, MAX_FLAME_S, "s"),
    _alone(SYNTHETIC, VIEW_FROM_START, "≤ 2 s", own_seconds, MAX_START_S, "s"),
    _alone(SYNTHETIC, VIEW_FROM_START, "peak memory ≤ 3 × the file", memory_by_file, 3, "×"),
    _alone(SYNTHETIC, _alone_of(VIEW_AGAIN), "≤ 0.5 s in the server", server_seconds, MAX_WARM_S, "s"),
    _alone(SYNTHETIC, VIEW_WINDOWS, "≤ 10 ms in the server", own_seconds, MAX_ZOOM_S, "s"),
    _alone(SYNTHETIC, VIEW_WINDOWS, "≤ 10 ms with its compression", server_seconds, MAX_ZOOM_S, "s"),
    _alone(SYNTHETIC, VIEW_WINDOWS, "≤ 300 kB sent, the largest", sent_bytes, MAX_LARGE_VIEW_BYTES, "B"),
    _alone(SYNTHETIC, VIEW_SEARCH, "≤ 0.2 s in the server", server_seconds, MAX_SEARCH_S, "s"),
    _alone(SYNTHETIC, VIEW_QUERY, "≤ 0.2 s in the server", server_seconds, MAX_SEARCH_S, "s"),
    _alone(SYNTHETIC, FLAME_COLD, "≤ 5 s in the server", server_seconds, MAX_LARGE_FLAME_S, "s"),
    _alone(SYNTHETIC_50M, VIEW_ALONE, "peak memory ≤ 3 × the file", memory_by_file, 3, "×"),
    _at_least(EIGHT_HOSTS, OVERVIEW_COLD, 10),
    _at_least(EIGHT_HOSTS, POD_COLD, 10),
    _near_linear(EIGHT_HOSTS),
    *(_near_linear(run) for run in list(FLEETS)[1:]),
    _alone(LARGEST_FLEET, FLEET_COLD, "≤ 15 s", own_seconds, MAX_FLEET_S, "s"),
    _alone(LARGEST_FLEET, FLEET_REOPEN, "≤ 1 s", own_seconds, MAX_FLEET_AGAIN_S, "s"),
    _at_least(DEVICES, KERNELS_COLD, 10),
    _at_least(DEVICES, MEMORY_COLD, 10),
    _alone(MULTISLICE, MEGASCALE_COLD, "≤ 1 s in the server", server_seconds, MAX_MEGASCALE_S, "s"),
    _at_least(PROGRAM, OP_PROFILE_COLD, 10),
    _at_least(PROGRAM, HLO_STATS_COLD, 10),
    _at_least(PROGRAM, ROOFLINE_COLD, 10),
    _at_least(PROGRAM, PROGRAM_MEMORY_BESIDE, 10),
    _at_least(PROGRAM, PROGRAM_GRAPH_BESIDE, 10),
    _alone(PROGRAM, OP_PROFILE_COLD, "≤ 1 s in the server", server_seconds, MAX_OP_PROFILE_S, "s"),
    _alone(PROGRAM, PROGRAM_MEMORY_BESIDE, "≤ 2 s in the server", server_seconds, MAX_MEMORY_VIEWER_S, "s"),
    _alone(PROGRAM, PROGRAM_GRAPH_BESIDE, "≤ 0.3 s in the server", server_seconds, MAX_GRAPH_S, "s"),
    _alone(PROGRAM, PROGRAM_GRAPH_AGAIN, "≤ 0.3 s in the server", server_seconds, MAX_GRAPH_S, "s"),
    _at_least(TF_DATA, TF_DATA_COLD, 10),
    _alone(REQUESTS, INFERENCE_COLD, "≤ 2 s in the server", server_seconds, MAX_INFERENCE_S, "s"),
)
