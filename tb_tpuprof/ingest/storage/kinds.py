"""Kinds of files that are not traces, recognized by name or by first and last bytes. Nothing here decodes.

A folder with only such files, or such a file given by name, is refused with a message: what it is, who writes
it and what to do.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from tb_tpuprof.ingest.storage.leveldb import MAGIC
from tb_tpuprof.ingest.storage.run_info import LEGACY

UNSUPPORTED = "unsupported"


@dataclass(frozen=True)
class FileKind:
    """`what` completes "NAME is …"; `remedy` is advice; `state` is that of a run with only such files."""

    what: str
    remedy: str
    state: str = UNSUPPORTED


_AGAIN = "Profile the job again with TensorFlow 2.3 or newer, JAX or PyTorch/XLA to get an .xplane.pb file."
_OPEN_TRACE = (
    "Open the trace that it was made from (.xplane.pb or .trace.json.gz). If that is gone, profile the job "
    "again."
)
_PAGES = {
    "overview_page": "overview page",
    "input_pipeline": "input pipeline page",
    "tensorflow_stats": "table of TensorFlow operations",
    "kernel_stats": "table of GPU kernels",
    "pod_viewer": "pod viewer page",
    "op_profile": "op profile page",
    "memory_profile": "memory profile page",
    "memory_viewer": "memory viewer page",
    "tf_data_bottleneck_analysis": "tf.data analysis page",
    "framework_op_stats": "table of framework operations",
}
_PAGE = re.compile(rf"(?:^|(?P<host>.*)\.)(?P<page>{'|'.join(_PAGES)})\.(?P<form>json|pb)(?:\.gz)?$")
_READ_PAGES = {
    ("overview_page", "json"),
    ("overview_page", "pb"),
    ("input_pipeline", "json"),
    ("input_pipeline", "pb"),
    ("tensorflow_stats", "pb"),
    ("kernel_stats", "pb"),
    ("pod_viewer", "json"),
    ("op_profile", "json"),
    ("memory_profile", "json"),
}
ARGUMENTS = FileKind(
    "the arguments of a trace viewer's table, without its events",
    "Open the .SSTABLE file next to it, or the .xplane.pb file that both were made from.",
)
NAME_INDEX = FileKind("an index of the names in a trace viewer's table", _OPEN_TRACE)
MARKER = FileKind(
    "an empty event file, which tells TensorBoard that the folder contains profiles",
    "The profiles are next to it, in plugins/profile/<run>.",
)
HLO = FileKind(
    "the HLO of a compiled program",
    "Rename it to <program>.hlo_proto.pb to open it in the memory viewer and the graph viewer.",
)
GRAPH = FileKind(
    "a TensorFlow SavedModel or graph",
    "Keep it in the run's log directory: the graph viewer lists the graphs it finds there.",
)
EVENTS = FileKind(
    "a TensorBoard event file (scalars, graphs, histograms), not a profile",
    "Open its folder with TensorBoard.",
)
SUMMARIES = FileKind("an intermediate result that another profile viewer stores next to a trace", _OPEN_TRACE)
PERFETTO = FileKind("a Perfetto trace", "")  # is opened, regardless of its name
# Both are opened, regardless of the file's name.
OLD_TRACE = FileKind("a trace of TensorFlow 2.1 (Trace protobuf)", "")
TABLE = FileKind("a streaming trace viewer's table (LevelDB)", "")
UNKNOWN = FileKind(
    "not a profile: it is neither an XSpace protobuf (.xplane.pb) nor Chrome trace JSON",
    "Choose the run's .xplane.pb or trace.json file. If it was one, copy it again in binary mode.",
)
REENCODED = FileKind(
    "damaged: its bytes were rewritten as UTF-8 text, as some tools do when they copy a file as text",
    "Copy the file again in binary mode.",
)
# Snapshots of memory: JAX's save_device_memory_profile, pprof in general, PyTorch's _dump_snapshot.
SNAPSHOT_SUFFIXES = ("memory.prof", ".pprof", ".pprof.gz", "snapshot.pickle")
_FEW = 8
_BY_SUFFIX: tuple[tuple[str, FileKind], ...] = (
    (".metadata.SSTABLE", ARGUMENTS),
    (".trie.SSTABLE", NAME_INDEX),
    (".profile-empty", MARKER),
    (
        "NO_MODULE.hlo_proto.pb",
        FileKind("a marker of another viewer: the run has no HLO", _OPEN_TRACE),
    ),
    (".op_stats.pb", SUMMARIES),
    (".op_stats_v2.pb", SUMMARIES),
    (".dcn_collective_stats.pb", SUMMARIES),
    (".smart_suggestion.pb", SUMMARIES),
    (".cached_tools.json", SUMMARIES),
    ("cache_version.txt", SUMMARIES),
    (".nsys-rep", FileKind("a report of NVIDIA Nsight Systems", "Open it with Nsight Systems.")),
    (
        ".rpd",
        FileKind(
            "a database of AMD's rocpd profiler", "Convert it to Chrome trace JSON with rpd2tracing.py."
        ),
    ),
    (
        ".pickle",
        FileKind(
            "a Python pickle",
            "If it is PyTorch's memory snapshot, rename it to NAME_snapshot.pickle to open it.",
        ),
    ),
    ("saved_model.pb", GRAPH),
)
_MAGIC: tuple[tuple[bytes, FileKind], ...] = (
    (
        b"SQLite format 3\0",
        FileKind(
            "an SQLite database, such as an export of Nsight Systems or rocpd",
            "Export it as Chrome trace JSON.",
        ),
    ),
    (b"PK\x03\x04", FileKind("a zip archive", "Unpack it, then open the files in it.")),
    (b"BZh", FileKind("packed with bzip2", "Unpack it (bunzip2), then open the plain file.")),
    (
        b"\x28\xb5\x2f\xfd",
        FileKind("packed with Zstandard", "Unpack it (zstd -d), then open the plain file."),
    ),
    (b"\xfd7zXZ\0", FileKind("packed with xz", "Unpack it (unxz), then open the plain file.")),
)


class PageName(NamedTuple):
    """A file that a page was saved in: its host, the page, its title, and whether it can be read."""

    host: str
    page: str
    title: str
    is_read: bool


def page_of_name(path: str) -> PageName | None:
    """The saved page that a file's name names; None for any other file."""
    match = _PAGE.fullmatch(os.path.basename(path))
    if match is None:
        return None
    page = match["page"]
    return PageName(match["host"] or "", page, _PAGES[page], (page, match["form"]) in _READ_PAGES)


def kind_of_name(path: str) -> FileKind | None:
    """The kind of a file with that name; None for traces and unknown names."""
    name = os.path.basename(path)
    if name.endswith(SNAPSHOT_SUFFIXES):
        return None
    page = page_of_name(name)
    if page:
        what = (
            f"the finished {page.title} of an older profiler, which saved pages in addition to the "
            "trace or instead of it"
        )
        return FileKind(what, f"It cannot be opened here. {_AGAIN}", LEGACY)
    for suffix, kind in _BY_SUFFIX:
        if name.endswith(suffix):
            return kind
    return EVENTS if ".tfevents." in name else None


def kind_of_bytes(head: bytes, tail: bytes) -> FileKind | None:
    """The kind of a file with these first and last bytes, None if they do not identify it."""
    if tail.endswith(MAGIC):
        return TABLE
    if _is_reencoded(head):
        return REENCODED
    return next((kind for start, kind in _MAGIC if head.startswith(start)), None)


def _is_reencoded(head: bytes) -> bool:
    """Whether binary bytes were rewritten as UTF-8: a protobuf's control characters together with well-formed
    characters beyond ASCII.
    """
    try:
        text = head.decode("utf-8")
    except UnicodeDecodeError as error:
        text = head[: error.start].decode("utf-8") if error.start > len(head) - 4 else ""
    return bool(re.search(r"[\x00-\x08]", text)) and len(re.findall(r"[\x80-\xff\ufffd]", text)) >= _FEW


def without_trace(names: Iterable[str]) -> tuple[str, str]:
    """(state, message) of a run whose folder has these files but no trace. The message says what they are and
    what to do.
    """
    named = [(name, kind) for name in sorted(names) if (kind := kind_of_name(name))]
    if not named:
        return "empty", (
            "This run's folder contains no .xplane.pb or .trace.json file. The capture may have failed or is "
            "still being written."
        )
    pages = [page.title for name, _ in named if (page := page_of_name(name))]
    others = {kind: name for name, kind in reversed(named) if not page_of_name(name)}
    if pages and not others:
        listed = ", ".join(dict.fromkeys(pages))
        return (
            UNSUPPORTED,
            f"This run's folder contains no trace, only finished pages of an older profiler ({listed}) in a "
            f"format that is not known. {_AGAIN}",
        )
    other_kinds = sorted(others, key=lambda kind: others[kind])
    descriptions = " ".join(f"{others[kind]} is {kind.what}." for kind in other_kinds[:2])
    return other_kinds[
        0
    ].state, f"This run's folder contains no trace. {descriptions} {other_kinds[0].remedy}"
