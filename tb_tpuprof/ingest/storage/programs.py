"""A trace's HLO: in stats of the plane `/host:metadata`, and in `*.hlo_proto.pb` files next to the trace."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tb_tpuprof.errors import StorageError
from tb_tpuprof.ingest.storage.file_names import HLO_SUFFIX, NO_MODULE
from tb_tpuprof.ingest.storage.files import filesystem, is_url, read_file, storage_errors
from tb_tpuprof.trace.hlo_programs import Program, Programs, program_of
from tb_tpuprof.trace.trace import Trace

if TYPE_CHECKING:
    from tb_tpuprof.trace.hlo import HloModule

STATS = ("Hlo Proto", "HLO Proto", "hlo_proto")
_MAX_FILES = 10_000


def programs_of(trace: Trace) -> Programs:
    """Programs of the trace itself, then those in files next to it whose ids the trace lacks."""
    in_trace = list(_in_trace(trace))
    known_ids = {program.program_id for program in in_trace}
    folder = (
        trace.info.path.rpartition("/")[0] if is_url(trace.info.path) else os.path.dirname(trace.info.path)
    )
    in_folder: list[Program] = []
    with contextlib.suppress(StorageError):  # the trace's own programs can still be read
        in_folder = (
            [program for program in programs_in(folder) if program.program_id not in known_ids]
            if folder
            else []
        )

    # Not the trace, which keeps its programs: in such a circle it would stay until Python looks for circles.
    source, path = trace.source, trace.info.path

    def read(program: Program) -> HloModule:
        if program.path:
            return read_program(program)
        data = source.block(program.position, program.size_bytes)
        return _module(data, f"{path}: {program.title}", program.program_id)

    return Programs([*in_trace, *in_folder], read)


def _in_trace(trace: Trace) -> Iterator[Program]:
    seen: set[tuple[int, int]] = set()
    for key in STATS:
        for owner, position, size in trace.metadata_stats.spans(key):
            if (owner, position) not in seen and size > 0:
                seen.add((owner, position))
                title = trace.strings.get(int(trace.metadata["name"][owner]))
                yield program_of(title, int(trace.metadata["id"][owner]), size, position)


def programs_in(folder: str) -> list[Program]:
    """Programs whose HLO has a file of its own in a folder, by name. Empty if the folder cannot be read."""
    files: list[tuple[str, int]] = []
    with storage_errors(folder):
        if is_url(folder):
            fs, inner = filesystem(folder)
            files = [
                (os.path.basename(entry["name"]), int(entry.get("size") or 0))
                for entry in fs.ls(inner, detail=True)
            ]
        else:
            with os.scandir(folder) as entries:
                files = [
                    (entry.name, entry.stat().st_size)
                    for entry in entries
                    if entry.name.endswith(HLO_SUFFIX) and entry.is_file()
                ]
    hlo_files = sorted((name, size) for name, size in files if name.endswith(HLO_SUFFIX) and size > 0)[
        :_MAX_FILES
    ]
    return [
        program_of_file(f"{folder}/{name}", size)
        for name, size in hlo_files
        if name != NO_MODULE + HLO_SUFFIX
    ]


def program_of_file(path: str, size_bytes: int) -> Program:
    """The program whose HLO is in a file."""
    return program_of(os.path.basename(path).removesuffix(HLO_SUFFIX), None, size_bytes, path=path)


def read_program(program: Program) -> HloModule:
    """The module of a program that has a file of its own. Raises StorageError or TraceFormatError."""
    data, _ = read_file(program.path)
    return _module(data, program.path, program.program_id)


def _module(data: bytes | npt.NDArray[np.uint8], path: str, program_id: int) -> HloModule:
    # Imported here: a process that reads only events starts sooner without it.
    from tb_tpuprof.ingest.hlo.module import decode_hlo

    return decode_hlo(data, path, program_id)
