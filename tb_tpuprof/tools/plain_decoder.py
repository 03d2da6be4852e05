"""Whether the inner loops are compiled → the warning of every payload and the command line if they are not.

The plain decoder gives the same numbers. It exists so that profiles open on a machine without a compiler;
the warning says why that is slow.
"""

from __future__ import annotations

import os

from tb_tpuprof import native
from tb_tpuprof.tools.payload import Diagnostic

# Measured: docs/decisions/0001-cython-pure-python-mode.md.
_MESSAGE = (
    "The decoder is not compiled: plain Python reads this run. The numbers are the same, but reading "
    "takes 10 to 200 times as long and up to 26 times the memory; larger runs suffer most."
)
_REINSTALL = (
    "Reinstall from a wheel for your platform. From source: install a C compiler and Python's header files, "
    "then run pip install --force-reinstall --no-deps --no-cache-dir . in the source folder."
)
_UNSET = "Unset the environment variable TPUPROF_PLAIN, which chooses the plain decoder."


def plain_decoder_diagnostics() -> tuple[Diagnostic, ...]:
    """One warning if the plain decoder is in use, else nothing."""
    if native.IS_COMPILED:
        return ()
    return (Diagnostic("warning", _MESSAGE, _UNSET if os.environ.get("TPUPROF_PLAIN") else _REINSTALL),)
