"""Three unlike operations, for tests of sums and sentences."""

from __future__ import annotations

from typing import Any

import numpy as np

from tb_tpuprof.analysis.ops.metrics import OpMetrics

MS = 10**9


def ops_of(**more: Any) -> OpMetrics:
    """Three unlike operations of 10, 60 and 30 ms of their own."""
    columns: dict[str, Any] = {
        "name": ("a", "b", "c"),
        "type": ("A", "", "C"),
        "n_occurrences": np.array([1, 2, 5]),
        "time_ps": np.array([40, 60, 30]) * MS,
        "self_ps": np.array([10, 60, 30]) * MS,
        "is_eager": np.array([True, False, False]),
        "span_ps": 150 * MS,
        "program": (0, 0, 0),
        "provenance": ("", "", "s/c:C"),
        "flops": np.array([1.0, 2.0, 4.0]),
        "model_flops": np.array([1.0, 2.0, 3.0]),
        "n_bytes": np.array([5.0, 6.0, np.nan]),
    }
    return OpMetrics(**(columns | more))


OPS = ops_of()
