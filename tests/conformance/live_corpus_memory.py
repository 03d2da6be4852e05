"""The live comparison of the memory viewer on real runs: each part of the peer's answer for each program and
memory space.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from tb_tpuprof.analysis.hlo.memories import hlo_memories
from tb_tpuprof.errors import BadParameter, ToolUnavailable
from tb_tpuprof.session import Session
from tb_tpuprof.tools.memory_viewer import view as memory_viewer
from tb_tpuprof.tools.payload import Payload
from tests.conformance.live_devices import Field, table

Row = dict[str, Any]
MIB = 2**20
SMALL_BYTES = 16 * 1024  # below this the peer sums buffers up
NO_PROGRAM = "NO_MODULE"
_PERMANENT = ("Parameter", "Output", "Constant")
_KNOWN = {
    "moduleName",
    "entryComputationName",
    "peakHeapMib",
    "peakUnpaddedHeapMib",
    "peakHeapSizePosition",
    "totalBufferAllocationMib",
    "indefiniteBufferAllocationMib",
    "entryComputationParametersMib",
    "maybeLiveOutMib",
    "nonReusableMib",
    "maxScopedVmemAllocationMib",
    "maxScopedVmemInstructionName",
    "heapSizes",
    "unpaddedHeapSizes",
    "hloInstructionNames",
    "maxHeap",
    "maxHeapBySize",
    "maxHeapToBySize",
    "bySizeToMaxHeap",
    "logicalBufferSpans",
    "indefiniteLifetimes",
    "bufferBlocks",
}

_RUN = "corpus_xprof_tpu_*"
_SPACES = (
    "buffers that are held throughout are listed in every memory space; the peer lists them for main "
    "memory alone"
)
_SHARING = (
    "a value that shares another one's memory has a box and a span of its own; the peer shows the "
    "first one's alone"
)
# (run, tool, field), each a pattern: why the two differ.
DIFFERENCES: dict[tuple[str, str, str], str] = {
    ("corpus_*", "memory_viewer", "* space 0: nonReusableMib"): (
        "kinds of memory stand apart here; the peer's sum has temporaries, tables of pointers and threads' "
        "stacks in it"
    ),
    ("corpus_own_jax_*", "memory_viewer", "* space 0: logicalBufferSpans"): _SHARING,
    (
        "corpus_*",
        "memory_viewer",
        "*: block *: color",
    ): "colours are the page's, by kind of allocation; the peer's are of a list of its own",
    (
        "corpus_*",
        "memory_viewer",
        "*: allocation *: shapes of its buffers",
    ): "of an allocation their number; shapes stand with the buffers",
    ("corpus_own_jax_*", "memory_viewer", "* space 0: bufferBlocks"): _SHARING,
    (
        _RUN,
        "memory_viewer",
        "* space 0: peakUnpaddedHeapMib",
    ): "without the padding of parameters and results, too; the peer's without temporaries' alone",
    (
        _RUN,
        "memory_viewer",
        "* space 5: maybeLiveOutMib",
    ): "results that take over a parameter's memory count as parameters; the peer counts them twice",
    (_RUN, "memory_viewer", "* space 5: maxHeap"): _SPACES,
    (_RUN, "memory_viewer", "* space 5: maxHeapBySize"): _SPACES,
}


def fields(session: Session, answers: dict[str, dict[str, Row | None]]) -> Iterator[Field]:
    """Every program and space; the peer's answer is by program and number of the space."""
    programs = {program.title for program in hlo_memories(session.outline(session.hosts[0])).programs}
    asked = {title for title in answers if title != NO_PROGRAM}
    yield Field("programs", ", ".join(sorted(programs)), ", ".join(sorted(asked)))
    for title in sorted(programs & asked):
        for space, answer in answers[title].items():
            yield from _space(session, title, int(space), answer or {})


def _space(session: Session, title: str, space: int, said: Row) -> Iterator[Field]:
    name = f"{title} space {space}"
    yield Field(f"{name}: parts that are not compared", "", ", ".join(sorted(set(said) - _KNOWN)))
    try:
        payload = memory_viewer.TOOL.run(
            session, None, {"program": title, "space": space, "width_px": 20_000}
        )
    except (BadParameter, ToolUnavailable):  # nothing lies there
        told = {key for key in said if key not in ("moduleName", "entryComputationName")}
        yield Field(f"{name}: what is held", "", ", ".join(sorted(told)))
        return
    yield from _sums(name, payload, said)
    yield from _timeline(name, payload, said)
    yield from _live(name, payload, said)
    yield from _blocks(name, payload, said)
    yield from _lifetimes(name, payload, said)


def size(mib: float | None) -> int:
    """Bytes; the peer prints MiB."""
    return round((mib or 0) * MIB)


def _sums(name: str, payload: Payload, said: Row) -> Iterator[Field]:
    def scalar(key: str) -> float:
        found = payload.scalars.get(key)
        return float(found.value or 0) if found else 0.0

    chosen = table(payload.tables["chosen"])[0]
    yield Field(f"{name}: moduleName", chosen["program"].rpartition("(")[0], said.get("moduleName", ""))
    yield Field(f"{name}: entryComputationName", chosen["entry"], said.get("entryComputationName", ""))
    for theirs, ours in (
        ("peakHeapMib", "peak_bytes"),
        ("peakUnpaddedHeapMib", "peak_unpadded_bytes"),
        ("totalBufferAllocationMib", "allocated_bytes"),
        ("indefiniteBufferAllocationMib", "permanent_bytes"),
        ("maxScopedVmemAllocationMib", "scoped_vmem_bytes"),
        ("entryComputationParametersMib", "parameter_bytes"),
        ("maybeLiveOutMib", "output_bytes"),
    ):
        yield Field(f"{name}: {theirs}", scalar(ours), float(size(said.get(theirs))))
    live = table(payload.tables["live"])
    padding = sum(row["padding_bytes"] for row in live if row["category"] in _PERMANENT)
    yield Field(
        f"{name}: peakUnpaddedHeapMib, of temporaries alone",
        scalar("peak_unpadded_bytes") + padding,
        float(size(said.get("peakUnpaddedHeapMib"))),
    )
    yield Field(
        f"{name}: peakHeapSizePosition", scalar("peak_step"), float(said.get("peakHeapSizePosition", 0))
    )
    most = payload.scalars.get("scoped_vmem_bytes")
    yield Field(
        f"{name}: maxScopedVmemInstructionName",
        most.note if most else "",
        said.get("maxScopedVmemInstructionName", ""),
    )
    live_out = sum(row["size_bytes"] for row in table(payload.tables["allocations"]) if row["is_live_out"])
    yield Field(
        f"{name}: maybeLiveOutMib, with parameters that results take over",
        float(live_out),
        float(size(said.get("maybeLiveOutMib"))),
    )
    yield Field(
        f"{name}: nonReusableMib",
        None if said.get("nonReusableMib") else 0.0,
        float(size(said.get("nonReusableMib"))),
    )


def _timeline(name: str, payload: Payload, said: Row) -> Iterator[Field]:
    """The peer's levels are from before a step, with one more after the last; ours from after it."""
    steps = table(payload.tables["timeline"])
    permanent = int(payload.scalars["permanent_bytes"].value or 0)
    held = [permanent, *(row["held_bytes"] for row in steps)] if steps else []
    live = table(payload.tables["live"])
    padding = sum(row["padding_bytes"] for row in live if row["category"] in _PERMANENT)
    unpadded = [permanent, *(row["unpadded_bytes"] + padding for row in steps)] if steps else []
    yield Field(f"{name}: heapSizes", str(held), str([size(value) for value in said.get("heapSizes", [])]))
    yield Field(
        f"{name}: unpaddedHeapSizes",
        str(unpadded),
        str([size(value) for value in said.get("unpaddedHeapSizes", [])]),
    )
    names = [row["instruction"] for row in steps] + [""] * bool(steps)
    yield Field(
        f"{name}: hloInstructionNames", ", ".join(names), ", ".join(said.get("hloInstructionNames", []))
    )


def _live(name: str, payload: Payload, said: Row) -> Iterator[Field]:
    """Buffers at the peak: which, in which order, and all that is said of each."""
    live = table(payload.tables["live"])
    listed = {item.get("logicalBufferId", 0): item for item in said.get("maxHeap", [])}
    large = [row for row in live if row["size_bytes"] >= SMALL_BYTES]
    small = sum(row["size_bytes"] for row in live if row["size_bytes"] < SMALL_BYTES)
    numbered = [key for key in listed if key >= 0]
    yield Field(f"{name}: maxHeap", str([row["buffer_id"] for row in large]), str(numbered))
    colors = [item.get("numbered") for item in said.get("maxHeap", [])]
    yield Field(f"{name}: colours are the places in maxHeap", str(list(range(len(colors)))), str(colors))
    yield Field(
        f"{name}: small buffers",
        float(small),
        float(size(listed[-1]["logicalBufferSizeMib"])) if -1 in listed else 0.0,
    )
    sizes = [row["size_bytes"] for row in sorted(large, key=lambda row: -row["size_bytes"])]
    by_size = [item for item in said.get("maxHeapBySize", []) if item.get("logicalBufferId", 0) >= 0]
    yield Field(
        f"{name}: maxHeapBySize", str(sizes), str([size(item["logicalBufferSizeMib"]) for item in by_size])
    )
    there, back = said.get("maxHeapToBySize", []), said.get("bySizeToMaxHeap", [])
    yield Field(
        f"{name}: the two orders undo one another", str(list(range(len(there)))), str(_taken(there, back))
    )
    whole = said.get("maxHeap", [])
    is_same = _taken(whole, back) == said.get("maxHeapBySize", [])
    yield Field(f"{name}: maxHeapBySize is maxHeap in another order", "True", str(is_same))
    for row in large:
        item = listed.get(row["buffer_id"])
        if item is not None:
            yield from _buffer(f"{name}: buffer {row['buffer_id']}", row, item)
            opcode, instruction = item.get("opCode", ""), row["instruction"]
            yield Field(f"{name}: buffer {row['buffer_id']}: opCode", row["opcode"], opcode)
            label = f"{instruction}: {row['shape']} # {row['op_name']}"
            yield Field(f"{name}: buffer {row['buffer_id']}: label", label, item["label"])
            yield Field(
                f"{name}: buffer {row['buffer_id']}: size",
                float(row["size_bytes"]),
                float(size(item["logicalBufferSizeMib"])),
            )
            yield Field(
                f"{name}: buffer {row['buffer_id']}: unpadded",
                float(row["unpadded_bytes"]),
                float(size(item["unpaddedShapeMib"])),
            )
            yield Field(
                f"{name}: buffer {row['buffer_id']}: groupName", row["category"], item.get("groupName", "")
            )
    known = {
        "numbered",
        "named",
        "label",
        "logicalBufferId",
        "logicalBufferSizeMib",
        "unpaddedShapeMib",
        "instructionName",
        "shapeString",
        "tfOpName",
        "groupName",
        "opCode",
        "sourceInfo",
    }
    others = {key for item in listed.values() for key in item} - known
    yield Field(f"{name}: parts of buffers that are not compared", "", ", ".join(sorted(others)))


def _taken(values: list[Any], places: list[int]) -> list[Any]:
    return [values[i] if 0 <= i < len(values) else None for i in places]


def _buffer(name: str, row: Row, item: Row) -> Iterator[Field]:
    """What the peer says of a buffer both at the peak and in the map."""
    yield Field(
        f"{name}: instruction",
        row["instruction"],
        re.sub(r"\{[\d,]*\}$", "", item.get("instructionName", item.get("name", ""))),
    )
    yield Field(f"{name}: shapeString", row["shape"], item.get("shapeString", ""))
    yield Field(f"{name}: tfOpName", row["op_name"], item.get("tfOpName", ""))
    source = item.get("sourceInfo", {})
    place = f"{source['fileName']}:{source['lineNumber']}" if source.get("fileName") else ""
    yield Field(f"{name}: source", row["source"], place)
    # Ours names the function after the line, the peer the column.
    stack = [re.sub(r"(:\d+) .*$", r"\1", line) for line in row["stack"].splitlines()]
    theirs = [
        re.sub(r"(:\d+):\d+$", r"\1", line.strip()) for line in source.get("stackFrame", "").splitlines()
    ]
    yield Field(f"{name}: stack", json.dumps(stack), json.dumps(theirs))


def _blocks(name: str, payload: Payload, said: Row) -> Iterator[Field]:
    """The map: where temporary buffers lie, and for how long they live."""
    mine = {row["buffer_id"]: row for row in table(payload.tables["blocks"])}
    theirs = {item.get("logicalBufferId", 0): item for item in said.get("bufferBlocks", [])}
    spans = {
        int(key): (span.get("start", 0), span.get("limit", 0))
        for key, span in said.get("logicalBufferSpans", {}).items()
    }
    shown = {key: (row["first_step"], row["last_step"]) for key, row in mine.items()}
    yield Field(f"{name}: logicalBufferSpans", str(sorted(shown)), str(sorted(spans)))
    both = sorted(set(shown) & set(spans))
    yield Field(
        f"{name}: spans of those that both have",
        str([shown[key] for key in both]),
        str([spans[key] for key in both]),
    )
    yield Field(f"{name}: bufferBlocks", str(sorted(mine)), str(sorted(key for key in theirs if key >= 0)))
    for key in sorted(set(mine) & set(theirs)):
        row, item, one = mine[key], theirs[key], f"{name}: block {key}"
        yield Field(f"{one}: offset", float(row["offset_bytes"]), float(item.get("offset", 0)))
        yield Field(f"{one}: size", float(row["size_bytes"]), float(item.get("size", 0)))
        yield Field(f"{one}: unpadded", float(row["unpadded_bytes"]), float(item.get("unpaddedSize", 0)))
        yield Field(
            f"{one}: steps",
            f"{row['first_step']} {row['last_step']}",
            f"{item.get('startStep', 0)} {item.get('endStep', 0)}",
        )
        yield Field(f"{one}: category", row["category"], item.get("category", ""))
        yield Field(f"{one}: color", None, item["color"])
        yield from _buffer(one, row, item)
    whole = sum(int(item.get("size", 0)) for key, item in theirs.items() if key < 0)
    temporary = int(payload.scalars["temporary_allocated_bytes"].value or 0)
    yield Field(f"{name}: blocks of allocations", float(temporary) if theirs else 0.0, float(whole))
    known = {
        "logicalBufferId",
        "name",
        "offset",
        "size",
        "unpaddedSize",
        "startStep",
        "endStep",
        "category",
        "tfOpName",
        "sourceInfo",
        "shapeString",
        "color",
    }
    yield Field(
        f"{name}: parts of blocks that are not compared",
        "",
        ", ".join(sorted({k for item in theirs.values() for k in item} - known)),
    )


def _lifetimes(name: str, payload: Payload, said: Row) -> Iterator[Field]:
    """Allocations that are held throughout."""
    mine = {
        row["index"]: row for row in table(payload.tables["allocations"]) if row["category"] != "Temporary"
    }
    theirs = {int(item.get("id", 0)): item for item in said.get("indefiniteLifetimes", [])}
    yield Field(f"{name}: indefiniteLifetimes", str(sorted(mine)), str(sorted(theirs)))
    for key in sorted(set(mine) & set(theirs)):
        row, item, one = mine[key], theirs[key], f"{name}: allocation {key}"
        yield Field(f"{one}: sizeMib", float(row["size_bytes"]), float(size(item["sizeMib"])))
        attributes = set(item.get("attributes", []))
        yield Field(
            f"{one}: a parameter",
            str(row["parameter_number"] == row["parameter_number"]),
            str("entry computation parameter" in attributes),
        )
        yield Field(f"{one}: live out", str(bool(row["is_live_out"])), str("may-be live out" in attributes))
        known = {"entry computation parameter", "may-be live out", "reusable"}
        yield Field(f"{one}: attributes that are not compared", "", ", ".join(sorted(attributes - known)))
        yield Field(
            f"{one}: shapes of its buffers",
            None,
            f"{item.get('commonShape', '')} {item.get('logicalBuffers', [])}",
        )
        yield Field(
            f"{one}: logicalBuffers", float(row["n_buffers"]), float(len(item.get("logicalBuffers", [])))
        )
        yield Field(
            f"{one}: parts that are not compared",
            "",
            ", ".join(sorted(set(item) - {"id", "sizeMib", "attributes", "logicalBuffers", "commonShape"})),
        )
