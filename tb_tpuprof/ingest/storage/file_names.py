"""Names of files → what they are, and of which host. Nothing is opened."""

from __future__ import annotations

import os
import re

from tb_tpuprof.ingest.storage.kinds import SNAPSHOT_SUFFIXES, page_of_name

STREAM_SUFFIX = ".xplane.riegeli"
XPLANE_SUFFIXES = (".xplane.pb", ".xplane.pb.gz", ".xspace.pb", ".xspace.pb.gz", STREAM_SUFFIX)
PYTORCH_SUFFIXES = (".pt.trace.json", ".pt.trace.json.gz")
OLD_TRACE_SUFFIXES = (".trace", ".trace.gz")
TABLE_SUFFIXES = (".SSTABLE", ".tracetable")
PERFETTO_SUFFIXES = (".pftrace", ".perfetto-trace", ".pftrace.gz", ".perfetto-trace.gz")
_JSON_SUFFIXES = (".trace.json", ".trace.json.gz")
SUFFIXES = (
    *XPLANE_SUFFIXES,
    *PYTORCH_SUFFIXES,
    *_JSON_SUFFIXES,
    *OLD_TRACE_SUFFIXES,
    *TABLE_SUFFIXES,
    *PERFETTO_SUFFIXES,
)
# Files that make a run of a folder outside plugins/profile; names such as x.json and x.trace say too little.
_LOOSE_SUFFIXES = (
    *XPLANE_SUFFIXES,
    *PYTORCH_SUFFIXES,
    *_JSON_SUFFIXES,
    *TABLE_SUFFIXES,
    *PERFETTO_SUFFIXES,
    *SNAPSHOT_SUFFIXES,
)
_PARTS_OF_TABLES = (".metadata.SSTABLE", ".trie.SSTABLE")
JAX_PERFETTO = "perfetto_trace.json.gz"  # JAX writes it next to the XPlane, with the same events
ANY_JSON = (".json", ".json.gz")
ALL_HOSTS = "ALL_HOSTS"  # a viewer's table of several hosts, which have tables of their own
NO_NAME = "(no name)"
HLO_SUFFIX = ".hlo_proto.pb"
NO_MODULE = "NO_MODULE"  # another viewer's marker file: there is no HLO
NO_HOST = "(no host)"  # replaces the host in a run that has programs but no trace
_TIMESTAMP = re.compile(r"\.\d{10,}$")


def host_of(path: str) -> str:
    """The host of a trace file: its name without the suffix."""
    name = os.path.basename(path)
    if is_program(name):
        return NO_HOST
    for suffix in SUFFIXES:
        if name.endswith(suffix):
            host = name[: -len(suffix)]
            return (_TIMESTAMP.sub("", host) if suffix in PYTORCH_SUFFIXES else host) or NO_NAME
    if is_snapshot(name):
        return re.sub(r"\.(p?prof(\.gz)?|pickle)$", "", name) or NO_NAME
    page = page_of_name(name)
    return (page.host if page else re.sub(r"\.json(\.gz)?$", "", name)) or NO_NAME


def is_trace(name: str) -> bool:
    """Whether a file of a run's folder is a host's trace by its name."""
    return name.endswith(SUFFIXES) and not name.endswith(_PARTS_OF_TABLES)


def makes_a_run(name: str) -> bool:
    """Whether a file makes a run of any folder."""
    return name.endswith(_LOOSE_SUFFIXES) and not name.endswith(_PARTS_OF_TABLES)


def is_snapshot(path: str) -> bool:
    """Whether a file is a snapshot of memory, by its name."""
    return path.endswith(SNAPSHOT_SUFFIXES)


def is_program(path: str) -> bool:
    """Whether a file contains the HLO of a program."""
    return path.endswith(HLO_SUFFIX) and os.path.basename(path) != NO_MODULE + HLO_SUFFIX


def is_saved_page(path: str) -> bool:
    """Whether a file is a page that an older profiler saved and that can be read."""
    page = page_of_name(path)
    return page is not None and page.is_read


def written_ns(name: str) -> int:
    """The time in the names of PyTorch's files (milliseconds, in later versions nanoseconds) as nanoseconds,
    0 if there is none.
    """
    digits = _TIMESTAMP.search(stamped(name)) if name.endswith(PYTORCH_SUFFIXES) else None
    text = digits[0][1:] if digits else ""
    return int(text) * 10**6 if len(text) == 13 else int(text) if len(text) == 19 else 0


def rank_of(path: str) -> int:
    """XPlanes first, then PyTorch's JSON, then JSON made from an XPlane, then older formats and tables."""
    order = (XPLANE_SUFFIXES, PYTORCH_SUFFIXES, ANY_JSON, OLD_TRACE_SUFFIXES, PERFETTO_SUFFIXES)
    return next((rank for rank, suffixes in enumerate(order) if path.endswith(suffixes)), len(order))


def stamped(path: str) -> str:
    """The worker's name with the timestamp that PyTorch appends."""
    return re.sub(r"\.pt\.trace\.json(\.gz)?$", "", os.path.basename(path))
