"""The folder of a run's job -> the TensorFlow graphs in it: in event files and in SavedModels.

A search only records positions; `read_place` reads one graph. Field numbers: Event graph_def 4, summary 5,
tagged_run_metadata 8, meta_graph_def 9. Summary value 1; its tag 1, metadata 9 (plugin_data 1, plugin_name
1), tensor 8 (string_val 8). TaggedRunMetadata tag 1, run_metadata 2. RunMetadata function_graphs 4, of which
pre_optimization_graph 2. SavedModel meta_graphs 2. MetaGraphDef meta_info_def 1 (tags 4), graph_def 2.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.errors import ProfilerError, TraceFormatError
from tb_tpuprof.ingest.graphs.graph_def import read_graph
from tb_tpuprof.ingest.graphs.records import matches_checksum, record_spans
from tb_tpuprof.ingest.hlo.message import Message
from tb_tpuprof.ingest.storage.files import (
    FileState,
    file_state,
    filesystem,
    is_url,
    read_file,
    read_range,
    storage_errors,
)
from tb_tpuprof.native import spans
from tb_tpuprof.trace.graph import Graph, GraphPlace, GraphSearch

Bytes = npt.NDArray[np.uint8]
SAVED_MODEL = "saved_model.pb"
_EVENTS = ".tfevents."
_TRACE_PLUGINS = ("graph_run_metadata", "graph_run_metadata_graph")
MAX_FILES, MAX_FOLDERS, MAX_GRAPHS = 2000, 20_000, 500
MAX_FILE_BYTES, MAX_URL_BYTES = 2**30, 2**26  # only the first bytes of an event file are searched
MAX_NEW_BYTES = 2**32  # limit per search on bytes of files that are new or have changed
MAX_GRAPH_BYTES = 2**31 - 1  # protobuf's own limit


@dataclass(frozen=True)
class _GraphSpan:
    kind: str
    start: int
    size: int
    record: tuple[int, int]


# For each file searched: its graphs, and notes for the user.
GraphCache = dict[FileState, tuple[list[_GraphSpan], list[str]]]


def graph_folder(run_path: str) -> str:
    """The folder above `plugins/profile/<run>`; for a run elsewhere, its own folder."""
    path = run_path.replace(os.sep, "/").rstrip("/")
    head, separator, _ = path.rpartition("/plugins/profile/")
    if separator:
        return head
    if is_url(run_path):
        return path
    return os.path.dirname(run_path) if os.path.isfile(run_path) else run_path


def find_graphs(folder: str, cache: GraphCache) -> GraphSearch:
    """All graphs in a folder and below it. `cache` keeps the graphs of each file as long as the file does not
    change.
    """
    files, is_cut = _files(folder)
    places: list[GraphPlace] = []
    notes: list[str] = []
    limit, n_new_bytes = _limit(folder), 0
    for path in files:
        if len(places) >= MAX_GRAPHS or n_new_bytes > MAX_NEW_BYTES:
            is_cut = True
            break
        name = path[len(folder) :].lstrip("/" + os.sep).replace(os.sep, "/")
        try:
            state = file_state(path)
            if state not in cache:
                file_notes: list[str] = []
                n_new_bytes += min(state.size_bytes, limit)
                cache[state] = (
                    list(
                        _in_saved_model(path)
                        if path.endswith(SAVED_MODEL)
                        else _in_events(state, name, file_notes)
                    ),
                    file_notes,
                )
            graphs, cached_notes = cache[state]
            notes += cached_notes
        except ProfilerError as error:
            notes.append(error.message)
            continue
        if state.size_bytes > limit and not path.endswith(SAVED_MODEL):
            notes.append(f"{name}: only the first {limit >> 20} MiB were searched.")
        title = name[: -len(SAVED_MODEL)].rstrip("/") or "." if name.endswith(SAVED_MODEL) else name
        for number, graph in enumerate(graphs):
            unique_name = title if len(graphs) == 1 else f"{title}#{number + 1}"
            places.append(GraphPlace(unique_name, path, graph.kind, graph.start, graph.size))
    return GraphSearch(folder, tuple(places[:MAX_GRAPHS]), len(files), tuple(dict.fromkeys(notes)), is_cut)


def read_place(place: GraphPlace) -> Graph:
    """The graph at a place. Raises StorageError if the file is gone, TraceFormatError if there is no
    graph.
    """
    if place.size_bytes > MAX_GRAPH_BYTES:
        raise TraceFormatError(place.path, place.position, f"contains a graph of {place.size_bytes} bytes")
    data = read_range(file_state(place.path), place.position, place.size_bytes)
    graph = read_graph(data, 0, len(data))
    if not len(graph):
        raise TraceFormatError(
            place.path,
            place.position,
            "contains a graph without readable nodes",
            "Write the graph again.",
        )
    return graph


def _limit(path: str) -> int:
    return MAX_URL_BYTES if is_url(path) else MAX_FILE_BYTES


def _files(folder: str) -> tuple[list[str], bool]:
    """Event files and SavedModels in a folder and below it, the folder's own first; and whether a limit cut
    the search.
    """
    if is_url(folder):
        fs, inner = filesystem(folder)
        prefix = folder.split("://", 1)[0] + "://"
        with storage_errors(folder):
            paths = [
                prefix + path.lstrip("/")
                for path in fs.find(inner)
                if _may_have_graphs(path) and "/plugins/profile/" not in path
            ]
        paths.sort(key=lambda path: (path.count("/"), path))
        return paths[:MAX_FILES], len(paths) > MAX_FILES
    result: list[str] = []
    waiting, seen = [folder], set[tuple[int, int]]()
    while waiting and len(seen) < MAX_FOLDERS and len(result) <= MAX_FILES:
        current_folder = waiting.pop(0)
        try:
            facts = os.stat(current_folder)
            if (facts.st_dev, facts.st_ino) in seen:
                continue
            seen.add((facts.st_dev, facts.st_ino))
            with os.scandir(current_folder) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
            result += [entry.path for entry in listed if _may_have_graphs(entry.name) and entry.is_file()]
            waiting += [
                entry.path
                for entry in listed
                if entry.name not in ("plugins", "variables") and entry.is_dir()
            ]
        except OSError:
            continue
    return result[:MAX_FILES], len(result) > MAX_FILES or bool(waiting)


def _may_have_graphs(path: str) -> bool:
    name = os.path.basename(path)
    return name == SAVED_MODEL or (_EVENTS in name and not name.endswith(".profile-empty"))


def _in_saved_model(path: str) -> Iterator[_GraphSpan]:
    data, _ = read_file(path)
    model = Message(data, 0, len(data))
    if not model.has(2):
        raise TraceFormatError(
            path, 0, "is not a SavedModel", "Save the model again with tf.saved_model.save."
        )
    for start, size in model.spans(2):
        meta = Message(data, start, size)
        if meta.has(2):
            tags = ", ".join(meta.submessage(1).texts(4))
            yield _GraphSpan(f"SavedModel{f' ({tags})' if tags else ''}", *meta.span(2), (0, 0))


def _in_events(state: FileState, name: str, notes: list[str]) -> Iterator[_GraphSpan]:
    """Graphs in an event file that match their checksums."""
    limit = _limit(state.path)
    if state.size_bytes > limit:
        data = read_range(state, 0, limit)
    else:
        data, _ = read_file(state.path)
    starts, sizes, damage = record_spans(data)
    if damage:
        notes.append(f"{name}: {damage}; the rest of the file is not read.")
    if not len(starts):
        return
    graphs = list(_of_events(data, starts, sizes))
    has_plain = any(graph.kind == "graph" for graph in graphs)
    for graph in graphs:
        if has_plain and graph.kind == "meta graph":
            continue  # TensorFlow 1 writes the same graph twice
        if matches_checksum(data, *graph.record):
            yield graph
        else:
            notes.append(
                f"{name}: the {graph.kind} at byte {graph.start} does not match its checksum and is left out."
            )


def _of_events(
    data: Bytes, starts: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]
) -> Iterator[_GraphSpan]:
    values, field_sizes, _, _ = spans(data, starts, sizes, np.array([4, 5, 8, 9], np.int64))
    # A summary with a graph is larger than 64 bytes; most summaries are scalars.
    may_have_graph = (
        (field_sizes[:, 0] > 0) | (field_sizes[:, 1] > 64) | (field_sizes[:, 2] > 0) | (field_sizes[:, 3] > 0)
    )
    for row in np.flatnonzero(may_have_graph).tolist():
        record = (int(starts[row]), int(sizes[row]))
        (graph, summary, tagged, meta), lengths = values[row].tolist(), field_sizes[row].tolist()
        if lengths[0] > 0:
            yield _GraphSpan("graph", graph, lengths[0], record)
        if lengths[1] > 64:
            yield from _of_summary(data, summary, lengths[1], record)
        if lengths[2] > 0:
            message = Message(data, tagged, lengths[2])
            yield from _of_run(data, message.span(2), message.text(1), record)
        if lengths[3] > 0:
            yield _GraphSpan("meta graph", *Message(data, meta, lengths[3]).span(2), record)


def _of_summary(data: Bytes, start: int, size: int, record: tuple[int, int]) -> Iterator[_GraphSpan]:
    """Graphs that tf.summary.trace_export wrote: run metadata in a tensor of one text."""
    for value in Message(data, start, size).messages(1):
        if value.submessage(9).submessage(1).text(1) in _TRACE_PLUGINS:
            yield from _of_run(data, value.submessage(8).span(8), value.text(1), record)


def _of_run(data: Bytes, span: tuple[int, int], tag: str, record: tuple[int, int]) -> Iterator[_GraphSpan]:
    for function in Message(data, *span).messages(4):
        if function.has(2):
            yield _GraphSpan(f"traced functions{f' ({tag})' if tag else ''}", *function.span(2), record)
