"""The framework that the job is written in, from the names that each framework leaves in a trace. Advice and
wording depend on it.

PjitFunction(step), jit_step(7), jit(step)/dot_general      JAX
aten::mm, ProfilerStep#3, autograd::engine                  PyTorch
EagerExecute, ExecutorState::Process, __inference_step_12   TensorFlow
BatchingSessionRun                                          TensorFlow Serving
Iterator::Root::Map                                         tf.data, which JAX jobs use, too
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.native import joined
from tb_tpuprof.trace.trace import Trace

JAX, TENSORFLOW, PYTORCH, SERVING, REACTANT, UNKNOWN = (
    "JAX",
    "TensorFlow",
    "PyTorch",
    "TensorFlow Serving",
    "Reactant",
    "unknown",
)
TORCH_WORKERS = "_MultiProcessingDataLoaderIter"  # the iterator that a data loader's workers feed
_STATS = ("tf_op", "hlo_module", "hlo_op")
_PYTORCH_NAMES = (
    rb"aten::\w|ProfilerStep[#*]\d|autograd::engine|torch::|c10d::|torchvision::|"
    rb"DistributedDataParallel|Optimizer\.\w"
)
# Prefixes of names that only one framework writes, in order of precedence: JAX's and PyTorch's own names come
# before TensorFlow's, because both use its runtime and tf.data.
_MARKS = (
    (SERVING, rb"\n(?:BatchingSessionRun|ProcessBatch:|TFServing)"),
    (
        JAX,
        rb"\n(?:PjitFunction\(|jit\(|pjit\(|pmap\(|jit__?\w*(?:\(\d+\))?(?=\n|:)|np\.asarray\(jax\.Array\))",
    ),
    (PYTORCH, rb"\n(?:" + _PYTORCH_NAMES + rb"|SyncTensorsGraph|XLATensor|aten__\w)"),
    (REACTANT, rb"\nreactant_"),
    (PYTORCH, rb"\n(?:void )?(?:at::native::|triton_(?:poi|red|per|tem)_)"),  # kernels alone
    (
        TENSORFLOW,
        rb"\n(?:EagerExecute|EagerLocalExecute|EagerKernelExecute|ExecutorState::|ExecutorDoneCallback|FunctionRun|SessionRun|"
        rb"TfOpRun|__inference_|a_inference_|StatefulPartitionedCall|Iterator::Root|IteratorGetNextOp)",
    ),
)
_COMPILED = tuple((name, re.compile(pattern)) for name, pattern in _MARKS)
_TF_DATA = re.compile(rb"\nIterator::")
_PYTHON = re.compile(rb"\n\$\S+\.py:\d+ ")
_AMD = re.compile(rb"\n(?:hip[A-Z]\w+|__amd_rocclr|\w*rccl)")


@dataclass(frozen=True)
class Software:
    """`framework`: one of the names above. `uses_tf_data`: the trace has stages of tf.data. `has_python`: the
    trace has Python calls.

    `is_amd`: the host calls HIP, so its GPUs are AMD's, whatever the names of their planes.
    """

    framework: str = UNKNOWN
    uses_tf_data: bool = False
    has_python: bool = False
    is_amd: bool = False

    @property
    def names(self) -> frozenset[str]:
        """The frameworks and libraries that a sentence about the run may mention."""
        mentionable = {self.framework} - {UNKNOWN}
        if self.framework == SERVING:
            mentionable.add(TENSORFLOW)
        return frozenset(mentionable | ({"tf.data"} if self.uses_tf_data else set()))


@once
def software(trace: Trace) -> Software:
    """The framework of one host's job, from the names of its events, operations and programs, and from the
    stats of its planes.
    """
    text = _names(trace)
    framework = next((name for name, pattern in _COMPILED if pattern.search(text)), UNKNOWN)
    if framework == UNKNOWN and trace.plane_stats.has("jax_version"):
        framework = JAX
    return Software(
        framework, bool(_TF_DATA.search(text)), bool(_PYTHON.search(text)), bool(_AMD.search(text))
    )


def _names(trace: Trace) -> bytes:
    """All distinct names, one per line."""
    strings = trace.strings
    is_used = np.zeros(len(strings) + 1, np.bool_)  # the last one for -1, no string
    is_used[trace.metadata["name"]] = True
    for stats in (trace.event_stats, trace.metadata_stats):
        for key in _STATS:
            is_used[stats.texts(key).value] = True
    used = np.flatnonzero(is_used[:-1])
    if not len(used):
        return b""
    blob, bounds = joined(strings.blob, strings.offsets[used], strings.sizes[used])
    ends = np.asarray(bounds)[: len(used) + 1]
    return b"\n" + bytes(np.insert(np.frombuffer(blob.tobytes(), np.uint8), ends[1:-1], 10).tobytes()) + b"\n"


def sum_software(parts: Sequence[Software]) -> Software:
    """Combine the hosts of a job: the framework that most hosts name, and whatever any of them uses."""
    frameworks = [part.framework for part in parts if part.framework != UNKNOWN]
    most_common = max(dict.fromkeys(frameworks), key=frameworks.count, default=UNKNOWN)
    return Software(
        most_common,
        any(part.uses_tf_data for part in parts),
        any(part.has_python for part in parts),
        any(part.is_amd for part in parts),
    )
