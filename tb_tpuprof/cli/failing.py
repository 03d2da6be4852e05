"""Exceptions that end a command → its exit code, and a message on stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from tb_tpuprof.encode.text import printable
from tb_tpuprof.errors import ProfilerError

INTERRUPTED = 130


def exit_code_of(name: str, command: Callable[[], int]) -> int:
    """The command's own exit code, or that of the error it failed with. Errors in a file, a reply or an
    argument never show a traceback.
    """
    try:
        code = command()
        sys.stdout.flush()
        return code
    except ProfilerError as error:
        remedy = f"  {error.remedy}\n" if error.remedy else ""
        sys.stderr.write(printable(f"{name}: {error.message}\n{remedy}"))
        return error.exit_code
    except MemoryError:
        sys.stderr.write(f"{name}: out of memory.\n")
        return 3
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        sys.stderr.write(f"\n{name}: cancelled.\n")
        return INTERRUPTED
