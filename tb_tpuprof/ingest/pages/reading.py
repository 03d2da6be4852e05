"""A run's folder, or one file → the pages that an older profiler saved there.

Pages are recognized by their names (`HOST.overview_page.json`); nothing else is read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.errors import StorageError, TraceFormatError
from tb_tpuprof.ingest.pages import messages, trees
from tb_tpuprof.ingest.pages.data_tables import page_of_tables
from tb_tpuprof.ingest.pages.page import SavedPage
from tb_tpuprof.ingest.storage.files import filesystem, is_url, read_file, storage_errors
from tb_tpuprof.ingest.storage.kinds import page_of_name
from tb_tpuprof.native import fields

_MOST_BYTES = 64 * 2**20
_MOST_FILES = 1000
_REMEDY = "Copy the file again in binary mode, or profile the job again."
_JSON: dict[str, Callable[[str, Any], SavedPage]] = {
    "overview_page": page_of_tables,
    "input_pipeline": page_of_tables,
    "pod_viewer": trees.pod_viewer,
    "op_profile": trees.op_profile,
    "memory_profile": trees.memory_profile,
}
_MESSAGES: dict[str, Callable[[str, npt.NDArray[np.uint8]], SavedPage]] = {
    "overview_page": messages.overview_page,
    "input_pipeline": messages.input_pipeline,
    "tensorflow_stats": messages.tensorflow_stats,
    "kernel_stats": messages.kernel_stats,
}
_ORDER = {page: i for i, page in enumerate(dict.fromkeys((*_MESSAGES, *_JSON)))}


@dataclass(frozen=True)
class PageFile:
    """A page's file: its host, the page's name, and the path."""

    host: str
    page: str
    path: str


def page_files(path: str, hosts: tuple[str, ...]) -> list[PageFile]:
    """The pages of these hosts in a folder, or the one page that the path names, in order of host and name.
    Raises StorageError if the folder cannot be read.
    """
    named = page_of_name(path)
    paths = [path] if named else _paths(path)
    listed = [
        PageFile(page.host, page.page, one) for one in paths if (page := page_of_name(one)) and page.is_read
    ]
    order = {host: i for i, host in enumerate(hosts)}
    chosen = [file for file in listed if file.host in order]
    return sorted(chosen, key=lambda file: (order[file.host], _ORDER[file.page], file.path))[:_MOST_FILES]


def _paths(folder: str) -> list[str]:
    with storage_errors(folder):
        if is_url(folder):
            fs, inner = filesystem(folder)
            names = [os.path.basename(str(name)) for name in fs.ls(inner, detail=False)]
        else:
            names = os.listdir(folder)
    return [f"{folder}/{name}" if is_url(folder) else os.path.join(folder, name) for name in names]


def read_page(file: PageFile) -> SavedPage:
    """What a page states. Raises StorageError, or TraceFormatError for a file that is damaged or no page."""
    data, _ = read_file(file.path)
    if not len(data):
        raise TraceFormatError(file.path, 0, "is empty (0 bytes)", _REMEDY)
    if len(data) > _MOST_BYTES:
        raise TraceFormatError(
            file.path, -1, f"has more than {_MOST_BYTES // 2**20} MiB, which no page has", _REMEDY
        )
    if data[:1].tobytes() in (b"{", b"[") and file.page in _JSON:
        return _JSON[file.page](file.page, _parsed(file, data))
    if file.page not in _MESSAGES:
        raise TraceFormatError(file.path, 0, "is not JSON, as this page is", _REMEDY)
    _, bad = fields(data, 0, len(data))
    if bad >= 0:
        raise TraceFormatError(file.path, int(bad), "is cut off or damaged", _REMEDY)
    return _MESSAGES[file.page](file.page, data)


def _parsed(file: PageFile, data: npt.NDArray[np.uint8]) -> Any:
    try:
        return json.loads(data.tobytes().decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        raise TraceFormatError(file.path, -1, "is cut off, damaged or not JSON", _REMEDY) from None


def pages_of(path: str, hosts: tuple[str, ...]) -> tuple[list[tuple[PageFile, SavedPage]], list[str]]:
    """(the pages of these hosts, what is wrong with those that cannot be read)."""
    pages, failures = [], []
    for file in page_files(path, hosts):
        try:
            pages.append((file, read_page(file)))
        except (StorageError, TraceFormatError) as error:
            failures.append(error.message)
    return pages, failures
