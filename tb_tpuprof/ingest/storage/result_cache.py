"""Results of analyses of one host kept in the user's cache folder, so that 256 hosts need not be read again
to look at them again.

    <cache folder>/results/<key>.tpr      7 bytes "TPURSLT" and a version byte, then for each analysis of the
    file
                                          4 bytes length of the packed result, 0 for none, and that

The key is a hash of path, size and time of the trace file, the analyses' names, the code of this package and
the user's settings. A packed result is a pickle that only names frozen dataclasses of `analysis/` and
`trace/` and NumPy arrays: reading one that somebody else has written runs no code of his. What is too large,
or is not made of these alone, is computed again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import hashlib
import importlib
import io
import itertools
import json
import os
import pickle
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tb_tpuprof.ingest.storage.cache_folder import cache_folder, trim, write_whole
from tb_tpuprof.ingest.storage.files import FileState, is_url
from tb_tpuprof.native import IS_COMPILED
from tb_tpuprof.settings import peaks_file
from tb_tpuprof.trace.trace import Trace

if TYPE_CHECKING:
    from typing_extensions import Buffer

VERSION = 2
_MAGIC = b"TPURSLT" + bytes([VERSION])
_SIZE = struct.Struct("<I")
MAX_RESULT_BYTES = 4 * 2**20
LIMIT_BYTES = 512 * 2**20
_SAVES_PER_TRIM = 256
_OWN = ("tb_tpuprof.analysis.", "tb_tpuprof.trace.")
_ANALYSES = "tb_tpuprof.analysis."
_BUILTINS = ("frozenset", "set", "slice", "complex", "bytearray", "range")
_NUMPY = ("_reconstruct", "ndarray", "dtype", "scalar", "_frombuffer")
_saves = itertools.count(1)
Function = Callable[[Trace], Any]


def travels(function: Callable[..., Any]) -> bool:
    """Whether an analysis can be named in another process: those of `analysis/` can, a lambda cannot."""
    module, name = getattr(function, "__module__", ""), getattr(function, "__qualname__", "")
    return module.startswith(_ANALYSES) and name.isidentifier()


def pack(result: object) -> bytes | None:
    """A result as bytes; None where it is too large or is not made of dataclasses, arrays and plain values
    alone.
    """
    out = _Bounded()
    try:
        _Packer(out, protocol=5).dump(result)
    except (pickle.PicklingError, TypeError, AttributeError, RecursionError):
        return None
    return out.getvalue()


def unpack(data: bytes) -> Any:
    """The result of `pack`. Raises UnpicklingError for bytes that name anything else."""
    return _Unpacker(io.BytesIO(data)).load()


def load(state: FileState, functions: Sequence[Function]) -> dict[Function, Any]:
    """The results of analyses of a file in that state that were saved together; empty where there are none
    that can be used.
    """
    path = _path(state, functions)
    try:
        with open(path, "rb") as file:
            data = file.read()
        if data[: len(_MAGIC)] != _MAGIC:
            return {}
        found, at = {}, len(_MAGIC)
        for function in functions:
            (size,) = _SIZE.unpack_from(data, at)
            at += _SIZE.size + size
            if size:
                found[function] = unpack(data[at - size : at])
        os.utime(path)
    except Exception:  # a damaged pickle raises whatever it likes; then the result is computed
        return {}
    return found


def save(state: FileState, packed: Mapping[Function, bytes | None]) -> None:
    """Keep packed results of analyses together. A folder that cannot be written is no error."""
    path = _path(state, tuple(packed))
    sized = [_SIZE.pack(len(data or b"")) + (data or b"") for data in packed.values()]
    with contextlib.suppress(OSError):
        write_whole(path, [_MAGIC + b"".join(sized)])
        if next(_saves) % _SAVES_PER_TRIM == 0:
            trim(path.parent, LIMIT_BYTES)


def _path(state: FileState, functions: Sequence[Function]) -> Path:
    where = state.path if is_url(state.path) else os.path.abspath(state.path)
    names = [f"{function.__module__}.{function.__qualname__}" for function in functions]
    settings = peaks_file()
    key = json.dumps(
        [
            VERSION,
            where,
            state.size_bytes,
            state.mtime_ns,
            names,
            code_fingerprint(),
            settings.devices,
            settings.problem,
        ]
    )
    return cache_folder("results") / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.tpr"


@cache
def code_fingerprint() -> str:
    """A hash of the code that results are made by: another version's are computed anew."""
    package = str(Path(__file__).resolve().parents[2])
    found = hashlib.sha256(b"compiled" if IS_COMPILED else b"plain")
    paths = [os.path.join(package, name) for name in ("settings.py", "units.py")]
    for name in ("analysis", "ingest", "native", "trace"):
        paths += sorted(
            f"{folder}/{file}"
            for folder, _, files in os.walk(f"{package}/{name}")
            for file in files
            if file.endswith(".py")
        )
    for path in paths:
        with contextlib.suppress(OSError), open(path, "rb") as file:
            found.update(path[len(package) :].encode() + b"\0" + file.read())
    return found.hexdigest()


class _Bounded(io.BytesIO):
    """Refuses what is too large before all of it is there."""

    def write(self, data: Buffer, /) -> int:
        """Called for parts of some 64 kB, and for large arrays. Raises PicklingError."""
        if self.tell() + memoryview(data).nbytes > MAX_RESULT_BYTES:
            raise pickle.PicklingError("too large")
        return super().write(data)


class _Packer(pickle.Pickler):
    """Refuses what must not travel: a trace, and whatever the unpacker would not take."""

    def reducer_override(self, obj: Any) -> Any:
        """Called for all that is no plain value."""
        if isinstance(obj, Trace):
            raise pickle.PicklingError("a trace does not travel")
        if isinstance(obj, type) and not is_allowed(obj.__module__, obj.__qualname__):
            raise pickle.PicklingError(f"{obj.__module__}.{obj.__qualname__} does not travel")
        return NotImplemented


class _Unpacker(pickle.Unpickler):
    """Takes dataclasses of ours and NumPy's arrays."""

    def find_class(self, module: str, name: str) -> Any:
        """The class or function that a pickle names. Raises UnpicklingError where it may not name it."""
        return _found(module, name)


@cache
def _found(module: str, name: str) -> Any:
    """What may be named by that name. Raises UnpicklingError, which is not kept."""
    if not is_allowed(module, name):
        raise pickle.UnpicklingError(f"{module}.{name} is not allowed in a result")
    return getattr(importlib.import_module(module), name)


def is_allowed(module: str, name: str) -> bool:
    """Whether a result may name that class or function."""
    if module == "builtins":
        return name in _BUILTINS
    if module.split(".")[0] == "numpy":
        return name in _NUMPY
    if not module.startswith(_OWN) or not name.isidentifier():
        return False
    found = getattr(importlib.import_module(module), name, None)
    is_record = isinstance(found, type) and (
        dataclasses.is_dataclass(found) or issubclass(found, enum.Enum | tuple)
    )
    return is_record and found is not Trace
