"""What a process that analyzes hosts imports: every worker pays for it before its first host."""

from __future__ import annotations

import subprocess
import sys

_ANALYSES = (
    "tb_tpuprof.ingest.evaluation",
    "tb_tpuprof.parallel.process_pool",
    "tb_tpuprof.analysis.diagnosis.evidence",
    "tb_tpuprof.analysis.overview.summary",
    "tb_tpuprof.analysis.comm.host",
)
_UNUSED = ("google.protobuf", "numpy.random", "tensorboard", "grpc", "orjson")


def test_a_worker_imports_nothing_that_the_overview_does_not_use() -> None:
    code = f"import sys, {', '.join(_ANALYSES)}; print([name for name in {_UNUSED} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
