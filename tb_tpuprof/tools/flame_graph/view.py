"""flame_graph: which function takes the time, from the stacks of any threads in any steps."""

from __future__ import annotations

from tb_tpuprof.analysis.flame.frames import Family
from tb_tpuprof.analysis.flame.modules import has_modules
from tb_tpuprof.session import Session
from tb_tpuprof.tools.base import Param, Params, Question
from tb_tpuprof.tools.flame_graph.files import files
from tb_tpuprof.tools.flame_graph.flame import MODULES, SCOPES, STACKS, Flame, open_flame
from tb_tpuprof.tools.flame_graph.rows import functions_table, nodes_table, steps_table, threads_table
from tb_tpuprof.tools.flame_graph.sides import function_view
from tb_tpuprof.tools.flame_graph.tables import FUNCTION_SCALARS, FUNCTION_TABLES, SCALARS, TABLES
from tb_tpuprof.tools.flame_graph.verdict import verdict_of
from tb_tpuprof.tools.payload import Diagnostic, Payload
from tb_tpuprof.tools.spec import fill_scalars
from tb_tpuprof.tools.tool import Tool
from tb_tpuprof.tools.verdicts import limits_of, with_limits
from tb_tpuprof.units import counted


def view(session: Session, hosts: tuple[str, ...], params: Params) -> Payload:
    """The tree of the chosen threads and steps, and the functions in it."""
    flame = open_flame(session, hosts, params)
    nodes, functions = flame.nodes(), flame.functions()
    n = flame.n_windows
    values: dict[str, float] = {
        "step_time_ps": flame.durations_ps[0] / n[0],
        "n_steps_shown": n[0] if flame.has_steps else 0,
        "has_scopes": any(host.trace.event_stats.has("hlo_op") for host in flame.hosts)
        or any(host.trace.metadata_stats.has("symbol_id") for host in flame.hosts),
        "has_modules": any(has_modules(host.trace) for host in flame.hosts),
        "yours_ps": sum(one.with_calls_ps[0] for one in functions) / n[0],
        "waiting_ps": _waiting_ps(flame) / n[0],
    }
    if len(n) > 1:
        values |= {"other_step_time_ps": flame.durations_ps[1] / n[1], "n_other_steps": n[1]}
    tables = {
        "functions": functions_table(flame, functions),
        "nodes": nodes_table(flame, nodes),
        "threads": threads_table(flame),
        "steps": steps_table(flame),
    }
    shown = tuple(host.view.host for host in flame.hosts)
    judged = tuple(host for host in hosts if host not in flame.apart)
    verdict = with_limits(TOOL.name, verdict_of(flame, functions), limits_of(session, judged))
    return Payload(
        TOOL.name, session.run, shown, tables, fill_scalars(SCALARS, values), verdict, _notices(flame)
    )


def _waiting_ps(flame: Flame) -> int:
    total = 0
    for host in flame.hosts:
        is_waiting = host.found.family == Family.WAITING
        for group in flame.shown:
            total += int(host.tree.own_ps[0, is_waiting & (host.tree.group == group)].sum())
    return total


def _notices(flame: Flame) -> tuple[Diagnostic, ...]:
    notices = list(flame.view.diagnostics())
    if flame.apart:
        were = "was" if len(flame.apart) == 1 else "were"
        text = (
            f"{flame.apart[0]}{f' and {len(flame.apart) - 1:,} more' if len(flame.apart) > 1 else ''} {were} "
            "captured at another time and left out: captures that do not overlap in time are not averaged."
        )
        notices.append(Diagnostic("warning", text, "Choose hosts of one capture."))
    if flame.n_left_out:
        left_out = "is" if flame.n_left_out == 1 else "are"
        notices.append(
            Diagnostic(
                "info",
                f"{counted(flame.n_left_out, 'thread')} with the fewest events {left_out} left out.",
                "Choose fewer hosts to see their threads.",
            )
        )
    return tuple(notices)


_MODE = Param(
    "mode",
    "Tree",
    "choice",
    STACKS,
    "stacks: calls of threads; scopes: compiled operations by the framework's names; modules: PyTorch's "
    "layers",
    (STACKS, SCOPES, MODULES),
)
_STEPS = Param(
    "steps",
    "Steps",
    "text",
    "all",
    "The steps to show: all (their mean), median, slowest, trace (also what is outside of steps), or the "
    "name or number of one",
)
_THREADS = Param(
    "threads",
    "Threads",
    "text",
    None,
    "Ids of threads or device lines, separated by commas; absent: those that run your code, else the busiest",
)
_ORDER = Param(
    "order",
    "Order",
    "choice",
    "merged",
    "merged: calls with the same callers are one; time: single calls of one step, in time order (the median "
    "step, unless one is chosen)",
    ("merged", "time"),
)
_AGAINST = Param("against", "Compare with", "text", None, "Other steps to compare with, chosen like `steps`")

TOOL = Tool(
    name="flame_graph",
    title="Flame graph",
    group="Time",
    summary="Which function takes the time, and who calls it",
    view=view,
    params=(_STEPS, _THREADS, _ORDER, _AGAINST, _MODE),
    tables=TABLES,
    scalars=SCALARS,
    questions=(
        Question(
            "function",
            "One function: its callers and callees, its longest calls, and its time in each step",
            function_view,
            (
                Param(
                    "function",
                    "Function",
                    "text",
                    None,
                    "The name of its events: column `key` of the page's tables",
                    is_required=True,
                ),
                _STEPS,
                _THREADS,
            ),
            FUNCTION_TABLES,
            FUNCTION_SCALARS,
        ),
    ),
    files=files((_STEPS, _THREADS, _ORDER, _MODE)),
)
