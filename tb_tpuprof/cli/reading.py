"""Read progress of a session → a line on the terminal, shown if reading takes longer than half a second.

Reading 37 of 256 hosts, 185.0 MiB of 1.2 GiB, 3 s: worker-41
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from tb_tpuprof.encode.text import printable
from tb_tpuprof.parallel.progress import ReadingProgress
from tb_tpuprof.session import Session
from tb_tpuprof.units import format_bytes

FIRST_AFTER_S, REDRAW_S = 0.5, 0.2
_CLEAR = "\r\x1b[2K"


@contextmanager
def reading(session: Session, stream: TextIO) -> Iterator[None]:
    """Context manager: shows the session's read progress on `stream`, if that is a terminal. Clears the line
    at the end.
    """
    if not stream.isatty() or os.environ.get("TERM") == "dumb":
        yield
        return
    stop = threading.Event()
    thread = threading.Thread(
        target=_show_progress, args=(session, stream, stop), name="tpuprof reading", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _show_progress(session: Session, stream: TextIO, stop: threading.Event) -> None:
    wait, is_shown = FIRST_AFTER_S, False
    while not stop.wait(wait):
        wait = REDRAW_S
        progress = session.progress()
        if progress:
            stream.write(_CLEAR + printable(line(progress))[: shutil.get_terminal_size().columns - 1])
            stream.flush()
            is_shown = True
    if is_shown:
        stream.write(_CLEAR)
        stream.flush()


def line(progress: ReadingProgress) -> str:
    """The progress as text."""
    size = format_bytes(progress.size_bytes)
    if progress.n_hosts == 1:
        return f"Reading {progress.host}, {size}, {progress.seconds:.0f} s"
    text = (
        f"Reading {progress.n_done} of {progress.n_hosts} hosts, {format_bytes(progress.done_bytes)} of "
        f"{size}, {progress.seconds:.0f} s"
    )
    return f"{text}: {progress.host}" if progress.host else f"{text}: combining"
