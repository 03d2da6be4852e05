"""A logdir → its runs and their hosts, from folder listings only: no trace is opened.

<logdir>/**/plugins/profile/<session>/<host>.xplane.pb[.gz]      run <folder above plugins>/<session>
<logdir>/**/plugins/profile/<session>/<host>.xplane.riegeli      the same, of continuous profiling
<logdir>/**/plugins/profile/<session>+<end of another's name>    joined from sibling folders (`joining`)
<logdir>/**/plugins/profile/<session>/<host>.trace.json[.gz]     the same; if a host has both, the XPlane wins
<logdir>/**/plugins/profile/<session>/<host>.trace               TensorFlow 2.1's; read if nothing is newer
<logdir>/**/plugins/profile/<session>/<host>.pftrace             Perfetto's; read if nothing else is there
<logdir>/**/plugins/profile/<session>/<host>.SSTABLE             a viewer's table; read if nothing is newer
<logdir>/**/plugins/profile/<session>/<name>.json[.gz]           a Chrome trace; read if nothing else is
<logdir>/**/<folder>/<worker>[.<timestamp>].pt.trace.json[.gz]   PyTorch's profiler; run <folder>
<logdir>/**/<folder>/<host>.xplane.pb[.gz]                       a copied trace; run <folder>
<logdir>/**/<folder>/memory.prof, *.pprof, *_snapshot.pickle     without a trace: a run of memory snapshots
<logdir>/**/plugins/profile/<session>/<host>.<page>.json|pb      without these: a run of saved pages only
<logdir>/**/plugins/profile/<session>/<program>.hlo_proto.pb     without all of them: a run of programs only
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial
from typing import NamedTuple

from tb_tpuprof.errors import LogDirectory, NotATrace, RunNotFound, StorageError
from tb_tpuprof.ingest.storage import joining
from tb_tpuprof.ingest.storage.file_names import (
    ALL_HOSTS,
    ANY_JSON,
    HLO_SUFFIX,
    JAX_PERFETTO,
    NO_HOST,
    NO_NAME,
    PYTORCH_SUFFIXES,
    SUFFIXES,
    TABLE_SUFFIXES,
    host_of,
    is_program,
    is_saved_page,
    is_snapshot,
    is_trace,
    makes_a_run,
    rank_of,
    stamped,
    written_ns,
)
from tb_tpuprof.ingest.storage.files import file_state, filesystem, is_url, storage_errors
from tb_tpuprof.ingest.storage.kinds import SNAPSHOT_SUFFIXES, kind_of_name, without_trace
from tb_tpuprof.ingest.storage.run_info import HLO, LEGACY, MEMORY, OK, HostFile, RunInfo

UNREADABLE = "unreadable"
PROGRAM_ONLY = (
    "This file contains the HLO of one compiled program and no trace: the memory viewer and the graph viewer "
    "show what the compiler planned. Capture a profile to see what ran and for how long."
)
PROGRAMS_ONLY = (
    "This run contains the HLO of compiled programs (*.hlo_proto.pb) but no trace: the memory viewer and the "
    "graph viewer show what the compiler planned. "
    "Capture a profile, or copy the .xplane.pb files here, to see what ran and for how long."
)
PAGES_ONLY = (
    "This run contains no trace, only finished pages that an older profiler saved. The page Saved pages "
    "shows them; there is no timeline, and nothing can be recomputed. Profile the job again for more."
)
SNAPSHOTS_ONLY = (
    "This run contains memory snapshots and no trace: the page Memory snapshot shows what was allocated, and "
    "by whom. Capture a profile to see what ran and for how long."
)
_SESSION_TIME = re.compile(r"^(\d{4})[_-](\d\d)[_-](\d\d)[_-](\d\d)[_-](\d\d)[_-](\d\d)")
_MAX_FOLDERS = 200_000


class _Entry(NamedTuple):
    """A file in a run's folder."""

    name: str
    path: str
    size_bytes: int
    mtime_ns: int


def find_runs(logdir: str) -> list[RunInfo]:
    """All runs below a logdir, newest first. A logdir that does not exist has none.

    A folder that cannot be listed is an unreadable run; one that is deleted meanwhile is none.
    """
    runs = _url_runs(logdir) if is_url(logdir) else list(_local_runs(logdir))
    return sorted([*runs, *joining.offers(runs)], key=lambda run: (run.captured_at, run.name), reverse=True)


def has_runs(logdir: str) -> bool:
    """Whether there is a run below the logdir; stops at the first one."""
    if is_url(logdir):
        return bool(find_runs(logdir))
    return next(_session_folders(logdir), None) is not None


def find_run(logdir: str, name: str) -> RunInfo:
    """The run of that name. Raises RunNotFound; no name leads out of the logdir."""
    if (
        not name
        or "\0" in name
        or os.path.isabs(name)
        or any(part in ("", ".", "..") for part in name.split("/"))
    ):
        raise RunNotFound(name, "this is not a run's name")
    try:
        return _find_one(logdir, name)
    except RunNotFound:
        if "\\" in name or not joining.parts_of(name):
            raise
    return joining.lookup(name, partial(_find_one, logdir))


def _find_one(logdir: str, name: str) -> RunInfo:
    if is_url(logdir) or "\\" in name:  # a path of the operating system, or bytes that are not UTF-8
        run = next((run for run in find_runs(logdir) if run.name == name), None)
        if run is None:
            raise RunNotFound(name)
        return run
    parts = name.split("/")
    path = os.path.join(logdir, *parts[:-1], "plugins", "profile", parts[-1])
    if os.path.isdir(path):
        return _run(logdir, path)
    logdir_name = os.path.basename(os.path.abspath(logdir))
    for folder in (
        os.path.join(logdir, *parts),
        *([logdir] if name == logdir_name else []),
        *([os.path.join(logdir, "profile", name)] if logdir_name == "plugins" else []),
    ):
        if os.path.isdir(folder) and (_holds_traces(folder) or _is_session(folder)):
            return _run(logdir, folder)
    raise RunNotFound(name, "its folder does not exist (anymore)")


def open_run(run_dir: str) -> RunInfo:
    """The run in a folder with trace files, made of a single trace file, or joined from folders (`a+b`).

    Raises StorageError if the path is none of these, RunNotFound for folders that are not one run,
    LogDirectory for a folder that has runs below it, NotATrace for a file whose name shows that it is of
    another kind.
    """
    try:
        return _check_not_logdir(run_dir, _open_one(run_dir))
    except StorageError:
        if not joining.parts_of(run_dir):
            raise
    run = joining.lookup(run_dir, _open_one)
    return replace(run, name=run.name.rpartition("/")[2])


def _check_not_logdir(run_dir: str, opened: RunInfo) -> RunInfo:
    below = [] if opened.files else [run.path for run in find_runs(run_dir) if run.path != opened.path]
    if below:
        raise LogDirectory(run_dir, below)
    return opened


def _open_one(run_dir: str) -> RunInfo:
    if is_url(run_dir):
        fs, inner = filesystem(run_dir)
        with storage_errors(run_dir):
            if fs.isfile(inner):
                facts = fs.info(inner)
                return _of_file(run_dir, int(facts.get("size") or 0), 0)
            entries = [entry for entry in fs.ls(inner, detail=True) if entry["type"] == "file"]
        return _url_run(os.path.basename(run_dir.rstrip("/")), run_dir.rstrip("/"), entries)
    if os.path.isfile(run_dir):
        facts = os.stat(run_dir)
        return _of_file(os.path.abspath(run_dir), facts.st_size, facts.st_mtime_ns)
    if not os.path.isdir(run_dir):
        raise StorageError(
            f"{run_dir} is not a folder or file.",
            "Give a trace file, or the folder that holds the *.xplane.pb files.",
        )
    return _run(os.path.dirname(os.path.abspath(run_dir)), os.path.abspath(run_dir))


def _of_file(path: str, size_bytes: int, mtime_ns: int) -> RunInfo:
    kind = kind_of_name(path)
    if kind is not None and not is_saved_page(path):
        raise NotATrace(path, kind.what, kind.remedy)
    host = host_of(path)
    run = _info(host, path, [HostFile(host, path, size_bytes, mtime_ns)], mtime_ns, [])
    if run.state != HLO:
        return run
    title = os.path.basename(path).removesuffix(HLO_SUFFIX)
    return replace(run, name=title or NO_NAME, message=PROGRAM_ONLY)


def _holds_traces(folder: str) -> bool:
    """Whether the folder itself contains files that make it a run."""
    with storage_errors(folder), os.scandir(folder) as entries:
        return any(makes_a_run(entry.name) for entry in entries)


def _session_folders(logdir: str) -> Iterator[str]:
    """Folders below any plugins/profile, and those with traces. Follows links, but enters no folder twice."""
    seen: set[tuple[int, int]] = set()
    stack = [logdir]
    while stack and len(seen) < _MAX_FOLDERS:
        folder = stack.pop()
        try:
            facts = os.stat(folder)
            if (facts.st_dev, facts.st_ino) in seen:
                continue
            seen.add((facts.st_dev, facts.st_ino))
            with os.scandir(folder) as entries:
                children = list(entries)
            folders = [entry.path for entry in children if _is_folder(entry)]
        except OSError:
            continue
        is_loose = any(makes_a_run(entry.name) for entry in children)
        if folder.replace(os.sep, "/").endswith("/plugins/profile"):
            yield from folders
        else:
            stack += folders
        if is_loose or (folder == logdir and _is_session(logdir)):
            yield folder


def _is_session(path: str) -> bool:
    """Whether a folder is directly below plugins/profile."""
    return os.path.dirname(os.path.abspath(path)).replace(os.sep, "/").endswith("/plugins/profile")


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a folder, or a link to one; a link that leads nowhere is none."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def _local_runs(logdir: str) -> Iterator[RunInfo]:
    for path in _session_folders(logdir):
        try:
            yield _run(logdir, path)
        except StorageError as error:
            if os.path.isdir(path):  # else it was deleted after it was listed
                name = _run_name(logdir, path)
                yield RunInfo(
                    name, path, (), _captured_at(name, 0), UNREADABLE, f"{error.message} {error.remedy}"
                )


def _run(logdir: str, path: str) -> RunInfo:
    with storage_errors(path), os.scandir(path) as entries:
        listed = [
            _Entry(_printable(entry.name), entry.path, *_size_and_time(entry))
            for entry in entries
            if _matters(entry.name)
        ]
        return _of_entries(_run_name(logdir, path), path, listed, lambda: os.stat(path).st_mtime_ns)


def _size_and_time(entry: os.DirEntry[str]) -> tuple[int, int]:
    """(bytes, time in ns) of a file; (0, 0) for a link that leads nowhere, and for what is not a file."""
    try:
        facts = entry.stat()
    except OSError:
        return 0, 0
    return (facts.st_size, facts.st_mtime_ns) if stat.S_ISREG(facts.st_mode) else (0, 0)


def _printable(name: str) -> str:
    r"""A name of the file system as text: bytes that are not UTF-8 become `\xff`."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _matters(name: str) -> bool:
    return name.endswith((*SUFFIXES, HLO_SUFFIX, *ANY_JSON, *SNAPSHOT_SUFFIXES)) or (
        kind_of_name(name) is not None
    )


def _of_entries(name: str, path: str, entries: list[_Entry], folder_time: Callable[[], int]) -> RunInfo:
    """The run made of a folder's files. If no file has a time, the folder's own time counts."""
    files, perfetto, snapshots, pages, programs, others = [], [], [], [], [], []
    newest = 0
    for entry in entries:
        file = HostFile(host_of(entry.name), entry.path, entry.size_bytes, entry.mtime_ns)
        if is_trace(entry.name):
            files.append(file)
            newest = max(newest, written_ns(entry.name) or entry.mtime_ns)
        elif is_snapshot(entry.name):
            snapshots.append(file)
        elif is_program(entry.name) and entry.size_bytes:
            programs.append(replace(file, host=NO_HOST))
        elif entry.name == JAX_PERFETTO:
            perfetto.append(file)
        elif is_saved_page(entry.name):
            pages.append(file)
        elif entry.name.endswith(ANY_JSON) and kind_of_name(entry.name) is None:
            others.append(file)
    files = files or perfetto or snapshots or _of_pages(pages) or _of_programs(programs) or others
    newest = newest or max((file.mtime_ns for file in files), default=0) or folder_time()
    return _info(name, path, files, newest, [entry.name for entry in entries])


def _run_name(logdir: str, path: str) -> str:
    if not os.path.dirname(path).replace(os.sep, "/").endswith("plugins/profile"):
        relative = os.path.relpath(path, logdir).replace(os.sep, "/")
        return _printable(
            os.path.basename(os.path.abspath(path))
            if relative == "." or relative.startswith("..")
            else relative
        )
    above = os.path.dirname(os.path.dirname(os.path.dirname(path)))
    relative = os.path.relpath(above, logdir).replace(os.sep, "/")
    session = os.path.basename(path)
    return _printable(session if relative == "." or relative.startswith("..") else f"{relative}/{session}")


def _info(name: str, path: str, files: list[HostFile], newest_ns: int, names: list[str]) -> RunInfo:
    ordered = tuple(sorted(_one_per_host(files), key=lambda file: _natural(file.host)))
    state, message = OK, ""
    if any(file.host == NO_HOST and is_program(file.path) for file in files):
        state, message = HLO, PROGRAMS_ONLY
    elif ordered and is_saved_page(ordered[0].path):
        state, message = LEGACY, PAGES_ONLY
    elif not files:
        state, message = without_trace(names)
    elif all(is_snapshot(file.path) for file in files) and any(file.size_bytes for file in files):
        state, message = MEMORY, SNAPSHOTS_ONLY
    elif not any(file.size_bytes for file in files):
        state, message = UNREADABLE, _why_empty(files)
    return RunInfo(name, path, ordered, _captured_at(name, newest_ns), state, message)


def _why_empty(files: list[HostFile]) -> str:
    """Why a run without any bytes of a trace cannot be opened."""
    for file in files:
        try:
            file_state(file.path)
        except StorageError as error:
            return f"{error.message} {error.remedy}"
    return (
        f"{os.path.basename(files[0].path)} is empty (0 bytes). The capture may have failed or is still "
        "being written."
    )


def _of_programs(programs: list[HostFile]) -> list[HostFile]:
    """One file that represents all: the largest, with the size of all and the time of the newest. Empty if
    there are none.
    """
    if not programs:
        return []
    largest = max(programs, key=lambda file: (file.size_bytes, file.path))
    size, newest = sum(file.size_bytes for file in programs), max(file.mtime_ns for file in programs)
    return [replace(largest, size_bytes=size, mtime_ns=newest)]


def _of_pages(pages: list[HostFile]) -> list[HostFile]:
    """A file for each host: its largest page, with the size of all and the time of the newest."""
    by_host: dict[str, list[HostFile]] = {}
    for file in pages:
        by_host.setdefault(file.host, []).append(file)
    return [replace(_of_programs(listed)[0], host=host) for host, listed in by_host.items()]


def _one_per_host(files: list[HostFile]) -> list[HostFile]:
    """The best file of each host: an XPlane rather than JSON, JSON rather than a table, plain rather than
    gzipped. PyTorch's captures at several times count as several hosts.
    """
    times: dict[str, set[str]] = {}
    for file in files:
        if file.path.endswith(PYTORCH_SUFFIXES):
            times.setdefault(file.host, set()).add(stamped(file.path))
    unique: dict[str, HostFile] = {}
    if any(file.host != ALL_HOSTS for file in files):
        files = [file for file in files if file.host != ALL_HOSTS or not file.path.endswith(TABLE_SUFFIXES)]
    for file in sorted(files, key=lambda file: (rank_of(file.path), file.path), reverse=True):
        host = (
            stamped(file.path)
            if len(times.get(file.host, ())) > 1 and file.path.endswith(PYTORCH_SUFFIXES)
            else file.host
        )
        unique[host] = replace(file, host=host)
    return list(unique.values())


def _natural(text: str) -> list[tuple[int, int, str]]:
    """Sort key that puts worker-10 after worker-9."""
    return [
        (0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d+)", text) if part
    ]


def _captured_at(name: str, newest_ns: int) -> str:
    """When a run was captured: the time in its name, else that of its newest file; empty after 9999."""
    match = _SESSION_TIME.match(name.rsplit("/", 1)[-1])
    if match:
        try:
            return datetime(*(int(part) for part in match.groups())).isoformat()  # type: ignore[arg-type]
        except ValueError:
            pass
    try:
        return datetime.fromtimestamp(newest_ns / 1e9, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
    except (ValueError, OverflowError, OSError):  # a time after the year 9999
        return ""


def _url_runs(logdir: str) -> list[RunInfo]:
    fs, inner = filesystem(logdir)
    with storage_errors(logdir):
        files = fs.find(inner, detail=True)
    prefix = logdir.split("://", 1)[0] + "://"
    sessions: dict[str, list[dict[str, object]]] = {}
    for path, entry in files.items():
        folder = os.path.dirname(path)
        if os.path.dirname(folder).endswith("plugins/profile") or makes_a_run(os.path.basename(path)):
            sessions.setdefault(folder, []).append({**entry, "name": path})
    return [
        _url_run(_run_name(inner.rstrip("/") or "/", folder), prefix + folder.lstrip("/"), files)
        for folder, files in sessions.items()
    ]


def _url_run(name: str, url: str, entries: list[dict[str, object]]) -> RunInfo:
    bases = [(os.path.basename(str(entry["name"])), entry) for entry in entries]
    listed = [
        _Entry(base, f"{url}/{base}", int(str(entry.get("size") or 0)), _mtime_ns(entry))
        for base, entry in bases
        if _matters(base)
    ]
    return _of_entries(name, url, listed, lambda: 0)


def _mtime_ns(entry: dict[str, object]) -> int:
    """When a file was written, if its file system reports it, else 0."""
    stamp = entry.get("mtime") or entry.get("updated") or entry.get("LastModified") or entry.get("created")
    return int(stamp.timestamp() * 1e9) if isinstance(stamp, datetime) else 0
