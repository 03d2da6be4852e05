"""The live comparison of compiled operations: HLO stats, op profile and roofline of a synthetic TPU run,
field by field.
"""

from __future__ import annotations

import math
from typing import Any

from tb_tpuprof.analysis.hlo.memory_accesses import SPACES
from tb_tpuprof.session import Session
from tb_tpuprof.tools.hlo_stats import view as hlo_stats
from tb_tpuprof.tools.op_profile import view as op_profile
from tb_tpuprof.tools.roofline_model import view as roofline_model
from tests.conformance.live_devices import Field, table
from tests.conformance.peer import rows

TOOLS = ("hlo_stats", "op_profile", "roofline_model")
_GIB, _US = 2**30, 1e-6
_TIMES = {
    "occurrences": ("n_occurrences", 1.0),
    "total_time": ("total_time_ps", _US),
    "total_self_time": ("total_self_time_ps", _US),
    "avg_time": ("avg_time_ps", _US),
    "avg_self_time": ("avg_self_time_ps", _US),
}
_RATES = {
    "measured_memory_bw": ("memory_bandwidth_bytes_per_s", 1 / _GIB),
    "hbm_bw": ("hbm_bytes_per_s", 1 / _GIB),
    "cmem_read_bw": ("cmem_read_bytes_per_s", 1 / _GIB),
    "cmem_write_bw": ("cmem_write_bytes_per_s", 1 / _GIB),
    "operational_intensity": ("all_memories_flops_per_byte", 1.0),
}
HLO = {
    **_TIMES,
    **_RATES,
    "total_self_time_percent": ("device_time_fraction", 100.0),
    "model_flop_rate": ("flop_rate_flops_per_s", 1e-9),
}
MEASURES = {
    **_RATES, "total_time": ("total_time_ps", _US), "total_time_per_core": ("time_per_device_ps", _US),
    "measured_flop_rate": ("flop_rate_flops_per_s", 1e-9), "model_flop_rate": ("model_flops_per_s", 1e-9),
    **{f"vmem_{way}_bw": (f"vmem_{way}_bytes_per_s", 1 / _GIB) for way in ("read", "write")},
    **{f"{space}_operational_intensity": (f"{space}_flops_per_byte", 1.0) for space in SPACES},
    "compute_efficiency": ("compute_fraction", 1.0), "max_mem_bw_utilization": ("memory_fraction", 1.0),
    "roofline_efficiency": ("efficiency_fraction", 1.0), "optimal_flop_rate": ("optimal_flops_per_s", 1e-9),
    "bottleneck_operational_intensity": ("bound_flops_per_byte", 1.0),
}  # fmt: skip
ROOFLINE = {
    **MEASURES,
    **_TIMES,
    "total_self_time_percent": ("device_time_fraction", 1.0),
    "total_time_in_percentage": ("time_fraction", 1.0),
}


def fields(session: Session, answers: dict[str, Any]) -> list[tuple[str, Field]]:
    """(tool, field) of all three tools."""
    found = [("hlo_stats", field) for field in _stats(session, answers["hlo_stats"])]
    found += [("op_profile", field) for field in _tree(session, answers["op_profile"])]
    return found + [("roofline_model", field) for field in _roofline(session, answers["roofline_model"][0])]


def _number(value: Any, factor: float) -> float:
    return 0.0 if math.isnan(value) else float(value) * factor


def _columns(
    name: str, mine: dict[str, Any], peer: dict[str, Any], columns: dict[str, tuple[str, float]]
) -> list[Field]:
    found = [
        Field(f"{name}: {theirs}", _number(mine[ours], factor), peer[theirs])
        for theirs, (ours, factor) in columns.items()
    ]
    return [*found, Field(f"{name}: bound_by", str(mine["nearest_limit"]), peer["bound_by"])]


def _stats(session: Session, answer: Any) -> list[Field]:
    mine = table(hlo_stats.TOOL.run(session, None, {}).tables["ops"])
    peer = {row["hlo_op_name"]: row for row in rows(answer)}
    main = [row for row in mine if row["core"] == "TensorCore"]
    found = [Field("operations", ", ".join(sorted(row["op"] for row in main)), ", ".join(sorted(peer)))]
    return found + [
        field for row in main if row["op"] in peer for field in _columns(row["op"], row, peer[row["op"]], HLO)
    ]


def _tree(session: Session, answer: Any) -> list[Field]:
    found = []
    for idle, field in (("true", "byProgram"), ("false", "byProgramExcludeIdle")):
        nodes = table(op_profile.TOOL.run(session, None, {"idle": idle}).tables["nodes"])
        by_name = {row["name"]: row for row in nodes if row["kind"] in ("category", "idle")}
        program = next(
            (node for node in answer[field]["children"] if node["name"] != "IDLE"), {"children": []}
        )
        peers = {node["name"]: node["metrics"] for node in program["children"]}
        peers |= {
            node["name"]: node["metrics"] for node in answer[field]["children"] if node["name"] == "IDLE"
        }
        found.append(Field(f"{field}: nodes", ", ".join(sorted(by_name)), ", ".join(sorted(peers))))
        for name in sorted(set(by_name) & set(peers)):
            row, metrics = by_name[name], peers[name]
            found.append(Field(f"{field}: {name}: time", float(row["self_time_ps"]), metrics["rawTime"]))
            found.append(
                Field(
                    f"{field}: {name}: HBM", _number(row["hbm_fraction"], 1.0), metrics["bandwidthUtils"][0]
                )
            )
            used = _number(row["flops_fraction"], 1.0) * row["time_fraction"]
            found.append(Field(f"{field}: {name}: FLOPS", used, metrics["flops"]))
    return found


def _roofline(session: Session, answer: Any) -> list[Field]:
    found = []
    for with_transfers in (True, False):
        payload = roofline_model.TOOL.run(session, None, {"transfers": with_transfers})
        label = "all" if with_transfers else "without infeed and outfeed"
        peers = [row for row in rows(answer) if row["include_infeed_outfeed"] == with_transfers]
        ops = {row["operation"]: row for row in peers if row["rank"]}
        mine = table(payload.tables["ops"])
        found.append(
            Field(f"{label}: operations", ", ".join(sorted(r["op"] for r in mine)), ", ".join(sorted(ops)))
        )
        for row in mine:
            if row["op"] in ops:
                found += _columns(f"{label}: {row['op']}", row, ops[row["op"]], ROOFLINE)
        programs = {row["step"]: row for row in peers if not row["rank"]}
        for row in table(payload.tables["programs"]):
            if row["step"] in programs:
                found += _columns(f"{label}: step {row['step']}", row, programs[row["step"]], MEASURES)
    return found
