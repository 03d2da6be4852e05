"""One host's part of the overview: its steps, operations, hardware and notices. Small, so that hosts can be
kept and combined.
"""

from __future__ import annotations

from dataclasses import dataclass

from tb_tpuprof.analysis.dcn.ops import transfers_between_slices
from tb_tpuprof.analysis.device.hardware import Hardware
from tb_tpuprof.analysis.device.peaks import problem
from tb_tpuprof.analysis.events.memo import compute_ahead
from tb_tpuprof.analysis.events.nesting import parents
from tb_tpuprof.analysis.inference.record import HostInference, host_inference
from tb_tpuprof.analysis.inference.requests import has_requests
from tb_tpuprof.analysis.input.tpu import waiting
from tb_tpuprof.analysis.ops.category_sentence import OpCategories, host_categories
from tb_tpuprof.analysis.ops.framework_calls import Call, framework_calls
from tb_tpuprof.analysis.ops.roof_excess import Excess, roof_excesses
from tb_tpuprof.analysis.ops.roofline import Roofs, roofs
from tb_tpuprof.analysis.ops.stats import OpStats, op_stats
from tb_tpuprof.analysis.ops.utilization import Utilization, utilization
from tb_tpuprof.analysis.overview.batch_size import UNKNOWN, BatchSize, batch_size
from tb_tpuprof.analysis.overview.facts import HostFacts, host_facts
from tb_tpuprof.analysis.overview.recording import Recording, recording
from tb_tpuprof.analysis.steps.diagnostics import Notice, trace_notices
from tb_tpuprof.analysis.steps.grouping import groups
from tb_tpuprof.analysis.steps.pytorch import LoaderWait, late_notice
from tb_tpuprof.analysis.steps.pytorch_loader import loader_wait
from tb_tpuprof.analysis.steps.record import Steps
from tb_tpuprof.settings import PEAKS_VARIABLE
from tb_tpuprof.trace.trace import Trace

_VERSIONS = ("jax_version", "jaxlib_version", "libtpu_version", "cuda_version", "cuda_driver_version")


@dataclass(frozen=True)
class Summary:
    """`versions`: of libraries and drivers, if the trace has them. `use`: of the accelerators. `calls`:
    framework calls that advice can cite. `excesses`: operations above one of the `roofs`. `loader`: how long
    PyTorch's loader takes. `recording`: how the trace was recorded, None if it does not say so. `batch`: the
    batch size, where shapes reveal it. `has_slices`: whether operations transfer data between slices.

    The steps of `facts` separate waiting for input from idling as the input pipeline's analysis does
    (`waiting`). `requests`: of an inference job, None without any.
    """

    facts: HostFacts
    ops: OpStats
    notices: tuple[Notice, ...]
    n_events: int
    has_loop_ops: bool
    versions: tuple[tuple[str, str], ...]
    use: Utilization
    categories: OpCategories
    excesses: tuple[Excess, ...]
    roofs: Roofs
    loader: LoaderWait | None
    calls: tuple[Call, ...] = ()
    requests: HostInference | None = None
    recording: Recording | None = None
    batch: BatchSize = UNKNOWN
    has_slices: bool = False

    @property
    def host(self) -> str:
        """The host's name."""
        return self.facts.host

    @property
    def steps(self) -> Steps:
        """The host's own steps."""
        return self.facts.steps

    @property
    def hardware(self) -> Hardware:
        """The host's devices."""
        return self.facts.hardware


def precompute(trace: Trace) -> None:
    """Compute the slowest analyses, operations and steps, in parallel before other code needs them one after
    the other.
    """
    compute_ahead(trace, waiting, op_stats, parents)


def summary(trace: Trace) -> Summary:
    """Everything that the overview needs of one host."""
    precompute(trace)
    return Summary(
        host_facts(trace),
        op_stats(trace),
        _notices(trace),
        trace.n_events,
        groups(trace).has_loop_ops,
        _versions(trace),
        utilization(trace),
        host_categories(trace),
        roof_excesses(trace),
        roofs(trace),
        loader_wait(trace),
        framework_calls(trace),
        host_inference(trace) if has_requests(trace) else None,
        recording(trace),
        batch_size(trace),
        transfers_between_slices(trace),
    )


def _notices(trace: Trace) -> tuple[Notice, ...]:
    """The trace's notices, and those about its numbers: inferred waiting, peaks that could not be read."""
    notices = [*trace_notices(trace), *late_notice(trace)]
    if waiting(trace).moved_ps.any():
        text = (
            f"{trace.info.host}: no infeed was traced, so the TPU's idle time counts as waiting for input "
            "while the host waits for data or copies it."
        )
        notices.append(Notice("info", text))
    if problem():
        notices.append(
            Notice(
                "warning",
                problem(),
                f"Correct the file named by the variable {PEAKS_VARIABLE}, then restart.",
            )
        )
    return tuple(notices)


def _versions(trace: Trace) -> tuple[tuple[str, str], ...]:
    versions = []
    for key in _VERSIONS:
        texts = trace.plane_stats.texts(key).value.tolist()
        numbers = trace.plane_stats.ints(key).value.tolist()
        if texts or numbers:
            versions.append(
                (key.removesuffix("_version"), trace.strings.get(texts[0]) if texts else str(numbers[0]))
            )
    return tuple(versions)
