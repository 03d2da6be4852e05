"""Results of analyses of one host in the user's cache folder, so that 256 hosts need not be read again.

    <cache folder>/results/<key>.tpr
        8 bytes   "TPURSLT" and a version byte
        4 bytes   CRC-32 of the rest
        then for each analysis of the file
        4 bytes   length of the packed result, 0 for none
        …         the packed result

The key is a hash of path, size and time of the trace file, the analyses' names, the code of this package and
the user's settings. A packed result is a pickle that names only frozen dataclasses of `analysis/` and
`trace/` and NumPy arrays, so that reading a forged one runs no code. Results that are larger, made of other
classes, damaged, or not of the analysis's type are computed again.
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
import logging
import os
import pickle
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

from tb_tpuprof.ingest.storage.cache_folder import cache_folder, is_private, trim, write_whole
from tb_tpuprof.ingest.storage.files import FileState, is_url
from tb_tpuprof.native import IS_COMPILED
from tb_tpuprof.settings import peaks_file
from tb_tpuprof.trace.trace import Trace

if TYPE_CHECKING:
    from typing_extensions import Buffer

VERSION = 3
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
_log = logging.getLogger(__name__)
Function = Callable[[Trace], Any]


def travels(function: Callable[..., Any]) -> bool:
    """Whether an analysis can be named in another process: those of `analysis/` can, a lambda cannot."""
    module, name = getattr(function, "__module__", ""), getattr(function, "__qualname__", "")
    return module.startswith(_ANALYSES) and name.isidentifier()


def pack(result: object) -> bytes | None:
    """A result as bytes; None if it is too large or contains anything but dataclasses, arrays and plain
    values.
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
    """The results of analyses of a file in that state that were saved together. Empty without usable ones;
    a damaged file is removed.
    """
    path = _path(state, functions)
    try:
        with open(path, "rb") as file:
            if not is_private(os.fstat(file.fileno())):
                return {}
            data = file.read()
    except OSError:
        return {}
    try:
        results = _unpacked(data, functions)
    except Exception as error:  # damaged pickles raise anything
        _log.warning("The cached results %s are damaged (%s) and are computed again.", path, error)
        with contextlib.suppress(OSError):
            path.unlink()
        return {}
    with contextlib.suppress(OSError):
        os.utime(path)
    return results


def _unpacked(data: bytes, functions: Sequence[Function]) -> dict[Function, Any]:
    """The results in a file's bytes. Raises ValueError, struct.error, or whatever a damaged pickle raises."""
    position = len(_MAGIC) + _SIZE.size
    if data[: len(_MAGIC)] != _MAGIC or _SIZE.unpack_from(data, len(_MAGIC))[0] != zlib.crc32(
        data[position:]
    ):
        raise ValueError("wrong checksum")
    results: dict[Function, Any] = {}
    for function in functions:
        (size,) = _SIZE.unpack_from(data, position)
        position += _SIZE.size + size
        if size:
            result = unpack(data[position - size : position])
            if not is_result_of(function, result):
                raise ValueError(f"{type(result).__name__} is not what {function.__name__} returns")
            results[function] = result
    return results


def is_result_of(function: Function, result: object) -> bool:
    """Whether a result has the type that the analysis declares. Types of elements are not checked."""
    return isinstance(result, _declared_types(function))


@cache
def _declared_types(function: Function) -> tuple[type, ...]:
    hint = get_type_hints(function)["return"]
    alternatives = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    return tuple(get_origin(one) or one for one in alternatives)


def save(state: FileState, packed: Mapping[Function, bytes | None]) -> None:
    """Save packed results of analyses together. Does nothing if the folder cannot be written or is full."""
    path = _path(state, tuple(packed))
    body = b"".join(_SIZE.pack(len(data or b"")) + (data or b"") for data in packed.values())
    content = _MAGIC + _SIZE.pack(zlib.crc32(body)) + body
    with contextlib.suppress(OSError):
        write_whole(path, [content], len(content))
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
    """A hash of the code that computes results: those of another version are computed again."""
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
    """Refuses large results before they are complete."""

    def write(self, data: Buffer, /) -> int:
        """Called for parts of some 64 kB, and for large arrays. Raises PicklingError."""
        if self.tell() + memoryview(data).nbytes > MAX_RESULT_BYTES:
            raise pickle.PicklingError("too large")
        return super().write(data)


class _Packer(pickle.Pickler):
    """Refuses traces, and all classes that the unpacker refuses. Members of enumerations are packed by value:
    some versions of Python (3.11.2) name them through `getattr`, which could name anything.
    """

    def reducer_override(self, obj: Any) -> Any:
        """Called for everything but plain values."""
        if isinstance(obj, Trace):
            raise pickle.PicklingError("a trace does not travel")
        if isinstance(obj, enum.Enum):
            return type(obj), (obj.value,)
        if isinstance(obj, type) and not is_allowed(obj.__module__, obj.__qualname__):
            raise pickle.PicklingError(f"{obj.__module__}.{obj.__qualname__} does not travel")
        return NotImplemented


class _Unpacker(pickle.Unpickler):
    """Accepts only this package's dataclasses and NumPy's arrays."""

    def find_class(self, module: str, name: str) -> Any:
        """The class or function that a pickle names. Raises UnpicklingError for others than `is_allowed`."""
        return _found(module, name)


@cache
def _found(module: str, name: str) -> Any:
    """The class or function of that name, if it is allowed. Raises UnpicklingError."""
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
