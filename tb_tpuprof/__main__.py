"""`python -m tb_tpuprof`, and the commands `tpuprof` and `capture_tpu_profile`. Ctrl-C shows no traceback,
not even during imports or while the interpreter ends.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from _thread import get_ident, start_new_thread
from collections.abc import Callable
from types import FrameType

IMPORT_RETRY_S = 0.02
_postponed: list[int] = []  # the signal that waits for the end of an import, at most one


def main() -> int:
    """Run `tpuprof`; returns its exit code."""

    def run() -> int:
        from tb_tpuprof.cli import main

        return main()

    return _ended("tpuprof", run)


def capture_tpu_profile() -> int:
    """Run `capture_tpu_profile`; returns its exit code."""

    def run() -> int:
        from tb_tpuprof.cli.capture_tpu_profile import main

        return main()

    return _ended("capture_tpu_profile", run)


def _ended(name: str, run: Callable[[], int]) -> int:
    # No command uses NumPy's BLAS, whose threads would spin for a fifth of a short command's processor time.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, _interrupt)
        return run()
    except KeyboardInterrupt:
        pass
    finally:
        if signal.getsignal(signal.SIGINT) is _interrupt:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # from here on, only the interpreter has to end
    sys.stderr.write(f"\n{name}: cancelled.\n")
    return 130


def _interrupt(signal_number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, during an import once that has ended: the import system ignores exceptions in
    its callbacks, and up to Python 3.11 one in `__set_name__` becomes a RuntimeError.
    """
    if not _is_importing(frame):
        _postponed.clear()
        raise KeyboardInterrupt
    if not _postponed:
        _postponed.append(signal_number)
        start_new_thread(_repeat, (get_ident(),))  # not a Thread: the import may hold its locks


def _repeat(thread_id: int) -> None:
    """Send a thread the postponed signal again, unless another one arrived meanwhile."""
    time.sleep(IMPORT_RETRY_S)
    arrived = list(_postponed)
    _postponed.clear()
    for signal_number in arrived:
        if hasattr(signal, "pthread_kill"):
            signal.pthread_kill(thread_id, signal_number)  # also ends a system call of the thread
        else:
            signal.raise_signal(signal_number)  # Windows


def _is_importing(frame: FrameType | None) -> bool:
    """Whether a caller of this frame, up to the command itself, is Python's import system."""
    while frame is not None and frame.f_code is not _ended.__code__:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


if __name__ == "__main__":
    sys.exit(main())
