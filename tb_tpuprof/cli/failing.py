"""Exceptions that end a command → its exit code, and a message on stderr."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tb_tpuprof.encode.text import printable
from tb_tpuprof.errors import ProfilerError
from tb_tpuprof.parallel.background import BACKGROUND

INTERRUPTED, OUTPUT_FAILED, INTERNAL = 130, 4, 1
DEBUG_VARIABLE = "TPUPROF_DEBUG"


def exit_code_of(name: str, command: Callable[[], int]) -> int:
    """The command's own exit code, or that of the error it failed with, once its background work is done. No
    error shows a traceback; the variable TPUPROF_DEBUG raises errors of this package itself.

    Ctrl-C abandons the background work too; pressed again meanwhile, it ends the process at once.
    """
    try:
        code = _outcome(name, command)
        BACKGROUND.finish()
        return code
    except KeyboardInterrupt:
        with _mortal():
            sys.stderr.write(f"\n{name}: cancelled.\n")
            BACKGROUND.abandon()
        return INTERRUPTED


@contextmanager
def _mortal() -> Iterator[None]:
    """Context manager: Ctrl-C ends the process at once and without words, unless it is ignored."""
    before = signal.getsignal(signal.SIGINT)
    if before in (signal.SIG_IGN, None):  # None: set by a library, not by Python
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _outcome(name: str, command: Callable[[], int]) -> int:
    """The exit code of the command or of its error, except KeyboardInterrupt."""
    try:
        code = command()
        sys.stdout.flush()
        return code
    except ProfilerError as error:
        remedy = f"  {error.remedy}\n" if error.remedy else ""
        details = f"  ({error.details})\n" if error.details else ""
        sys.stderr.write(printable(f"{name}: {error.message}\n{remedy}{details}"))
        return error.exit_code
    except MemoryError:
        sys.stderr.write(f"{name}: out of memory.\n")
        return 3
    except BrokenPipeError:
        _discard_output()
        return 0
    except OSError as error:
        _discard_output()
        sys.stderr.write(printable(f"{name}: cannot write the output: {error.strerror or error}.\n"))
        return OUTPUT_FAILED
    except Exception as error:
        if os.environ.get(DEBUG_VARIABLE):
            raise
        text = f"{name}: internal error: {type(error).__name__}: {error}\n"
        sys.stderr.write(
            printable(f"{text}  Please report it with the output of {DEBUG_VARIABLE}=1 {name} …\n")
        )
        return INTERNAL


def _discard_output() -> None:
    """Send what is left of the output nowhere: writing it again at exit would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
