"""Kinds of files that are not traces, recognized by name or by first and last bytes. Nothing here decodes.

A folder with only such files, or such a file given by name, is refused with a message: what it is, who writes
it and what to do.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass

LEGACY, UNSUPPORTED = "legacy", "unsupported"


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
_PAGE = re.compile(rf"(^|\.)({'|'.join(_PAGES)})\.(json|pb)(\.gz)?$")
TABLE = FileKind(
    "a trace viewer's cache (LevelDB table), which contains parts of a trace for fast drawing", _OPEN_TRACE
)
OLD_TABLE = FileKind(
    "the event table of Cloud TPU's streaming trace viewer (capture_tpu_profile before TensorFlow 2.3)",
    _AGAIN,
    LEGACY,
)
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
PERFETTO = FileKind(
    "a Perfetto trace", "Export it as Chrome trace JSON (traceconv json), or open it in ui.perfetto.dev."
)
OLD_TRACE = FileKind("a trace of TensorFlow 2.1 (Trace protobuf)", "")  # is opened, regardless of its name
UNKNOWN = FileKind(
    "not a profile: it is neither an XSpace protobuf (.xplane.pb) nor Chrome trace JSON",
    "Choose the run's .xplane.pb or trace.json file. If it was one, copy it again in binary mode.",
)
REENCODED = FileKind(
    "damaged: its bytes were rewritten as UTF-8 text, as some tools do when they copy a file as text",
    "Copy the file again in binary mode.",
)
_FEW = 8
_BY_SUFFIX: tuple[tuple[str, FileKind], ...] = (
    (".tracetable", OLD_TABLE),
    (".SSTABLE", TABLE),
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
    (".pftrace", PERFETTO),
    (".perfetto-trace", PERFETTO),
    (
        "memory.prof",
        FileKind(
            "a device memory profile (pprof) from JAX's save_device_memory_profile",
            "Open it with pprof. For memory over time, capture a profile with jax.profiler.trace.",
        ),
    ),
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
            "a Python pickle, such as a PyTorch memory snapshot",
            "Open snapshots in PyTorch's memory viewer. The profiler never loads pickles.",
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
_TABLE_END = bytes.fromhex("57fb808b247547db")


def kind_of_name(path: str) -> FileKind | None:
    """The kind of a file with that name; None for traces and unknown names."""
    name = os.path.basename(path)
    page = _PAGE.search(name)
    if page:
        what = (
            f"the finished {_PAGES[page[2]]} of an older profiler, which saved pages in addition to the "
            "trace or instead of it"
        )
        return FileKind(what, f"It cannot be opened here. {_AGAIN}", LEGACY)
    for suffix, kind in _BY_SUFFIX:
        if name.endswith(suffix):
            return kind
    return EVENTS if ".tfevents." in name else None


def kind_of_bytes(head: bytes, tail: bytes) -> FileKind | None:
    """The kind of a file with these first and last bytes, None if they do not identify it."""
    if tail.endswith(_TABLE_END):
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
    what to do, the oldest formats last.
    """
    named = [(name, kind) for name in sorted(names) if (kind := kind_of_name(name))]
    if not named:
        return "empty", (
            "This run's folder contains no .xplane.pb or .trace.json file. The capture may have failed or is "
            "still being written."
        )
    pages = [_PAGES[page[2]] for name, _ in named if (page := _PAGE.search(name))]
    others = {kind: name for name, kind in reversed(named) if not _PAGE.search(name)}
    if pages and not others:
        listed = ", ".join(dict.fromkeys(pages))
        return (
            LEGACY,
            f"This run's folder contains no trace, only finished pages of an older profiler ({listed}), "
            f"which cannot be opened. {_AGAIN}",
        )
    other_kinds = sorted(others, key=lambda kind: (kind.state == LEGACY, others[kind]))
    descriptions = " ".join(f"{others[kind]} is {kind.what}." for kind in other_kinds[:2])
    return other_kinds[
        0
    ].state, f"This run's folder contains no trace. {descriptions} {other_kinds[0].remedy}"
