"""Names of the events on the timeline, and the family and color of a name.

A name is a number: a string of the trace, or, from len(strings) on, one of the additional texts: steps with
their number (`train 131`) and the names of derived events.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.planes import HOST_THREADS
from tb_tpuprof.analysis.events.text_cache import text_cache
from tb_tpuprof.trace.strings import Strings
from tb_tpuprof.trace.trace import Trace

Int32s = npt.NDArray[np.int32]
_COLLECTIVE = re.compile(
    r"all-?reduce|all-?gather|all-?to-?all|reduce-?scatter|collective|nccl|rccl|^send\b|^recv\b",
    re.IGNORECASE,
)
_COPY = re.compile(r"^(memcpy|memset|copy)", re.IGNORECASE)
_TF_DATA = ("Iterator::", "IteratorGetNext", "InstantiatedCapturedFunction", "tf_data", "tf.data")
_N_COLORS = 1 << 8


class Family(IntEnum):
    """Kinds of events with colors of their own."""

    OTHER = 0
    PYTHON = 1
    INPUT = 2
    XLA_OP = 3
    KERNEL = 4
    MEMCPY = 5
    COLLECTIVE = 6
    RUNTIME = 7
    STEP = 8
    MODULE = 9


# Families of whole lines, by the line's kind; events of other lines get theirs by name.
FAMILY_OF_KIND = {
    "steps": Family.STEP,
    "modules": Family.MODULE,
    "scope": Family.OTHER,
    "source": Family.OTHER,
    "launches": Family.RUNTIME,
    "pool": Family.RUNTIME,
    "overhead": Family.OTHER,
    "exposed": Family.COLLECTIVE,
}


@dataclass(frozen=True)
class Names:
    """Names of a trace's events by number. `of_metadata` by metadata row; events in `own_event` have names of
    their own.
    """

    strings: Strings
    more: tuple[str, ...]
    of_metadata: Int32s
    family_of_metadata: npt.NDArray[np.uint8]
    own_event: Int32s
    own_name: Int32s
    has_own: npt.NDArray[np.bool_]

    def text(self, name: int) -> str:
        """The text of a name."""
        text = self._text_cache.get(name)
        if text is None:
            n = len(self.strings)
            text = self._text_cache[name] = self.more[name - n] if name >= n else self.strings.get(name)
        return text

    @cached_property
    def _text_cache(self) -> dict[int, str]:
        """Texts already looked up: successive windows request mostly the same ones."""
        return {}

    @property
    def n_names(self) -> int:
        """Number of names."""
        return len(self.strings) + len(self.more)

    def of_events(self, events: npt.NDArray[np.integer], metadata: Int32s) -> Int32s:
        """Names of events of the file; `metadata` is the metadata row of each."""
        names: Int32s = self.of_metadata[metadata]
        renamed = np.flatnonzero(self.has_own[metadata])
        if len(renamed):
            position = np.searchsorted(self.own_event, events[renamed].astype(np.int32))
            position = np.minimum(position, len(self.own_event) - 1)
            has_name = self.own_event[position] == events[renamed]
            names[renamed[has_name]] = self.own_name[position[has_name]]
        return names

    def texts(self, names: list[int]) -> list[str]:
        """The texts of names."""
        cache = self._text_cache
        return [cache.get(name) or self.text(name) for name in names]

    def looks(self, names: npt.NDArray[np.integer]) -> tuple[list[str], npt.NDArray[np.uint8]]:
        """The texts of names, and their color keys."""
        texts, keys = self._look_cache
        new = names[texts[names] == None]  # noqa: E711
        if len(new):
            found = self.texts(new.tolist())
            keys[new] = [color_key(text) for text in found]
            texts[new] = found  # last, for threads that see them
        return texts[names].tolist(), keys[names]

    @cached_property
    def _look_cache(self) -> tuple[npt.NDArray[np.object_], npt.NDArray[np.uint8]]:
        """Texts and color keys by name, None until they are looked up."""
        return np.empty(self.n_names, np.object_), np.zeros(self.n_names, np.uint8)


def names_of(trace: Trace, more: tuple[str, ...]) -> Names:
    """Names of a trace's events; the texts of steps come before `more`, which begins at `first_more(names,
    more)`.
    """
    event, label, texts = step_labels(trace)
    has_own = np.zeros(len(trace.metadata), np.bool_)
    has_own[trace.events["metadata"][event]] = True
    label = label + np.int32(len(trace.strings))
    return Names(
        trace.strings,
        (*texts, *more),
        trace.event_names,
        families(trace),
        event,
        label.astype(np.int32),
        has_own,
    )


def first_more(names: Names, more: tuple[str, ...]) -> int:
    """The number of the first of the texts `more` passed to `names_of`."""
    return names.n_names - len(more)


@text_cache
def color_key(name: str) -> int:
    """A small number that is the same for a name in all runs and hosts: the low 8 bits of its CRC-32."""
    return zlib.crc32(name.encode("utf-8", "surrogatepass")) % _N_COLORS


@once
def step_labels(trace: Trace) -> tuple[Int32s, Int32s, tuple[str, ...]]:
    """Events with a step number: (event ascending, code of its text, texts such as `train 131`)."""
    owner, number = trace.event_stats.ints("step_num")
    owner, first = np.unique(owner, return_index=True)
    if not len(owner):
        return owner.astype(np.int32), owner.astype(np.int32), ()
    name = trace.event_names[trace.events["metadata"][owner]]
    pairs = zip(name.tolist(), number[first].tolist(), strict=True)
    of_name = {i: trace.strings.get(i) for i in np.unique(name).tolist()}
    texts = [of_name[i] if of_name[i] == str(value) else f"{of_name[i]} {value}" for i, value in pairs]
    code_of_text = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    return (
        owner.astype(np.int32),
        np.array([code_of_text[text] for text in texts], np.int32),
        tuple(code_of_text),
    )


@once
def families(trace: Trace) -> npt.NDArray[np.uint8]:
    """Family of each metadata row, by its plane and name."""
    planes = [_plane_family(name) for name in trace.plane_names]
    hlo = _has_hlo(trace)
    pairs = zip(trace.metadata["plane"].tolist(), trace.event_names.tolist(), hlo.tolist(), strict=True)
    return np.array(
        [_family(planes[plane], trace.strings.get(name), is_op) for plane, name, is_op in pairs], np.uint8
    )


def _has_hlo(trace: Trace) -> npt.NDArray[np.bool_]:
    """Mark the metadata rows whose events are XLA operations: they have the stat `hlo_op`."""
    result = np.zeros(len(trace.metadata), np.bool_)
    result[trace.events["metadata"][trace.event_stats.texts("hlo_op").owner]] = True
    return result


def _plane_family(plane: str) -> Family:
    if plane.startswith(("/device:GPU", "/device:MTIA", "/device:XPU", "/device:HPU")):
        return Family.KERNEL
    if plane.startswith("/device:TPU"):
        return Family.XLA_OP
    return Family.RUNTIME if plane.startswith((HOST_THREADS, "/host:")) else Family.OTHER


def _family(plane: Family, name: str, is_hlo_op: bool) -> Family:
    if plane == Family.KERNEL or plane == Family.XLA_OP or is_hlo_op:
        if _COLLECTIVE.search(name):
            return Family.COLLECTIVE
        return Family.MEMCPY if _COPY.match(name) else Family.XLA_OP if is_hlo_op else plane
    if name.startswith("$") or ".py:" in name:
        return Family.PYTHON
    if name.startswith(_TF_DATA):
        return Family.INPUT
    if plane == Family.OTHER:
        return plane
    return Family.MEMCPY if _COPY.match(name) else plane
