"""`python -m tb_tpuprof`, and the commands `tpuprof` and `capture_tpu_profile`. Ctrl-C shows no traceback,
not even during imports or while the interpreter ends.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from threading import Timer, get_ident
from types import FrameType

IMPORT_RETRY_S = 0.02


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
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
    try:
        return run()
    except KeyboardInterrupt:
        sys.stderr.write(f"\n{name}: cancelled.\n")
        return 130
    finally:
        if signal.getsignal(signal.SIGINT) is _interrupt:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # from here on, only the interpreter has to end


def _interrupt(signal_number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, during an import once that has ended: the import system ignores exceptions in
    its callbacks, and up to Python 3.11 one in `__set_name__` becomes a RuntimeError.
    """
    if _is_importing(frame):
        retry = Timer(IMPORT_RETRY_S, _signal, [get_ident(), signal_number])
        retry.daemon = True
        retry.start()
    else:
        raise KeyboardInterrupt


def _signal(thread_id: int, signal_number: int) -> None:
    """A signal sent to the thread itself also ends its system call."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(thread_id, signal_number)
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
