"""The folder of a run's job -> the TensorFlow graphs that lie in it: in event files and in SavedModels.

Only places are noted here; `read_place` reads one. Field numbers: Event graph_def 4, summary 5,
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
from tb_tpuprof.ingest.graphs.records import data_holds, record_spans
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
MAX_FILE_BYTES, MAX_URL_BYTES = 2**30, 2**26  # of an event file no more is looked through
MAX_NEW_BYTES = 2**32  # of files that have changed since the last time
MAX_GRAPH_BYTES = 2**31 - 1  # protobuf's own limit


@dataclass(frozen=True)
class _Found:
    kind: str
    start: int
    size: int
    record: tuple[int, int]


# What was found in files, and what is to be said of them.
Known = dict[FileState, tuple[list[_Found], list[str]]]


def graph_folder(run_path: str) -> str:
    """The folder above `plugins/profile/<run>`; of a run that lies elsewhere its own folder."""
    path = run_path.replace(os.sep, "/").rstrip("/")
    head, found, _ = path.rpartition("/plugins/profile/")
    if found:
        return head
    if is_url(run_path):
        return path
    return os.path.dirname(run_path) if os.path.isfile(run_path) else run_path


def find_graphs(folder: str, known: Known) -> GraphSearch:
    """All graphs in a folder and below. What was found in a file stays in `known` for as long as the file
    stays as it is.
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
            if state not in known:
                said: list[str] = []
                n_new_bytes += min(state.size_bytes, limit)
                known[state] = (
                    list(
                        _in_saved_model(path) if path.endswith(SAVED_MODEL) else _in_events(state, name, said)
                    ),
                    said,
                )
            found, about = known[state]
            notes += about
        except ProfilerError as error:
            notes.append(error.message)
            continue
        if state.size_bytes > limit and not path.endswith(SAVED_MODEL):
            notes.append(f"Of {name} only the first {limit >> 20} MiB were looked through.")
        shown = name[: -len(SAVED_MODEL)].rstrip("/") or "." if name.endswith(SAVED_MODEL) else name
        for number, graph in enumerate(found):
            unique = shown if len(found) == 1 else f"{shown}#{number + 1}"
            places.append(GraphPlace(unique, path, graph.kind, graph.start, graph.size))
    return GraphSearch(folder, tuple(places[:MAX_GRAPHS]), len(files), tuple(dict.fromkeys(notes)), is_cut)


def read_place(place: GraphPlace) -> Graph:
    """The graph that stands at a place. Raises StorageError where the file is gone, TraceFormatError where
    that is no graph.
    """
    if place.size_bytes > MAX_GRAPH_BYTES:
        raise TraceFormatError(place.path, place.position, f"holds a graph of {place.size_bytes} bytes")
    data = read_range(file_state(place.path), place.position, place.size_bytes)
    graph = read_graph(data, 0, len(data))
    if not len(graph):
        raise TraceFormatError(
            place.path,
            place.position,
            "holds a graph without nodes that can be read",
            "Write the graph again.",
        )
    return graph


def _limit(path: str) -> int:
    return MAX_URL_BYTES if is_url(path) else MAX_FILE_BYTES


def _files(folder: str) -> tuple[list[str], bool]:
    """Event files and SavedModels in a folder and below, the folder's own first; whether there are more than
    may be looked at.
    """
    if is_url(folder):
        fs, inner = filesystem(folder)
        prefix = folder.split("://", 1)[0] + "://"
        with storage_errors(folder):
            found = [
                prefix + path.lstrip("/")
                for path in fs.find(inner)
                if _is_wanted(path) and "/plugins/profile/" not in path
            ]
        found.sort(key=lambda path: (path.count("/"), path))
        return found[:MAX_FILES], len(found) > MAX_FILES
    result: list[str] = []
    waiting, seen = [folder], set[tuple[int, int]]()
    while waiting and len(seen) < MAX_FOLDERS and len(result) <= MAX_FILES:
        here = waiting.pop(0)
        try:
            facts = os.stat(here)
            if (facts.st_dev, facts.st_ino) in seen:
                continue
            seen.add((facts.st_dev, facts.st_ino))
            with os.scandir(here) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
            result += [entry.path for entry in listed if _is_wanted(entry.name) and entry.is_file()]
            waiting += [
                entry.path
                for entry in listed
                if entry.name not in ("plugins", "variables") and entry.is_dir()
            ]
        except OSError:
            continue
    return result[:MAX_FILES], len(result) > MAX_FILES or bool(waiting)


def _is_wanted(path: str) -> bool:
    name = os.path.basename(path)
    return name == SAVED_MODEL or (_EVENTS in name and not name.endswith(".profile-empty"))


def _in_saved_model(path: str) -> Iterator[_Found]:
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
            yield _Found(f"SavedModel{f' ({tags})' if tags else ''}", *meta.span(2), (0, 0))


def _in_events(state: FileState, name: str, notes: list[str]) -> Iterator[_Found]:
    """Graphs in an event file whose checksums hold."""
    limit = _limit(state.path)
    if state.size_bytes > limit:
        data = read_range(state, 0, limit)
    else:
        data, _ = read_file(state.path)
    starts, sizes, wrong = record_spans(data)
    if wrong:
        notes.append(f"{name}: {wrong}; what follows is not read.")
    if not len(starts):
        return
    found = list(_of_events(data, starts, sizes))
    has_plain = any(graph.kind == "graph" for graph in found)
    for graph in found:
        if has_plain and graph.kind == "meta graph":
            continue  # TensorFlow 1 writes the same graph twice
        if data_holds(data, *graph.record):
            yield graph
        else:
            notes.append(
                f"{name}: the {graph.kind} at byte {graph.start} does not fit its checksum; it is left out."
            )


def _of_events(data: Bytes, starts: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]) -> Iterator[_Found]:
    values, found, _, _ = spans(data, starts, sizes, np.array([4, 5, 8, 9], np.int64))
    # A summary that holds a graph is larger than this; most are scalars.
    holds = (found[:, 0] > 0) | (found[:, 1] > 64) | (found[:, 2] > 0) | (found[:, 3] > 0)
    for row in np.flatnonzero(holds).tolist():
        record = (int(starts[row]), int(sizes[row]))
        (graph, summary, tagged, meta), lengths = values[row].tolist(), found[row].tolist()
        if lengths[0] > 0:
            yield _Found("graph", graph, lengths[0], record)
        if lengths[1] > 64:
            yield from _of_summary(data, summary, lengths[1], record)
        if lengths[2] > 0:
            message = Message(data, tagged, lengths[2])
            yield from _of_run(data, message.span(2), message.text(1), record)
        if lengths[3] > 0:
            yield _Found("meta graph", *Message(data, meta, lengths[3]).span(2), record)


def _of_summary(data: Bytes, start: int, size: int, record: tuple[int, int]) -> Iterator[_Found]:
    """Graphs that tf.summary.trace_export left: run metadata in a tensor of one text."""
    for value in Message(data, start, size).messages(1):
        if value.submessage(9).submessage(1).text(1) in _TRACE_PLUGINS:
            yield from _of_run(data, value.submessage(8).span(8), value.text(1), record)


def _of_run(data: Bytes, span: tuple[int, int], tag: str, record: tuple[int, int]) -> Iterator[_Found]:
    for function in Message(data, *span).messages(4):
        if function.has(2):
            yield _Found(f"traced functions{f' ({tag})' if tag else ''}", *function.span(2), record)
