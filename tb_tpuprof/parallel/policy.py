"""When to work in parallel: `POLICY` holds every threshold from which work is split over threads or
processes.

Waking a thread takes some 50 µs, starting a process 150 ms: smaller amounts of work finish sooner undivided.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass
class Policy:
    """Thresholds, and how many threads and processes to use.

    `min_parallel_…`: the least amount of work that is split over threads. `…_per_thread`: the least amount
    for each thread.
    """

    # One host's work, on threads
    max_threads: int = 8
    parts_per_thread: int = 2  # of parts of unknown cost, so that no thread waits long for another
    min_parallel_events: int = 100_000  # of a trace: analyses, nesting, layout
    min_parallel_drawn_events: int = 50_000  # in the timeline's window
    min_parallel_rows: int = 20_000  # of a column that is encoded
    min_parallel_instructions: int = 20_000  # of an HLO module
    min_parallel_read_bytes: int = 16 * 2**20  # of a file
    max_read_threads: int = 4
    decoded_bytes_per_thread: int = 2 * 2**20  # of a trace's lines

    # Many hosts
    max_hosts_in_memory: int = 16  # of more hosts no trace is kept, and `auto` analyzes them in processes
    min_rounds: int = 2  # hosts per processor from which each host stays on one thread
    max_processes: int = 32

    def n_processors(self) -> int:
        """Processors that this process may use."""
        try:
            return len(os.sched_getaffinity(0))
        except AttributeError:
            return os.cpu_count() or 1

    def n_processes(self, n_hosts: int) -> int:
        """Number of processes for `n_hosts` hosts, including this one."""
        return min(self.n_processors(), self.max_processes, n_hosts)

    def hosts_fill_processors(self, file_sizes: Sequence[int]) -> bool:
        """Whether hosts with files of these sizes keep every processor busy to the end, one thread per host:
        splitting a host's work then costs time without gaining any.
        """
        return sum(file_sizes) >= self.min_rounds * self.n_processors() * max(file_sizes)


POLICY = Policy()
