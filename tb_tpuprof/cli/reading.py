"""What a session reads → a line on the terminal that says how far it is, once that has lasted for half a
second.

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
from tb_tpuprof.parallel.progress import Standing
from tb_tpuprof.session import Session
from tb_tpuprof.units import format_bytes

FIRST_AFTER_S, REDRAW_S = 0.5, 0.2
_CLEAR = "\r\x1b[2K"


@contextmanager
def reading(session: Session, stream: TextIO) -> Iterator[None]:
    """Within the context, tell on `stream` what the session reads; nothing where that is no terminal. The
    line is gone at the end.
    """
    if not stream.isatty() or os.environ.get("TERM") == "dumb":
        yield
        return
    stop = threading.Event()
    thread = threading.Thread(target=_tell, args=(session, stream, stop), name="tpuprof reading", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _tell(session: Session, stream: TextIO, stop: threading.Event) -> None:
    wait, is_shown = FIRST_AFTER_S, False
    while not stop.wait(wait):
        wait = REDRAW_S
        standing = session.standing()
        if standing:
            stream.write(_CLEAR + printable(line(standing))[: shutil.get_terminal_size().columns - 1])
            stream.flush()
            is_shown = True
    if is_shown:
        stream.write(_CLEAR)
        stream.flush()


def line(standing: Standing) -> str:
    """The standing in words."""
    size = format_bytes(standing.size_bytes)
    if standing.n_hosts == 1:
        return f"Reading {standing.host}, {size}, {standing.seconds:.0f} s"
    read = (
        f"Reading {standing.n_done} of {standing.n_hosts} hosts, {format_bytes(standing.done_bytes)} of "
        f"{size}, {standing.seconds:.0f} s"
    )
    return f"{read}: {standing.host}" if standing.host else f"{read}: putting them together"
