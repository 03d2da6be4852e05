"""Arguments of a Chrome trace's events → tables of stats, with the names and kinds of XPlanes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.ingest.chrome.events import AMD_MEMBERS, RawEvents, Texts
from tb_tpuprof.ingest.chrome.kineto import Stat, listed_devices
from tb_tpuprof.ingest.chrome.lines import Layout
from tb_tpuprof.ingest.storage.json_source import shown
from tb_tpuprof.trace import schema
from tb_tpuprof.trace.table import Table

Array = npt.NDArray[Any]
# Stats whose values are texts. Elsewhere a text that is a number becomes one (trace.json has only texts).
TEXT_STATS = frozenset(
    (
        "graph_type",
        "step_name",
        "tf_op",
        "hlo_op",
        "hlo_module",
        "hlo_category",
        "_ipl_stage_name",
        "_ipl_stage_cat",
        "kernel_details",
        "shape",
        "source",
        "long_name",
        "shape_with_layout",
        "deduplicated_name",
    )
)
# Arguments that XPlanes store with an operation's name.
_NAME_ARGUMENTS = frozenset(
    (
        "hlo_category",
        "tf_op",
        "flops",
        "model_flops",
        "bytes_accessed",
        "raw_bytes_accessed",
        "source",
        "program_id",
        "symbol_id",
        "deduplicated_name",
        "shape_with_layout",
    )
)
_MODULE = re.compile(r"\((\d{1,20})\)$")
_INTEGER = re.compile(r"-?\d{1,20}")
_REAL = re.compile(r"-?\d+\.\d+(e[+-]?\d+)?|-?\d+e[+-]?\d+")
_MAX_LIFTED = 200_000


@dataclass(frozen=True)
class StatRows:
    """Rows of STATS, with text ids as keys."""

    owner: Array
    key: Array
    kind: Array
    value: Array

    @classmethod
    def none(cls) -> StatRows:
        """No rows."""
        return cls(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.uint8), np.empty(0, np.int64))

    @classmethod
    def of(cls, raw: RawEvents, row_of_raw: Array, end_raw: Array, names: Sequence[str]) -> StatRows:
        """The arguments with these names, of the begins and the ends of the events."""
        row = row_of_raw.copy()
        ended = np.flatnonzero(end_raw >= 0)
        row[end_raw[ended]] = ended
        values = raw.values
        keys = [raw.texts.find(name) for name in names if name != "long_name"]
        is_selected = np.isin(values["key"], keys) & (values["kind"] <= schema.TEXT)
        owner = row[values["event"][is_selected]]
        key, kind, value = (
            values["key"][is_selected],
            values["kind"][is_selected].astype(np.uint8),
            values["value"][is_selected].copy(),
        )
        is_text_stat = np.isin(key, [raw.texts.find(name) for name in TEXT_STATS])
        to_parse = np.flatnonzero((kind == schema.TEXT) & ~is_text_stat)
        distinct, inverse = np.unique(value[to_parse], return_inverse=True)
        parsed = [parse_number(raw.texts.get(i)) or (schema.TEXT, i) for i in distinct.tolist()]
        if parsed:
            kind[to_parse], value[to_parse] = np.array(parsed, np.int64)[inverse.reshape(-1)].T
        return cls(owner[owner >= 0], key[owner >= 0], kind[owner >= 0], value[owner >= 0])


def parse_number(text: str) -> tuple[int, int] | None:
    """(kind, value) of a number written as text, None for any other text."""
    if _INTEGER.fullmatch(text):
        number = int(text)
        if -(2**63) <= number < 2**63:
            return schema.INT, number
        return (schema.UINT, number - 2**64) if 0 <= number < 2**64 else None
    return (
        (schema.DOUBLE, int(np.float64(text).view(np.int64)))
        if _REAL.fullmatch(text) and len(text) < 64
        else None
    )


def stat_table(texts: Texts, stats: Sequence[Any], rows: StatRows | None = None) -> Table:
    """STATS from whole columns (Stat), from single rows (owner, name, kind, value, size), and from StatRows,
    sorted by key and owner.
    """
    parts = [rows or StatRows.none()]
    sizes = [np.zeros(len(parts[0].owner), np.int32)]
    for stat in stats:
        if isinstance(stat, Stat):
            n = len(stat.owner)
            if n:
                parts.append(
                    StatRows(stat.owner, np.full(n, texts.add(stat.name)), np.full(n, stat.kind), stat.value)
                )
                sizes.append(np.zeros(n, np.int32))
    single = [
        (owner, texts.add(name), kind, value, size)
        for owner, name, kind, value, size in (s for s in stats if not isinstance(s, Stat))
    ]
    if single:
        owner, key, kind, value, size = (np.array(column) for column in zip(*single, strict=True))
        parts.append(StatRows(owner, key, kind, value))
        sizes.append(size)
    joined = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("owner", "key", "kind", "value")
    }
    joined["size"] = np.concatenate(sizes)
    order = np.lexsort((joined["owner"], joined["key"]))
    return Table(
        schema.STATS, {spec.name: joined[spec.name][order].astype(spec.dtype) for spec in schema.STATS}
    )


def stats_of_names(
    raw: RawEvents,
    arguments_at: Callable[[int], object],
    lines: Table,
    planes: Table,
    metadata: Table,
    events: dict[str, Array],
) -> Table:
    """Stats of the operations of TPUs (category, FLOPs, framework operation, source …), read from the
    arguments of one event of each name.

    XPlanes store them with the name; trace.json repeats them in every event. It leaves out an operation's
    program (that of the module which runs at the time) and its number in the program (its row replaces it).
    """
    plane_names = [raw.texts.get(int(i)) for i in planes["name"]]
    rows: list[Any] = []
    for line, (name, plane) in enumerate(zip(lines["name"].tolist(), lines["plane"].tolist(), strict=True)):
        if raw.texts.get(name) != "XLA Ops" or not plane_names[plane].startswith("/device:TPU"):
            continue
        first = int(lines["first_event"][line])
        metadata_rows, first_index = np.unique(
            events["metadata"][first : first + int(lines["n_events"][line])], return_index=True
        )
        programs = _programs(raw, lines, plane, metadata, events, events["start_ps"][first + first_index])
        for metadata_row, event, program in zip(
            metadata_rows.tolist()[:_MAX_LIFTED], (first + first_index).tolist(), programs, strict=False
        ):
            arguments = arguments_at(int(events["position"][event]))
            stats = (
                {key: value for key, value in arguments.items() if key in _NAME_ARGUMENTS}
                if isinstance(arguments, dict)
                else {}
            )
            stats = (
                {"program_id": program, "symbol_id": metadata_row + 1} if program is not None else {}
            ) | stats
            rows += [
                (metadata_row, key, *_value(raw.texts, key, shown(value)), 0) for key, value in stats.items()
            ]
    return stat_table(raw.texts, rows)


def _programs(
    raw: RawEvents, lines: Table, plane: int, metadata: Table, events: dict[str, Array], time: Array
) -> list[int | None]:
    """The program whose module runs on a plane at each time, None if unknown."""
    modules = [
        (events["start_ps"][i], raw.texts.get(int(metadata["name"][events["metadata"][i]])))
        for line in np.flatnonzero(lines["plane"] == plane).tolist()
        if raw.texts.get(int(lines["name"][line])) == "XLA Modules"
        for i in range(
            int(lines["first_event"][line]), int(lines["first_event"][line] + lines["n_events"][line])
        )
    ]
    matches = [_MODULE.search(name) for _, name in modules]
    numbers = [int(match[1]) if match else None for match in matches]
    index = np.searchsorted(np.array([start for start, _ in modules], np.int64), time, "right") - 1
    return [numbers[i] if i >= 0 else None for i in index.tolist()]


def _value(texts: Texts, name: str, value: str | int | float) -> tuple[int, int]:
    parsed = None if name in TEXT_STATS else parse_number(str(value))
    return parsed or (schema.TEXT, texts.add(str(value)))


# Kineto's deviceProperties → stats of XPlanes' GPU planes.
_PROPERTIES = {
    "totalGlobalMem": "memory_size",
    "computeMajor": "compute_cap_major",
    "computeMinor": "compute_cap_minor",
    "numSms": "core_count",
}
_VENDORS = {"MTIA": "Meta", "XPU": "Intel", "HPU": "Intel"}


def device_stats(raw: RawEvents, laid_out: Layout) -> list[Any]:
    """Stats of the planes of devices, from the file's `deviceProperties`."""
    devices = listed_devices(raw)
    is_amd = any(name in raw.members for name in AMD_MEMBERS)
    stats: list[Any] = []
    for plane, name in enumerate(raw.texts.get(int(i)) for i in laid_out.planes["name"]):
        match = re.fullmatch(r"/device:(\w+):(\d{1,9})", name)
        entry = devices.get(int(match[2])) if match else None
        if match and match[1] in _VENDORS:
            entry = {"name": match[1]} | (entry or {})
        if not match or entry is None:
            continue
        title = str(entry.get("name", ""))
        is_amd_device = is_amd or title.startswith(("AMD", "gfx"))
        vendor = _VENDORS.get(match[1], "AMD" if is_amd_device else "Nvidia")
        stats.append((plane, "gpu_device_name", schema.TEXT, raw.texts.add(title[:200]), 0))
        stats.append((plane, "device_vendor", schema.TEXT, raw.texts.add(vendor), 0))
        for member, stat_name in _PROPERTIES.items():
            value = entry.get(member)
            if isinstance(value, int) and 0 <= value < 2**62:
                stats.append((plane, stat_name, schema.INT, value, 0))
    return stats
