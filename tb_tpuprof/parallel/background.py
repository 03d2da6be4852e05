"""Work that nobody waits for, such as cache writes. A command that ends lets it finish; one that is cancelled
abandons it, so that the interpreter, which waits for such threads, has nothing left to wait for.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread

# Returns whether to stop early.
IsAbandoned = Callable[[], bool]


class Background:
    """The threads of a process's background work. They run on while the interpreter exits."""

    def __init__(self) -> None:
        self._running: dict[Event, Event] = {}  # whether it is done → whether it is to stop

    def start(self, name: str, work: Callable[[IsAbandoned], object]) -> Thread:
        """Call `work` on a thread of that name; it asks its argument from time to time whether to stop.

        Raises RuntimeError if the system has no more threads.
        """
        done, abandoned = Event(), Event()

        def run() -> None:
            try:
                work(abandoned.is_set)
            finally:
                self._running.pop(done, None)
                done.set()

        thread = Thread(target=run, name=name)
        self._running[done] = abandoned
        try:
            thread.start()
        except BaseException:
            self._running.pop(done, None)
            raise
        return thread

    def finish(self) -> None:
        """Wait until all work is done."""
        for done in list(self._running):
            done.wait()  # Thread.join, once interrupted, takes the thread for ended (Python 3.10 to 3.12)

    def abandon(self) -> None:
        """Ask all work to stop, and wait until it has."""
        for abandoned in list(self._running.values()):
            abandoned.set()
        self.finish()


BACKGROUND = Background()
