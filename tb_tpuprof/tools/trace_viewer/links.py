"""An event's attributes → links to its rows on other pages: operation, program, kernel, pipeline and step."""

from __future__ import annotations

import json
import re

from tb_tpuprof.analysis.ops.labels import MAX_HLO_BYTES, hlo_parts
from tb_tpuprof.errors import ProfilerError
from tb_tpuprof.tools.payload import Table
from tb_tpuprof.tools.trace_viewer.tables import LINKS
from tb_tpuprof.trace.hlo_programs import Program
from tb_tpuprof.trace.trace import Trace

Links = list[tuple[str, str, dict[str, str]]]
_NO_KERNEL = re.compile("mem(cpy|set)", re.IGNORECASE)


def links_table(trace: Trace, about: dict[str, str], kind: str) -> Table:
    """Links of an event on a track of this kind, most relevant first."""
    hosts = {"hosts": about["host"]}
    links = _program_links(trace, about)
    if kind == "stream":
        name = about["full_name"]
        shown = {} if not name or _NO_KERNEL.match(name) else {"f.kernel": f"={name}"}
        links.append(
            ("Its row among all kernels" if shown else "All kernels", "kernel_stats", {**hosts, **shown})
        )
    if about["framework_op"]:
        links.append(_framework_link(about, hosts))
    if about["name"].startswith("Iterator"):
        links.append(("Its input pipeline", "tf_data_bottleneck_analysis", hosts))
    if about["step"]:
        links.append((f"Step {about['step']} among the others", "overview_page", hosts))
    return LINKS.fill(
        {
            "text": [text for text, _, _ in links],
            "tool": [tool for _, tool, _ in links],
            "params": [json.dumps(params) for _, _, params in links],
        }
    )


def _program_links(trace: Trace, about: dict[str, str]) -> Links:
    """Links to an XLA operation and its program; to the operation only if the program's HLO contains it."""
    hosts = {"hosts": about["host"]}
    links: Links = []
    program = trace.programs.find(about["hlo_module"]) if about["hlo_module"] else None
    parts = hlo_parts(about["hlo_op"])
    op = parts[-1].removeprefix("%") if parts else ""
    target = {**hosts, "program": program.title, "op": op} if program else hosts
    is_known = bool(program and op and _has_instruction(trace, program, op))
    if is_known:
        links.append(("What it computes and how fast", "op_profile", target))
    if op:
        shown = {**hosts, "f.op": f"={op}", **({"f.program": f"={program.title}"} if program else {})}
        links.append(("Its row among all XLA operations", "hlo_stats", shown))
        links.append(("Its point on the roofline", "roofline_model", shown))
    if is_known:
        links.append(("Its node in the graph", "graph_viewer", target))
    elif program:
        links.append((f"The graph of {program.name}", "graph_viewer", {**hosts, "program": program.title}))
    if program:
        links.append((f"The memory of {program.name}", "memory_viewer", {**hosts, "program": program.title}))
    return links


def _framework_link(about: dict[str, str], hosts: dict[str, str]) -> tuple[str, str, dict[str, str]]:
    """The operation's row for devices; on hosts, whose XLA operations have the compiler's names, the whole
    table.
    """
    if not about["section"].startswith(("GPU", "TPU")):
        return "All operations of the framework", "framework_op_stats", hosts
    operation = about["framework_op"].partition(":")[0]
    return "Its framework operation", "framework_op_stats", {**hosts, "f.operation": f"={operation}"}


def _has_instruction(trace: Trace, program: Program, op: str) -> bool:
    if program.size_bytes > MAX_HLO_BYTES:
        return False
    try:
        module = trace.programs.module(program)
    except ProfilerError:  # reported on the program's own page
        return False
    return module is not None and op in module.by_name
