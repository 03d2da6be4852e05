"""The live comparison of compiled operations on real runs: HLO stats, roofline and op profile, each row and
each column of the peer's.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from tb_tpuprof.analysis.device.hardware import hardware
from tb_tpuprof.errors import ToolUnavailable
from tb_tpuprof.session import Session
from tb_tpuprof.tools.hlo_stats import view as hlo_stats
from tb_tpuprof.tools.op_profile import view as op_profile
from tb_tpuprof.tools.payload import Payload
from tb_tpuprof.tools.roofline_model import view as roofline_model
from tb_tpuprof.tools.tool import Tool
from tests.conformance.live_compiled import HLO, MEASURES, ROOFLINE
from tests.conformance.live_devices import Field, table
from tests.conformance.peer import rows

Row = dict[str, Any]
GIB, PS_PER_US = 2**30, 1e6
MAX_EXPRESSION = 2_000
_IDS = re.compile(r"\((\d+)\)$")
_TITLE = re.compile(r"title='([^']*)'", re.DOTALL)
# The peer's columns and ours, beside those of live_compiled.
_HLO_NUMBERS = {
    **HLO,
    "rank": ("rank", 1.0),
    "cumulative_total_self_time_percent": ("cumulative_device_fraction", 100.0),
    "dma_stall_percent": ("dma_stall_fraction", 1.0),
    "normalized_flop_rate": ("normalized_flops_per_s", 1e-9),
    "vdd_energy": ("energy_j", 1.0),
}
_HLO_TEXTS = {
    "category": "category",
    "tf_op_name": "provenance",
    "core_type": "core",
    "bound_by": "nearest_limit",
}
_HLO_FLAGS = {"hlo_rematerialization": "is_rematerialized", "outside_compilation": "is_outside_compiled"}
_HLO_OTHERS = ("program_id", "hlo_op_name", "hlo_op_expression", "source_info")
# Columns that the peer has and we have not: what stands in them.
_HLO_LEFT_OUT = ("autotuned", "parent_op_name")
_ROOFLINE_NUMBERS = {
    **ROOFLINE,
    "rank": ("rank", 1.0),
    "cumulative_total_self_time_percent": ("cumulative_device_fraction", 1.0),
}
_ROOFLINE_OTHERS = (
    "step",
    "category",
    "operation",
    "bound_by",
    "include_infeed_outfeed",
    "hlo_module_id",
    "source_info",
)
_ROOFLINE_LEFT_OUT = ("dma_stall_percent",)
_PEAKS = {
    "peak_hbm_bw": "hbm",
    **{f"peak_{m}_{w}_bw": f"{m}_{w}" for m in ("cmem", "vmem") for w in ("read", "write")},
}
_SETTINGS = ("megacore", "has_cmem", "has_merged_vmem", "time_scale_multiplier")

_GROUPINGS = {"program": "byProgram", "category": "byCategory", "provenance": "byProvenance"}


def fields(session: Session, answers: Row) -> list[tuple[str, Field]]:
    """(tool, field) of all three tools."""
    found = [("hlo_stats", field) for field in stats(session, answers["hlo_stats"])]
    found += [("roofline_model", field) for field in roofline(session, answers["roofline_model"])]
    return found + [("op_profile", field) for field in _profile(session, answers)]


def payload_of(session: Session, tool: Tool, **params: object) -> Payload | None:
    """Our page; None where it has nothing to say of this run."""
    try:
        return tool.run(session, None, params)
    except ToolUnavailable:
        return None


def number(value: Any, factor: float = 1.0) -> float:
    """What we do not know the peer prints as 0."""
    return 0.0 if value is None or math.isnan(value) else float(value) * factor


def _id(program: str) -> str:
    found = _IDS.search(program)
    return found[1] if found else program


def _columns(compared: set[str], left_out: tuple[str, ...], answer: Any, listed: list[Row]) -> list[Field]:
    """That each of the peer's columns is compared; and of those that we have not, what the peer
    says in them.
    """
    names = {column["id"] for column in answer["cols"]}
    found = [Field("columns that are not compared", "", ", ".join(sorted(names - compared - set(left_out))))]
    for name in left_out:
        if name in names and listed:
            said = sorted({str(row[name]) for row in listed})
            found.append(
                Field(f"column {name}, always {', '.join(said) or 'empty'!r}", None, f"{len(listed)} rows")
            )
    return found


def stats(session: Session, answer: Any) -> Iterator[Field]:
    """Operations of HLO stats, by program and name."""
    payload, peer = payload_of(session, hlo_stats.TOOL), rows(answer)
    listed = _with_running_sum(table(payload.tables["ops"])) if payload else []
    mine = {(_id(row["program"]), row["op"]): row for row in listed}
    theirs = {(row["program_id"], row["hlo_op_name"]): row for row in peer}
    yield Field("operations", _keys(mine), _keys(theirs))
    compared = {*_HLO_NUMBERS, *_HLO_TEXTS, *_HLO_FLAGS, *_HLO_OTHERS}
    yield from _columns(compared, _HLO_LEFT_OUT, answer, peer)
    for key in sorted(set(mine) & set(theirs)):
        ours, row, name = mine[key], theirs[key], f"{key[1]} ({key[0]})"
        for theirs_of, (ours_of, factor) in _HLO_NUMBERS.items():
            yield Field(f"{name}: {theirs_of}", number(ours.get(ours_of), factor), row[theirs_of])
        for theirs_of, text in _HLO_TEXTS.items():
            yield Field(f"{name}: {theirs_of}", ours[text], row[theirs_of])
        for theirs_of, flag in _HLO_FLAGS.items():
            yield Field(f"{name}: {theirs_of}", "Yes" if ours[flag] else "No", row[theirs_of])
        yield Field(
            f"{name}: hlo_op_expression", ours["expression"], row["hlo_op_expression"][:MAX_EXPRESSION]
        )
        yield Field(f"{name}: source_info", ours["source"], _source(row["source_info"]))


def _with_running_sum(listed: list[Row]) -> list[Row]:
    """Rows with the sum of the device time's shares so far: the peer's shares have idle time in them."""
    total = 0.0
    for row in listed:
        total += number(
            row.get("device_time_fraction")
        )  # of CPUs, of which the peer says nothing, there is none
        row["cumulative_device_fraction"] = total
    return listed


def _source(html: str) -> str:
    return re.sub(r"<[^>]*>", "", _TITLE.sub("", html))


def _keys(found: dict[tuple[str, str], Row]) -> str:
    return ", ".join(sorted(f"{op} ({program})" for program, op in found))


def roofline(session: Session, answer: Any) -> Iterator[Field]:
    """Operations, program and steps of the roofline, with and without infeed and outfeed; peaks
    and warnings.
    """
    peer = rows(answer[0])
    yield from _columns({*_ROOFLINE_NUMBERS, *_ROOFLINE_OTHERS}, _ROOFLINE_LEFT_OUT, answer[0], peer)
    for with_transfers in (True, False):
        label = "all" if with_transfers else "without infeed and outfeed"
        payload = payload_of(session, roofline_model.TOOL, transfers=with_transfers)
        listed = [row for row in peer if row["include_infeed_outfeed"] == with_transfers]
        if with_transfers:
            yield from _properties(session, payload, answer[0]["p"])
            told = "" if payload is None else " ".join(d.message for d in payload.diagnostics)
            yield Field("warnings", told, " ".join(row["message"] for row in rows(answer[1])))
        yield from _roofline_ops(label, payload, [row for row in listed if row["rank"]])
        yield from _roofline_steps(label, payload, [row for row in listed if not row["rank"]])


def _roofline_ops(label: str, payload: Payload | None, peer: list[Row]) -> Iterator[Field]:
    mine = (
        {(_id(row["program"]), row["op"]): row for row in _with_running_sum(table(payload.tables["ops"]))}
        if payload
        else {}
    )
    theirs = {(row["hlo_module_id"], row["operation"]): row for row in peer}
    yield Field(f"{label}: operations", _keys(mine), _keys(theirs))
    for key in sorted(set(mine) & set(theirs)):
        ours, row, name = mine[key], theirs[key], f"{label}: {key[1]} ({key[0]})"
        yield from _numbers(name, ours, row, _ROOFLINE_NUMBERS)
        yield Field(f"{name}: step", "Total", row["step"])
        yield Field(f"{name}: category", ours["category"], row["category"])
        yield Field(f"{name}: bound_by", ours["nearest_limit"], row["bound_by"])
        yield Field(f"{name}: source_info", ours["source"], _source(row["source_info"]))


def _numbers(name: str, ours: Row, theirs: Row, columns: dict[str, tuple[str, float]]) -> Iterator[Field]:
    """Of a GPU neither has columns of CMEM; what it calls VMEM's writing is the peer's word for shared
    memory.
    """
    for theirs_of, (ours_of, factor) in columns.items():
        if theirs_of in theirs:
            yield Field(f"{name}: {theirs_of}", number(ours.get(ours_of), factor), theirs[theirs_of])


def _roofline_steps(label: str, payload: Payload | None, peer: list[Row]) -> Iterator[Field]:
    mine = {row["step"]: row for row in table(payload.tables["programs"])} if payload else {}
    theirs = {row["step"]: row for row in peer}
    yield Field(f"{label}: steps", ", ".join(sorted(mine)), ", ".join(sorted(theirs)))
    for step in sorted(set(mine) & set(theirs)):
        name = f"{label}: step {step}"
        yield from _numbers(name, mine[step], theirs[step], MEASURES)
        yield Field(f"{name}: bound_by", mine[step]["nearest_limit"], theirs[step]["bound_by"])
        whole = ("Program", "Program", "0", "", 0.0, 0.0, 0.0)
        names = (
            "category",
            "operation",
            "hlo_module_id",
            "source_info",
            "total_self_time",
            "avg_self_time",
            "rank",
        )
        yield Field(
            f"{name}: what is said of all programs",
            str(whole),
            str(tuple(theirs[step][name] for name in names)),
        )
        shares = {
            key: theirs[step][key]
            for key in ("total_self_time_percent", "cumulative_total_self_time_percent")
        }
        yield Field(f"{name}: shares of self time", "0", str(max(shares.values())).removesuffix(".0"))
        yield Field(f"{name}: occurrences", 1.0, theirs[step]["occurrences"])
        yield Field(f"{name}: avg_time", mine[step]["total_time_ps"] / PS_PER_US, theirs[step]["avg_time"])
        whole_ps = mine["Total"]["total_time_ps"] if "Total" in mine else 0
        share = mine[step]["total_time_ps"] / whole_ps if whole_ps else 0.0
        yield Field(f"{name}: total_time_in_percentage", share, theirs[step]["total_time_in_percentage"])


def _properties(session: Session, payload: Payload | None, said: Row) -> Iterator[Field]:
    """Peaks and ridges, of which the peer prints six digits; what it says of the machine beside them."""
    if payload is None:
        yield Field(
            "peaks that are known",
            "",
            ", ".join(sorted(name for name, text in said.items() if text not in ("", "0"))),
        )
        return
    roofs = {row["name"]: row for row in table(payload.tables["roofs"])}
    if "shared" in roofs:
        roofs["vmem_write"] = roofs["shared"]  # a GPU's shared memory goes by this name there
    yield Field("device_type", hardware(session.trace(session.hosts[0])).device, said["device_type"])
    yield Field(
        "peak_flop_rate",
        _digits(number(payload.scalars["peak_flops_per_s"].value, 1e-9)),
        said["peak_flop_rate"],
    )
    for theirs_of, name in _PEAKS.items():
        if theirs_of in said:
            row = roofs.get(name, {})
            yield Field(theirs_of, _digits(number(row.get("bytes_per_s"), 1 / GIB)), said[theirs_of])
            ridge = f"{name}_ridge_point"
            yield Field(ridge, _digits(number(row.get("ridge_flops_per_byte"))), said[ridge])
    known = {
        "device_type",
        "peak_flop_rate",
        *_PEAKS,
        *(f"{name}_ridge_point" for name in _PEAKS.values()),
        *_SETTINGS,
    }
    yield Field("properties that are not compared", "", ", ".join(sorted(set(said) - known)))
    if "megacore" in said:
        yield Field(f"settings {', '.join(f'{name} {said[name]}' for name in _SETTINGS)}", None, "told")


def _digits(value: float) -> str:
    """As C prints a number of six digits."""
    return f"{value:.6g}"


def _profile(session: Session, answers: Row) -> Iterator[Field]:
    kind = hardware(session.trace(session.hosts[0])).kind
    for grouping, field in _GROUPINGS.items():
        answer = answers["op_profile" if grouping == "program" else f"op_profile by {grouping}"]
        known = {field, f"{field}ExcludeIdle", "deviceType", "aggDvfsTimeScaleMultiplier"}
        yield Field(f"{grouping}: parts that are not compared", "", ", ".join(sorted(set(answer) - known)))
        yield Field(f"{grouping}: deviceType", kind, answer["deviceType"])
        yield Field(f"{grouping}: aggDvfsTimeScaleMultiplier", None, answer["aggDvfsTimeScaleMultiplier"])
        for with_idle in (True, False):
            label = f"{grouping}, {'with' if with_idle else 'without'} idle"
            root, n_dissolved = _dissolved(answer[field if with_idle else f"{field}ExcludeIdle"])
            yield Field(f"{label}: groups of duplicates of several programs", 0.0, float(n_dissolved))
            yield from tree(session, label, root, grouping, with_idle)


def _dissolved(node: Row) -> tuple[Row, int]:
    """The tree without groups of duplicates whose members are of several programs, and how many
    these were.
    """
    if _is_op(node):
        return node, 0
    children, n = [], 0
    for child in node["children"]:
        inner, n_inner = _dissolved(child)
        programs = {
            member["xla"]["programId"] for member in inner["children"] if "xla" in member and "xla" in inner
        }
        is_mixed = len(programs) > 1
        n += n_inner + is_mixed
        children += inner["children"] if is_mixed else [inner]
    children.sort(key=lambda child: -child["metrics"]["rawTime"])
    return {**node, "children": children, "numChildren": len(children)}, n


def tree(session: Session, label: str, root: Row, grouping: str, with_idle: bool) -> Iterator[Field]:
    """Nodes of one tree of the op profile, by their way from the root."""
    payload = payload_of(session, op_profile.TOOL, group_by=grouping, idle=with_idle, limit=10_000)
    mine = dict(_ours(table(payload.tables["nodes"]))) if payload else {}
    theirs = (
        dict(_theirs(root)) if root["children"] else {}
    )  # a root alone, of no time, says that there is nothing
    yield Field(f"{label}: nodes", ", ".join(sorted(mine)), ", ".join(sorted(theirs)))
    both = [way for way in mine if way in theirs]
    yield Field(f"{label}: children in order", _order(mine, both), _order(theirs, both))
    if theirs:
        yield Field(
            f"{label}: normalizedTimePs",
            None,
            float(sum(node["metrics"]["normalizedTimePs"] for node in theirs.values())),
        )
    for way in both:
        ours, node = mine[way], theirs[way]
        name = f"{label}: {ours['kind']} {way}"
        yield from _metrics(name, ours, node["metrics"])
        yield Field(
            f"{name}: numChildren",
            float(ours["n_children"]),
            float(node["numChildren"]) if not _is_op(node) else 0.0,
        )
        if _is_op(node) and grouping == "program" and with_idle and ours["kind"] == "op":
            yield from _operation(session, name, ours, node)


def _order(found: dict[str, Row], both: list[str]) -> str:
    """The ways of all that both have, as the tree is walked from above, the longest child first."""
    return ", ".join(way for way in sorted(both, key=list(found).index))


def _ours(nodes: list[Row]) -> Iterator[tuple[str, Row]]:
    """Nodes by their way from the root, in the order of a walk; groups of duplicates are called as by the
    peer, by their longest member.
    """
    children: dict[int, list[int]] = {}
    for row, node in enumerate(nodes):
        children.setdefault(node["parent"], []).append(row)

    def walk(row: int, way: str) -> Iterator[tuple[str, Row]]:
        yield way, nodes[row]
        for child in children.get(row, []):
            node = nodes[child]
            name = (
                f"{nodes[children[child][0]]['name']} and its duplicate(s)"
                if node["kind"] == "duplicates"
                else node["name"]
            )
            name += f" ({_id(node['program'])})" if node["kind"] == "op" else ""
            yield from walk(child, f"{way}/{name}")

    return walk(0, "all") if nodes else iter(())


def _is_op(node: Row) -> bool:
    return "xla" in node and not node["name"].endswith("duplicate(s)")


def _theirs(node: Row, way: str = "all") -> Iterator[tuple[str, Row]]:
    """The same of the peer's, without what fusions contain."""
    yield way, node
    if not _is_op(node):
        for child in node["children"]:
            program = f" ({child['xla']['programId']})" if _is_op(child) and child["name"] != "IDLE" else ""
            yield from _theirs(child, f"{way}/{child['name']}{program}")


def _metrics(name: str, ours: Row, metrics: Row) -> Iterator[Field]:
    yield Field(f"{name}: rawTime", float(ours["self_time_ps"]), metrics["rawTime"])
    yield Field(f"{name}: occurrences", float(ours["n_occurrences"]), metrics["occurrences"])
    yield Field(f"{name}: avgTimePs", number(ours["avg_time_ps"]), metrics["avgTimePs"])
    yield Field(f"{name}: rawFlops", number(ours["model_flops"]), metrics["rawFlops"])
    yield Field(f"{name}: bf16Flops", number(ours["model_flops"]), metrics["bf16Flops"])
    # The peer multiplies the utilization with the node's share of the time.
    used = number(ours["flops_fraction"]) * ours["time_fraction"]
    yield Field(f"{name}: flops", used, metrics["flops"])
    yield Field(f"{name}: uncappedFlops", used, metrics["uncappedFlops"])
    yield Field(f"{name}: HBM bytes", number(ours["hbm_bytes"]), metrics["rawBytesAccessedArray"][0])
    shares = ("hbm_fraction", "on_chip_read_fraction", "on_chip_write_fraction")
    for title, share, peer in zip(
        ("HBM", "on-chip read", "on-chip write"), shares, metrics["bandwidthUtils"], strict=True
    ):
        yield Field(f"{name}: {title} utilization", number(ours[share]), peer)
    yield Field(f"{name}: on-chip bytes", "[0, 0]", str(metrics["rawBytesAccessedArray"][1:]))
    known = {
        "rawTime",
        "occurrences",
        "avgTimePs",
        "rawFlops",
        "bf16Flops",
        "flops",
        "uncappedFlops",
        "bandwidthUtils",
        "rawBytesAccessedArray",
        "normalizedTimePs",
    }
    yield Field(f"{name}: metrics that are not compared", "", ", ".join(sorted(set(metrics) - known)))


def _operation(session: Session, name: str, ours: Row, node: Row) -> Iterator[Field]:
    """What the card says of one operation."""
    said = node["xla"]
    details = op_profile.TOOL.run(session, None, {"op": ours["name"], "program": ours["program"]}, "op")
    facts = {row["name"]: row["value"] for row in table(details.tables["facts"])}
    yield Field(f"{name}: expression", facts.get("HLO", ""), said["expression"])
    yield Field(f"{name}: provenance", ours["provenance"], said["provenance"])
    yield Field(f"{name}: category", facts.get("Category", ""), said["category"])
    yield Field(f"{name}: programId", _id(ours["program"]), said["programId"])
    source = said["sourceInfo"]
    place = f"{source['fileName']}:{source['lineNumber']}" if source["fileName"] else ""
    yield Field(f"{name}: source", facts.get("Source", ""), place)
    stack = [row["place"] for row in table(details.tables["stack"])]
    yield Field(
        f"{name}: stack", json.dumps(sorted(stack)), json.dumps(sorted(_frames(source["stackFrame"])))
    )
    never = {
        key: said[key] for key in ("op", "computationPrimitiveSize", "fingerprint", "xprofKernelMetadata")
    }
    yield Field(f"{name}: what the peer leaves empty", str(["", 0, "0", ""]), str(list(never.values())))
    known = {*never, "expression", "provenance", "category", "programId", "sourceInfo"}
    yield Field(f"{name}: parts that are not compared", "", ", ".join(sorted(set(said) - known)))
    inside = (
        {row["name"]: row for row in table(details.tables["contents"])}
        if "contents" in details.tables
        else {}
    )
    if node["children"]:
        yield Field(
            f"{name}: contents",
            ", ".join(sorted(inside)),
            ", ".join(sorted(child["name"] for child in node["children"])),
        )
        for child in node["children"]:
            if child["name"] in inside:
                mine, inner = inside[child["name"]], f"{name}/{child['name']}"
                yield Field(
                    f"{inner}: provenance", mine["provenance"], child["xla"]["provenance"].removesuffix(":")
                )
                yield Field(f"{inner}: rawTime", 0.0, child["metrics"]["rawTime"])
                yield Field(
                    f"{inner}: rawFlops", mine["flops"] * ours["n_occurrences"], child["metrics"]["rawFlops"]
                )


def _frames(stack: str) -> list[str]:
    """Lines of a stack without their column."""
    return [re.sub(r"(:\d+):\d+$", r"\1", line.strip()) for line in stack.splitlines() if line.strip()]
