"""Pieces of a stream → one XSpace, by the protobuf runtime alone: what the reader's own merging is compared
with. Also random pieces that have planes, lines and metadata in common, under different ids.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

from tb_tpuprof.ingest.xspace.counter_lines import COUNTER_LINE
from tb_tpuprof.ingest.xspace.messages import xspace_class

DANGLING = 10**17  # an id that nothing has
Key = tuple[Any, ...]


class _Ids:
    """Entries of one plane of the whole: the first of equal ids stays, others become the least free
    number.
    """

    def __init__(self) -> None:
        self.entries: dict[Key, int] = {}
        self.messages: dict[Key, Any] = {}

    def add(self, keyed: list[tuple[Key, int, Any]]) -> dict[int, Key]:
        """Entries of a piece; returns the key that each of its ids stands for."""
        n_before: Counter[Key] = Counter()
        keys = {}
        for content, own_id, message in keyed:
            key = (content, n_before[content])
            n_before[content] += 1
            self.entries.setdefault(key, own_id)
            self.messages.setdefault(key, message)
            keys[own_id] = key
        return keys

    def numbers(self) -> dict[Key, int]:
        """The id of each entry in the whole."""
        used, ids = set(self.entries.values()), {}
        free = (i for i in range(1, 2 * len(self.entries) + 2) if i not in used)
        taken: set[int] = set()
        for key, own_id in self.entries.items():
            ids[key] = next(free) if own_id in taken else own_id
            taken.add(own_id)
        return ids


def merged_space(pieces: Sequence[bytes]) -> bytes:
    """The XSpace that holds what all pieces hold."""
    spaces = [xspace_class().FromString(piece) for piece in pieces]
    whole = xspace_class()()
    parts: dict[Key, list[Any]] = {}
    for space in spaces:
        n_before: Counter[bytes] = Counter()
        for plane in space.planes:
            parts.setdefault((plane.name, n_before[plane.name]), []).append(plane)
            n_before[plane.name] += 1
        for field in ("hostnames", "errors", "warnings"):
            getattr(whole, field).extend(
                text for text in dict.fromkeys(getattr(space, field)) if text not in getattr(whole, field)
            )
    for planes in parts.values():
        _merge_planes(whole.planes.add(id=planes[0].id, name=planes[0].name), planes)
    data: bytes = whole.SerializeToString()
    return data


def _merge_planes(whole: Any, planes: list[Any]) -> None:
    stats, metadata = _Ids(), _Ids()
    stat_keys, metadata_keys = [], []
    for plane in planes:
        names = {entry.key: entry.value.name for entry in plane.stat_metadata}
        stat_keys.append(stats.add([((e.value.name,), e.key, e) for e in plane.stat_metadata]))
        metadata_keys.append(
            metadata.add(
                [(_content(e.value, names), e.key, (e, len(stat_keys) - 1)) for e in plane.event_metadata]
            )
        )
    stat_ids, metadata_ids = stats.numbers(), metadata.numbers()
    in_whole = [{own: stat_ids[key] for own, key in keys.items()} for keys in stat_keys]
    for key, entry in stats.messages.items():
        added = whole.stat_metadata.add(key=stat_ids[key])
        added.value.CopyFrom(entry.value)
    for key, (entry, piece) in metadata.messages.items():
        added = whole.event_metadata.add(key=metadata_ids[key])
        added.value.CopyFrom(entry.value)
        _renumber(added.value.stats, in_whole[piece])
    last: dict[bytes, int] = {}
    for piece, plane in enumerate(planes):
        names = {entry.key: entry.value.name for entry in plane.stat_metadata}
        last |= {
            names[stat.metadata_id]: piece
            for stat in plane.stats
            if stat.metadata_id in names and stat.WhichOneof("value")
        }
    for piece, plane in enumerate(planes):
        names = {entry.key: entry.value.name for entry in plane.stat_metadata}
        kept = [stat for stat in plane.stats if last.get(names.get(stat.metadata_id), -1) == piece]
        for stat in kept:
            whole.stats.add().CopyFrom(stat)
        _renumber(whole.stats[len(whole.stats) - len(kept) :], in_whole[piece])
    lines: dict[int, Any] = {}
    clocks: dict[int, int] = {}  # the earliest of each line
    for line in (line for plane in planes for line in plane.lines if line.events):
        clocks[line.id] = min(clocks.get(line.id, line.timestamp_ns), line.timestamp_ns)
    for piece, plane in enumerate(planes):
        event_ids = {own: metadata_ids[key] for own, key in metadata_keys[piece].items()}
        for line in plane.lines:
            _merge_line(whole, (lines, clocks), line, event_ids, in_whole[piece])


def _merge_line(
    plane: Any,
    known: tuple[dict[int, Any], dict[int, int]],
    line: Any,
    event_ids: dict[int, int],
    stat_ids: dict[int, int],
) -> None:
    lines, clocks = known
    whole = lines.get(line.id)
    if whole is None:
        whole = lines[line.id] = plane.lines.add(
            id=line.id, name=line.name, display_id=line.display_id, display_name=line.display_name
        )
        whole.timestamp_ns = clocks.get(line.id, line.timestamp_ns)
    later_ps = (line.timestamp_ns - whole.timestamp_ns) * 1000
    for event in line.events:
        added = whole.events.add()
        added.CopyFrom(event)
        added.metadata_id = event_ids.get(event.metadata_id, DANGLING)
        if event.WhichOneof("data") != "num_occurrences":
            added.offset_ps = event.offset_ps + later_ps
        _renumber(added.stats, stat_ids)


def _renumber(stats: Any, ids: dict[int, int]) -> None:
    for stat in stats:
        stat.metadata_id = ids.get(stat.metadata_id, DANGLING)
        if stat.WhichOneof("value") == "ref_value":
            stat.ref_value = ids.get(stat.ref_value, DANGLING)


def _content(metadata: Any, names: dict[int, bytes]) -> Key:
    """All that makes metadata what they are, without ids."""
    rows = []
    for stat in metadata.stats:
        field, name = stat.WhichOneof("value"), names.get(stat.metadata_id)
        value: Any = getattr(stat, field) if field else None
        if name is None or field is None or (field == "ref_value" and value not in names):
            continue
        if field == "ref_value":
            field, value = "str_value", names[value]
        if field == "double_value":
            value = struct.pack("<d", value)
        rows.append((name, field, value))
    return (metadata.name, metadata.display_name, tuple(sorted(rows, key=lambda row: row[0])))


NAMES = [b"dot", b"add", b"tanh", b"\xff\xfe", b""]
STATS = [b"_r", b"step_num", b"hlo_op", b"note", b"queue_id", b"flops", b"dot"]
PLANES = [b"/host:CPU", b"/device:TPU:0", b"/device:GPU:0", b"Task Environment"]


@st.composite
def piece(draw: st.DrawFn) -> bytes:
    """A random XSpace of few names, so that pieces have much in common; its ids are its own."""
    space = xspace_class()()
    for name in draw(st.lists(st.sampled_from(PLANES), min_size=1, max_size=3)):
        _fill(draw, space.planes.add(id=draw(st.integers(0, 5)), name=name))
    space.hostnames.extend(draw(st.lists(st.sampled_from([b"a", b"b"]), max_size=2)))
    space.warnings.extend(draw(st.lists(st.sampled_from([b"w", b"v"]), max_size=1)))
    data: bytes = space.SerializeToString()
    return data


def pieces() -> st.SearchStrategy[list[bytes]]:
    """A few pieces, three at least half of the time."""
    return st.one_of(st.lists(piece(), min_size=3, max_size=4), st.lists(piece(), min_size=1, max_size=3))


def _fill(draw: st.DrawFn, plane: Any) -> None:
    stat_ids = draw(st.lists(st.integers(1, 12), unique=True, max_size=6))
    for key in stat_ids:
        plane.stat_metadata.add(key=key, value={"id": key, "name": draw(st.sampled_from(STATS))})
    ids = draw(st.lists(st.integers(-1, 6), unique=True, max_size=4))
    for key in ids:
        entry = plane.event_metadata.add(key=key)
        entry.value.name = draw(st.sampled_from(NAMES))
        entry.value.display_name = draw(st.sampled_from([b"", b"", b"short"]))
        _add_stats(draw, entry.value.stats, stat_ids)
    _add_stats(draw, plane.stats, stat_ids)
    for line_id in draw(st.lists(st.integers(0, 3), max_size=3)):
        line = plane.lines.add(id=line_id, timestamp_ns=draw(st.integers(0, 40)))
        name = COUNTER_LINE.encode() if line_id == 3 else draw(st.sampled_from([b"python", b"tf_Compute/1"]))
        line.name, line.display_id = name, line_id
        for _ in range(draw(st.integers(0, 5))):
            event = line.events.add(metadata_id=draw(st.sampled_from([*ids, 99])))
            event.duration_ps = draw(st.integers(0, 9000))
            if draw(st.integers(0, 5)):
                event.offset_ps = draw(st.integers(0, 20000))
            else:
                event.num_occurrences = draw(st.integers(1, 9))
            _add_stats(draw, event.stats, stat_ids)


def _add_stats(draw: st.DrawFn, stats: Any, ids: list[int]) -> None:
    values: dict[str, Callable[[], Any]] = {
        "double_value": lambda: draw(st.sampled_from([0.5, -0.0, 0.0])),
        "uint64_value": lambda: draw(st.sampled_from([1, 2**63 + 5])),
        "int64_value": lambda: draw(st.sampled_from([1, 2, -(2**40)])),
        "str_value": lambda: draw(st.sampled_from(NAMES)),
        "bytes_value": lambda: draw(st.sampled_from([b"", b"bytes", b"other"])),
        "ref_value": lambda: draw(st.sampled_from(ids)),
    }
    for _ in range(draw(st.integers(0, 2)) if ids else 0):
        stat = stats.add(metadata_id=draw(st.sampled_from(ids)))
        kind = draw(st.sampled_from([*values, ""]))
        if kind:
            setattr(stat, kind, values[kind]())
