"""The inner loops: arrays in, arrays out. Compiled where the extension was built, else their plain twins, slow but equal.

`IS_COMPILED` says which. Everything else imports from here only; `ingest/opening.py` chooses the decoder by it.
"""

from __future__ import annotations

import os

try:
    if os.environ.get("TPUPROF_PLAIN"):
        raise ImportError("TPUPROF_PLAIN is set")
    from tb_tpuprof.native.intervals import flood, lanes, nest, rows_by_depth
    from tb_tpuprof.native.selection import classes_of, outermost, rows_of
    from tb_tpuprof.native.timeline import Rows

    IS_COMPILED = True
except ImportError:
    from tb_tpuprof.native.plain_intervals import flood, lanes, nest, rows_by_depth
    from tb_tpuprof.native.plain_selection import classes_of, outermost, rows_of
    from tb_tpuprof.native.plain_timeline import Rows

    IS_COMPILED = False

__all__ = ["IS_COMPILED", "Rows", "classes_of", "flood", "lanes", "nest", "outermost", "rows_by_depth", "rows_of"]
