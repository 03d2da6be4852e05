"""graph_viewer: the instructions around one instruction of a compiled program, their times, and the whole
program as text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tb_tpuprof.analysis.device.hardware import hardware
from tb_tpuprof.analysis.hlo.dot import dot_text, json_text
from tb_tpuprof.analysis.hlo.graph import MOST_NODES, GraphOptions, HloGraph, neighborhood
from tb_tpuprof.analysis.hlo.search import matching_rows
from tb_tpuprof.analysis.hlo.text.printer import LONG, SHORT, module_text
from tb_tpuprof.analysis.hlo.text.window import text_index
from tb_tpuprof.analysis.ops.hlo_times import NO_TIMES, ProgramTimes, hlo_times
from tb_tpuprof.errors import BadParameter, ToolUnavailable
from tb_tpuprof.session import Session
from tb_tpuprof.tools.base import File, Params, Question
from tb_tpuprof.tools.graph_viewer import declared
from tb_tpuprof.tools.graph_viewer.tables import (
    Timed,
    chosen_table,
    computations_table,
    edges_table,
    hot_table,
    lines_table,
    matches_table,
    nodes_table,
    programs_table,
    source_text,
)
from tb_tpuprof.tools.payload import Diagnostic, NextStep, Payload, Subject, Verdict
from tb_tpuprof.tools.program_choice import has_programs, program_named, without_programs
from tb_tpuprof.tools.spec import Number, fill_scalars
from tb_tpuprof.tools.sums import summed
from tb_tpuprof.tools.tool import Tool
from tb_tpuprof.trace.hlo import HloModule
from tb_tpuprof.trace.hlo_programs import Program, Programs
from tb_tpuprof.units import counted, format_fraction, format_time

_TEXTS = {"short": SHORT, "long": LONG}
_PLAIN_TEXT = "text/plain; charset=utf-8"
_MOST_SEARCHED = 200  # characters


@dataclass(frozen=True)
class _Source:
    """A host's programs, and the times of their instructions by program id if requested: sums over
    `n_devices` of a kind.
    """

    programs: Programs
    times: Mapping[int, ProgramTimes]
    with_times: bool
    kind: str = ""
    n_devices: int = 0

    def total_ps(self, program: Program) -> int:
        return int(self.times.get(program.program_id, NO_TIMES).time_ps.sum())


def view(session: Session, hosts: tuple[str, ...], params: Params) -> Payload:
    """The graph around `op`."""
    source = _source(session, hosts[0], bool(params["times"]))
    program, timed = _opened(source, params)
    module = timed.module
    center = _center(timed, str(params.get("op", "")))
    graph = _graph(timed, center, params)
    tables = {
        "nodes": nodes_table(timed, graph, bool(params["metadata"])),
        "edges": edges_table(module, graph),
        **({"hot": hot_table(timed)} if source.with_times else {}),
        "computations": computations_table(module),
        "programs": programs_table(
            source.programs, [source.total_ps(program) for program in source.programs]
        ),
        "chosen": chosen_table(module, program, center),
    }
    scalars = fill_scalars(
        declared.PAGE_SCALARS,
        {
            "n_instructions": module.n_instructions,
            "n_computations": len(module.computations),
            **(_times(timed, center, source) if source.with_times else {}),
            "n_cut": graph.n_cut,
            "center": center,
        },
    )
    verdict = _verdict(program, timed, center, source)
    return Payload(TOOL.name, session.run, hosts, tables, scalars, verdict, _diagnostics(module))


def search_view(session: Session, hosts: tuple[str, ...], params: Params) -> Payload:
    """The instructions that contain a text. Raises BadParameter if the text is too long."""
    query = str(params["text"])
    if len(query) > _MOST_SEARCHED:
        raise BadParameter("text", query, f"a text of at most {_MOST_SEARCHED} characters")
    _, timed = _opened(_source(session, hosts[0], bool(params["times"])), params)
    rows = matching_rows(timed.module, query).tolist()
    if len(timed.times.rows):
        rows.sort(key=lambda row: -timed.times.at(row)[0])
    return Payload(TOOL.name, session.run, hosts, {"matches": matches_table(timed, rows)})


def text_view(session: Session, hosts: tuple[str, ...], params: Params) -> Payload:
    """Lines of the program's text."""
    module = _to_write(session, hosts, params)[1]
    index = text_index(module, _TEXTS[str(params["style"])])
    first = min(int(params["first_line"]), max(0, index.n_lines - 1))
    row = module.find(str(params["op"])) if "op" in params else -1
    line = index.line_of(row) if row >= 0 else -1
    op_line = Number(line) if line >= 0 else Number(None, "it has no line of its own")
    return Payload(
        TOOL.name,
        session.run,
        hosts,
        {"lines": lines_table(index.lines(first, int(params["n_lines"])), first)},
        fill_scalars(declared.TEXT_SCALARS, {"n_lines": index.n_lines, "op_line": op_line}),
    )


def _source(session: Session, host: str, with_times: bool) -> _Source:
    """Reads event times only if requested: reading just the programs takes a fraction of the time. Raises
    ToolUnavailable without programs.
    """
    trace = session.trace(host) if with_times else session.outline(host)
    if not len(trace.programs):
        raise without_programs(TOOL.name, session)
    if not with_times:
        return _Source(trace.programs, {}, False)
    machine = hardware(trace)
    return _Source(
        trace.programs,
        hlo_times(trace),
        True,
        machine.kind,
        machine.n_devices if machine.kind == "TPU" else 0,
    )


def _times(timed: Timed, center: int, source: _Source) -> dict[str, Number]:
    time, n_runs = timed.times.at(center)
    total = timed.total_ps
    each, of_op = (summed(value, source.n_devices, source.kind) for value in (total, time))
    return {
        "program_time_ps": Number(total or None, each if total else ""),
        "op_time_ps": Number(time if n_runs else None, of_op if n_runs else ""),
    }


def _opened(source: _Source, params: Params) -> tuple[Program, Timed]:
    """The requested program, else the one whose instructions took the most time, else the one with the
    largest HLO.
    """
    programs, title = source.programs, str(params.get("program", ""))
    program = program_named(programs, title) if title else None
    if program is None and (op := str(params.get("op", ""))):
        program = _program_with(source, op)
    if program is None:
        program = max(programs, key=lambda candidate: (source.total_ps(candidate), candidate.size_bytes))
    module = programs.module(program)
    assert module is not None
    return program, Timed(module, source.times.get(program.program_id, NO_TIMES), source.with_times)


def _program_with(source: _Source, op: str) -> Program | None:
    """Of the programs that ran, the one that spent the most time in the instruction `op`."""
    best: tuple[int, Program | None] = (0, None)
    for number, times in source.times.items():
        module = source.programs.module(number)
        row = module.find(op) if module else -1
        time = times.at(row)[0]
        if row >= 0 and time > best[0]:
            best = (time, source.programs.get(number))
    return best[1]


def _center(timed: Timed, op: str) -> int:
    """The requested instruction, or the root of the requested computation; else the hottest, else the
    entry's root. Raises BadParameter.
    """
    module = timed.module
    if op:
        row = module.find(op)
        if row < 0 and (computation := module.find_computation(op)) >= 0:
            row = _root_of(module, computation)
        if row < 0:
            raise BadParameter(
                "op",
                op,
                f"an instruction or a computation of {module.info.name}, such as "
                f"{module.name(_first(timed))}",
            )
        return row
    return _first(timed)


def _first(timed: Timed) -> int:
    module = timed.module
    if len(timed.hottest):
        return int(timed.hottest[0])
    row = _root_of(module, module.info.entry) if module.info.entry >= 0 else -1
    if row < 0 and not module.n_instructions:
        raise ToolUnavailable(
            TOOL.name, f"the HLO of {module.info.name} has no instructions.", "Choose another program."
        )
    return max(row, 0)


def _root_of(module: HloModule, computation: int) -> int:
    root, rows = int(module.computations["root"][computation]), module.rows_of(computation)
    return root if root >= 0 else (rows[-1] if len(rows) else -1)


def _graph(timed: Timed, center: int, params: Params) -> HloGraph:
    names = [name for name in str(params.get("open", "")).split(",") if name]
    opened = frozenset(row for name in names[:MOST_NODES] if (row := timed.module.find(name)) >= 0)
    options = GraphOptions(
        int(params["radius"]), int(params["most_nodes"]), params["fusions"] == "opened", opened
    )
    return neighborhood(timed.module, center, options, lambda row: timed.times.at(row)[0])


def _verdict(program: Program, timed: Timed, center: int, source: _Source) -> Verdict:
    module = timed.module
    time, n_runs = timed.times.at(center)
    name = module.name(center)
    named = f"`{name}` ({module.opcode(center)})"
    if n_runs:
        each = f" ({per})" if (per := summed(time, source.n_devices, source.kind)) else ""
        share = f", {format_fraction(time / timed.total_ps)} of the program's time" if timed.total_ps else ""
        spent = f"{format_time(time)}{each} in {counted(n_runs, 'run')}{share}"
        is_first = center == _first(timed)
        text = (
            f"The most expensive instruction of `{program.title}` is {named}: {spent}."
            if is_first
            else f"{named} of `{program.title}` takes {spent}."
        )
    elif timed.with_times:
        text = f"The graph is centered on {named} of `{program.title}`. The trace has no events of it."
    else:
        text = f"The graph is centered on {named} of `{program.title}`. Reading its time from the events…"
    place, op_name = source_text(module, center), module.text("op_name", center)[:300]
    where = " at ".join(one for one in (f"`{op_name}`" if op_name else "", place) if one)
    details = (f"It comes from {where}.",) if where else ()
    steps = (NextStep("See the memory of the program", "memory_viewer", {"program": program.title}),)
    return Verdict("unknown", text, "", details, steps, (Subject("chosen", "op", name, {}),))


def _diagnostics(module: HloModule) -> tuple[Diagnostic, ...]:
    if not module.info.n_damaged:
        return ()
    text = (
        f"{module.info.n_damaged:,} parts of the HLO are unreadable or have dangling references; they are "
        "left out."
    )
    return (Diagnostic("warning", text, "; ".join(module.info.damage[:3])),)


def _to_write(session: Session, hosts: tuple[str, ...], params: Params) -> tuple[Program, HloModule]:
    """The program to write. Events are read only if they decide which program it is."""
    program, timed = _opened(_source(session, hosts[0], "program" not in params), params)
    return program, timed.module


def _proto(session: Session, hosts: tuple[str, ...], params: Params) -> tuple[str, Iterable[bytes]]:
    program, module = _to_write(session, hosts, params)
    return program.title, [module.data.tobytes()]


def _text_file(session: Session, hosts: tuple[str, ...], params: Params) -> tuple[str, Iterable[bytes]]:
    program, module = _to_write(session, hosts, params)
    return program.title, (f"{line}\n".encode() for line in module_text(module, _TEXTS[str(params["style"])]))


def _drawn(session: Session, hosts: tuple[str, ...], params: Params) -> tuple[str, HloModule, HloGraph]:
    program, timed = _opened(_source(session, hosts[0], bool(params["times"])), params)
    center = _center(timed, str(params.get("op", "")))
    return f"{program.title}_{timed.module.name(center)}", timed.module, _graph(timed, center, params)


def _dot_file(session: Session, hosts: tuple[str, ...], params: Params) -> tuple[str, Iterable[bytes]]:
    name, module, graph = _drawn(session, hosts, params)
    return name, (f"{line}\n".encode() for line in dot_text(module, graph))


def _json_file(session: Session, hosts: tuple[str, ...], params: Params) -> tuple[str, Iterable[bytes]]:
    name, module, graph = _drawn(session, hosts, params)
    return name, [json_text(module, graph).encode()]


TOOL = Tool(
    name="graph_viewer",
    title="Graph viewer",
    group="Compiler",
    summary="The instructions of a compiled program and how values flow between them",
    view=view,
    available=has_programs,
    needs_trace=False,
    hosts="one",
    params=declared.PAGE_PARAMS,
    tables=declared.PAGE_TABLES,
    scalars=declared.PAGE_SCALARS,
    tiles=(),
    questions=(
        Question(
            "search",
            "Instructions whose name, opcode or framework op contains a text",
            search_view,
            declared.SEARCH_PARAMS,
            (declared.MATCHES,),
        ),
        Question(
            "text",
            "Lines of the program's text",
            text_view,
            declared.TEXT_PARAMS,
            (declared.LINES,),
            declared.TEXT_SCALARS,
        ),
    ),
    files=(
        File(
            "proto",
            "pb",
            "application/octet-stream",
            _proto,
            declared.PROTO_PARAMS,
            "The program as HloProto",
        ),
        File("hlo", "txt", _PLAIN_TEXT, _text_file, declared.HLO_PARAMS, "The program as text"),
        File("dot", "dot", _PLAIN_TEXT, _dot_file, declared.DRAWN_PARAMS, "The graph as DOT for Graphviz"),
        File("graph", "json", "application/json", _json_file, declared.DRAWN_PARAMS, "The graph as JSON"),
    ),
)
