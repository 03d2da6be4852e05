"""How many bytes GPUs' copies move, as the tracer states it.

memcpy_details  kind_src:pinned kind_dst:device size:4096 dest:0 async:1     CUPTI's and ROCm's tracers
copied_bytes    4096                                                         `bytes` in PyTorch's files
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.stat_rows import first_ints
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
_SIZE = re.compile(r"(?:^|\s)(?:size|num_bytes):(\d{1,18})(?=\s|$)")
_MOST_BYTES = 2**50  # more is from a damaged file, and would overflow sums


def size_in(details: str) -> int:
    """The bytes in a text of `memcpy_details`, -1 if it has none."""
    match = _SIZE.search(details)
    return int(match[1]) if match else -1


@once
def copied_bytes(trace: Trace) -> Int64s:
    """Bytes that each event copied, by row of `events`; -1 for events that are no copies, and where the file
    does not state it. Events by which the host launched a copy may state its bytes, too.
    """
    result = np.full(trace.n_events, -1, np.int64)
    texts = trace.event_stats.texts("memcpy_details")
    distinct, code = np.unique(texts.value, return_inverse=True)
    sizes = np.array([size_in(trace.strings.get(int(i))) for i in distinct.tolist()], np.int64)
    result[texts.owner] = sizes[code.reshape(-1)]
    owner, value = first_ints(trace, "copied_bytes")
    result[owner] = value
    result[result > _MOST_BYTES] = -1
    return result
