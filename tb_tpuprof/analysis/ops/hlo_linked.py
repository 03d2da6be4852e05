"""Operations of GPUs and of XLA:CPU → HloOps: events that name an HLO instruction, with the cost model's work
of these.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.cpu.runs import cpu_runs
from tb_tpuprof.analysis.device.hardware import hardware
from tb_tpuprof.analysis.device.precisions import relative_peak
from tb_tpuprof.analysis.events.hlo_links import HloLinks, hlo_links
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.hlo.product_precisions import PRECISIONS, product_precisions
from tb_tpuprof.analysis.hlo.work import ProgramCosts, Work
from tb_tpuprof.analysis.ops.gpu import first_of_runs
from tb_tpuprof.analysis.ops.hlo_record import HloOps, Words, instruction_category, program_titles, words_of
from tb_tpuprof.analysis.ops.metrics import sum_by
from tb_tpuprof.analysis.steps.gpu import stream_events
from tb_tpuprof.trace.hlo import HloModule
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]


def linked_ops(trace: Trace, kind: str) -> HloOps:
    """Operations by (program, name), whatever the path of calls.

    On GPUs `first_of_runs` defines an occurrence, and the span of a GPU goes from its first event's start to
    its last one's end. On CPUs the occurrences, their times and the span are those of `cpu_runs`.
    """
    links = hlo_links(trace)
    by_path, time_ps, self_ps, span_ps, n_devices = linked_runs(trace, links, kind)
    op = links.first_named[by_path]
    n_all = len(links.ops)
    count = np.bincount(op, minlength=n_all)
    used = np.flatnonzero(count)
    costs = ProgramCosts(trace)
    ops = [links.ops[i] for i in used.tolist()]
    names = _module_names(trace, links, used)
    modules = {number: costs.module(number, name) for number, name in names.items()}
    program = np.array([key.program_id for key in ops], np.int64)
    instruction = np.array([_instruction(modules[key.program_id], key.name) for key in ops], np.int64)
    n_occurrences, total_ps = count[used].astype(np.int64), sum_by(op, time_ps, n_all)[used]
    work = costs.work(program, instruction).times(n_occurrences)
    none = np.zeros(len(used), np.int64)
    category, provenance, source, twin = _texts(
        [(modules[key.program_id], row) for key, row in zip(ops, instruction.tolist(), strict=True)]
    )
    return HloOps(
        program=program,
        name=words_of([key.name for key in ops]),
        category=category,
        provenance=provenance,
        source=source,
        twin=twin,
        core=Words(none, ("",)),
        n_occurrences=n_occurrences,
        time_ps=total_ps,
        self_ps=sum_by(op, self_ps, n_all)[used],
        normalized_ps=total_ps,
        stall_ps=none,
        thread_ps=_thread_ps(trace, kind, links)[used],
        work_ps=total_ps,
        energy_j=_energy(trace, links, used),
        work=_at_precision(trace, work, modules, (program, instruction)),
        instruction=instruction,
        metadata=none - 1,
        host=none,
        span_ps=span_ps,
        n_devices=n_devices,
        kind=kind,
        programs=program_titles(trace, costs, np.unique(program).tolist()),
        unreadable=links.unreadable,
    )


def _at_precision(
    trace: Trace, work: Work, modules: dict[int, HloModule | None], location: tuple[Int64s, Int64s]
) -> Work:
    """The work with the share of the roof (`roof_flops`) of products whose operands have 8 bits. `location`:
    program and instruction of each operation.
    """
    (program, instruction), title = location, hardware(trace).title
    factors = np.array([1 / relative_peak(title, precision) for precision in PRECISIONS])
    factor = np.ones(len(program))
    for number, module in modules.items():
        if module is not None:
            ops = np.flatnonzero((program == number) & (instruction >= 0))
            factor[ops] = factors[module.memo.get(product_precisions, module)[instruction[ops]]]
    return work if (factor == 1).all() else replace(work, scaled_flops=work.flops * factor)


Runs = tuple[Int64s, Int64s, Int64s, int, int]


def linked_runs(trace: Trace, links: HloLinks, kind: str) -> Runs:
    """Operation (row of `links.ops`), time and self time in ps of each occurrence on GPUs or on host threads;
    span in ps and number of devices.
    """
    return _gpu_runs(trace, links) if kind == "GPU" else _cpu_runs(trace)


def _gpu_runs(trace: Trace, links: HloLinks) -> Runs:
    """Operation, time and self time of each occurrence; span and number of GPUs."""
    start, duration = trace.events["start_ps"], trace.events["duration_ps"]
    op, times, span_ps, n_devices = [], [], 0, 0
    for plane in planes(trace).gpus:
        rows = stream_events(trace, plane)
        if not len(rows):
            continue
        n_devices += 1
        span_ps += int((start[rows] + duration[rows]).max() - start[rows].min())
        selected = np.flatnonzero(np.isin(links.events, rows))
        if len(selected):
            selected_op = links.op[selected]
            first = first_of_runs(trace, links.events[selected].astype(np.intp), selected_op)
            op.append(selected_op[first])
            times.append(np.add.reduceat(duration[links.events[selected]], first))
    none = np.empty(0, np.int64)
    time_ps = np.concatenate([none, *times])
    return np.concatenate([none, *op]), time_ps, time_ps, span_ps, n_devices


def _cpu_runs(trace: Trace) -> Runs:
    """The same for XLA:CPU operations that name their program."""
    runs = cpu_runs(trace)
    selected = np.flatnonzero(runs.op >= 0)
    if not len(selected):
        none = np.empty(0, np.int64)
        return none, none, none, 0, 0
    return runs.op[selected], runs.elapsed_ps[selected], runs.self_ps[selected], runs.span_ps, runs.n_devices


def _thread_ps(trace: Trace, kind: str, links: HloLinks) -> Int64s:
    """Time in ps that threads worked on each operation, -1 if unknown (see `CpuRuns`)."""
    if kind != "CPU":
        return np.full(len(links), -1, np.int64)
    runs = cpu_runs(trace)
    has_op = runs.op >= 0
    op, thread_ps = links.first_named[runs.op[has_op]], runs.thread_ps[has_op]
    total = sum_by(op, np.maximum(thread_ps, 0), len(links))
    total[op[thread_ps < 0]] = -1
    return total


def _instruction(module: HloModule | None, name: str) -> int:
    return -1 if module is None else module.by_name.get(name, -1)


def _module_names(trace: Trace, links: HloLinks, used: Rows) -> dict[int, str]:
    """Programs that ran, by id: empty if the trace has HLO with this id, else the program's name in one of
    its events.
    """
    sample = np.zeros(len(links.ops), np.int64)
    sample[links.op] = links.events
    names: dict[int, str] = {}
    for i in used.tolist():
        number = links.ops[i].program_id
        if number not in names:
            has_hlo = trace.programs.get(number) is not None
            names[number] = (
                ""
                if has_hlo
                else str(dict(trace.source.event_stats(trace, int(sample[i]))).get("hlo_module", ""))
            )
    return names


def _texts(places: list[tuple[HloModule | None, int]]) -> list[Words]:
    """Category, provenance, source line and twin of instructions."""
    category, provenance, source, twin = [], [], [], []
    for module, row in places:
        if module is None or row < 0:
            category.append("unknown")
            provenance.append("")
            source.append("")
            twin.append("")
            continue
        category.append(instruction_category(module, row))
        op_name = module.text("op_name", row)
        provenance.append(op_name if not op_name or ":" in op_name else f"{op_name}:")
        source.append(_source(module, row))
        twin.append(module.text("deduplicated_name", row))
    return [words_of(texts) for texts in (category, provenance, source, twin)]


def _source(module: HloModule, row: int) -> str:
    """`file:line` of the innermost frame."""
    file, line = module.text("source_file", row), int(module.instructions["source_line"][row])
    if not file:
        frame = int(module.instructions["stack_frame"][row])
        stack = module.frames.stack(frame) if frame else []
        file, line = (stack[0].file, stack[0].line) if stack else ("", 0)
    return f"{file}:{line}" if file and line else file


def _energy(trace: Trace, links: HloLinks, used: Rows) -> npt.NDArray[np.float64]:
    """Joules that events state (`vdd_energy_j`), summed by operation."""
    sparse = trace.event_stats.floats("vdd_energy_j")
    if not len(sparse.owner):
        return np.zeros(len(used))
    value = np.zeros(trace.n_events)
    value[sparse.owner] = sparse.value
    op = links.first_named[links.op]
    energy_j: npt.NDArray[np.float64] = np.bincount(op, value[links.events], len(links)).astype(np.float64)
    return energy_j[used]
