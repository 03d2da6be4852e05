"""Modules that the first answer needs, imported with the plugin instead of while a user waits."""

import numpy.ma  # noqa: F401 (np.unique imports it at its first call: 10 ms)

from tb_tpuprof.analysis.steps import gpu_host, host, pytorch_pieces, tpu  # noqa: F401
from tb_tpuprof.ingest.chrome import decoder  # noqa: F401
from tb_tpuprof.ingest.hlo import module  # noqa: F401
