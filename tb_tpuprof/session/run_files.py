"""Files next to a run's traces: the HLO of compiled programs, and TensorFlow graphs."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from threading import RLock
from typing import Any, TypeVar

from tb_tpuprof.ingest.graphs.files import GraphCache, find_graphs, graph_folder, read_place
from tb_tpuprof.ingest.storage.file_names import is_program
from tb_tpuprof.ingest.storage.files import file_state
from tb_tpuprof.ingest.storage.programs import program_of_file, programs_in, read_program
from tb_tpuprof.ingest.storage.run_info import RunInfo
from tb_tpuprof.session.memory import Memory
from tb_tpuprof.trace.graph import Graph, GraphPlace, GraphSearch
from tb_tpuprof.trace.held import Sizes
from tb_tpuprof.trace.hlo_programs import Programs

T = TypeVar("T")


def run_programs(info: RunInfo) -> Programs:
    """The compiled programs whose HLO is in files of the run's folders; if the run is such a file, only
    that program.
    """
    if is_program(info.path):
        return Programs([program_of_file(file.path, file.size_bytes) for file in info.files], read_program)
    folders = list(dict.fromkeys(os.path.dirname(file.path) for file in info.files))
    joined = folders if len(folders) > 1 else [info.path]
    by_title = {program.title: program for folder in reversed(joined) for program in programs_in(folder)}
    return Programs(list(by_title.values()), read_program)


class RunGraphs:
    """The TensorFlow graphs in the folder above the run's `plugins`, and below it, within the memory that all
    sessions share. Thread-safe.
    """

    def __init__(self, run_path: str, memory: Memory) -> None:
        self._memory = memory
        self._sizes = Sizes()
        self._folder = graph_folder(run_path)
        self._lock = RLock()
        self._graph_cache: GraphCache = {}
        self._results: dict[Hashable, Any] = {}

    def search(self) -> GraphSearch:
        """All of them; files unchanged since the last search are not read again."""
        with self._lock:
            return find_graphs(self._folder, self._graph_cache)

    def get(self, function: Callable[[Graph], T], place: GraphPlace) -> T:
        """`function(graph at place)`; kept as long as the file stays as it is.

        Raises StorageError or TraceFormatError.
        """
        key = (function, place, file_state(place.path))
        with self._lock:
            if key not in self._results:
                self._results[key] = function(read_place(place))
            result: T = self._results[key]
        self._memory.use(self, key)
        self._memory.trim()
        return result

    def bytes_of(self, part: Hashable) -> int:
        """About the memory of a graph's result."""
        result = self._results.get(part)
        return self._sizes.total({part: result}, again=False) if result is not None else 0

    def drop(self, part: Hashable) -> bool:
        """Forget a result."""
        self._results.pop(part, None)
        return True
