"""Progress of each target of a capture → on a terminal a redrawn bar per target, else a line for each new
state.

    localhost:6009   profiling   ━━━━━━━━━━━━━━──────────  1.2 s left
    10.0.0.2:8466    receiving   12.4 MiB
    10.0.0.3:8466    retrying    refused the connection (attempt 2 of 3)
"""

from __future__ import annotations

import os
import shutil
import threading
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

from tb_tpuprof.encode.text import printable
from tb_tpuprof.units import format_bytes

if TYPE_CHECKING:  # it imports gRPC, which other commands should not wait for
    from tb_tpuprof.capture.job import TargetProgress

_REDRAW_S = 0.1
_BAR = 24
_STATE_WIDTH = len("connecting")
_MAX_NAME = 40


class Progress:
    """Context manager that shows progress on `stream`; `show` may be called from any thread. Draws the final
    state at the end.
    """

    def __init__(self, stream: TextIO, targets: list[str]) -> None:
        self._stream = stream
        self._latest: list[TargetProgress | None] = [None] * len(targets)
        self._names = targets
        self._lock = threading.Lock()
        self._is_terminal = stream.isatty() and os.environ.get("TERM") != "dumb"
        self._n_drawn = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._redraw, name="tpuprof progress", daemon=True)

    def __enter__(self) -> Progress:
        if self._is_terminal:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._is_terminal:
            self._thread.join()
            self._draw()

    def show(self, i: int, progress: TargetProgress) -> None:
        """Set the progress of target `i`."""
        with self._lock:
            before, self._latest[i] = self._latest[i], progress
            if not self._is_terminal and (
                before is None or (before.state, before.attempt) != (progress.state, progress.attempt)
            ):
                self._stream.write(printable(f"{self._names[i]}: {self._text_line(progress)}") + "\n")
                self._stream.flush()

    def _redraw(self) -> None:
        while not self._stop.wait(_REDRAW_S):
            self._draw()

    def _draw(self) -> None:
        """Draw all lines over the previous ones, cut to the terminal: as many as fit, unfinished targets
        first.
        """
        columns, rows = shutil.get_terminal_size()
        with self._lock:
            order = sorted(range(len(self._names)), key=lambda i: self._is_done(i))
            lines = [self._line(i)[: columns - 1] for i in sorted(order[: max(1, rows - 2)])]
            if len(order) > len(lines):
                n_done = sum(self._is_done(i) for i in order)
                lines.append(
                    f"… {len(order) - len(lines)} more targets; {n_done} of {len(order)} are done"[
                        : columns - 1
                    ]
                )
            up = f"\x1b[{self._n_drawn}A" if self._n_drawn else ""
            self._stream.write(up + "".join(f"\r\x1b[2K{line}\n" for line in lines) + "\x1b[J")
            self._stream.flush()
            self._n_drawn = len(lines)

    def _is_done(self, i: int) -> bool:
        latest = self._latest[i]
        return latest is not None and latest.state in ("saved", "failed", "cancelled")

    def _line(self, i: int) -> str:
        width = min(_MAX_NAME, max(map(len, self._names)))
        latest = self._latest[i]
        state = latest.state if latest else "waiting"
        left = latest.remaining_ms if latest else None
        if latest and left is not None and latest.profiling_ms:
            n_filled = round(_BAR * (1 - min(left, latest.profiling_ms) / latest.profiling_ms))
            details = f"{'━' * n_filled}{'─' * (_BAR - n_filled)}  {left / 1000:.1f} s left"
        else:
            details = self._details(latest) if latest else ""
        return printable(f"{self._names[i][:width]:<{width}}   {state:<{_STATE_WIDTH}}  {details}").rstrip()

    def _text_line(self, progress: TargetProgress) -> str:
        details = self._details(progress)
        if progress.state == "profiling":
            details = f"for {progress.profiling_ms / 1000:g} s"
        separator = ": " if progress.message else " "
        return f"{progress.state}{separator}{details}".rstrip()

    def _details(self, progress: TargetProgress) -> str:
        """Details shown next to the state."""
        parts = []
        if progress.state in ("receiving", "saved") and progress.received_bytes:
            parts.append(format_bytes(progress.received_bytes))
        if progress.message:
            parts.append(progress.message.removeprefix(f"{progress.target} ").removesuffix("."))
        if progress.n_attempts > 1 and (progress.attempt > 1 or progress.state == "retrying"):
            parts.append(f"(attempt {progress.attempt} of {progress.n_attempts})")
        return " ".join(parts)
