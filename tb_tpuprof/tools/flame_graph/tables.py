"""The tables and numbers of the flame graph, and of one function."""

from __future__ import annotations

from tb_tpuprof.tools.source_lines import SOURCE_LINES
from tb_tpuprof.tools.spec import ColumnSpec, ScalarSpec, TableSpec, flag, number, text

_NO_FILE = "no file is recorded: not a Python function, or one of the built-in ones"
_NO_MEMORY = (
    "the trace has no allocations of it: they are recorded with torch.profiler.profile(profile_memory=True)"
)
_FAMILY = text(
    "family",
    "Family",
    "Kind of code: yours, library, runtime, operation or waiting",
    unknown="several nodes in one",
)
_KEY = text("key", "Event name", "As the trace names it", unknown="several nodes in one")
_PLACE = (
    text("file", "File", "File of the function's definition", unknown=_NO_FILE),
    number("line", "Line", "id", "Line of the function's definition", unknown=_NO_FILE),
    text(
        "package",
        "Package",
        "The installed package that the file's folder names",
        unknown="the trace names no folder of an installed package",
    ),
)


def _times(other: bool) -> tuple[ColumnSpec, ...]:
    prefix, of = ("other_", " of the steps to compare with") if other else ("", "")
    return (
        number(
            f"{prefix}self_ps",
            "Self (B)" if other else "Self",
            "ps",
            f"Per step{of}: without the calls below",
            is_optional=other,
        ),
        number(
            f"{prefix}total_ps",
            "Total (B)" if other else "Total",
            "ps",
            f"Per step{of}: with the calls below",
            is_optional=other,
        ),
        number(
            f"{prefix}calls", "Calls (B)" if other else "Calls", "count", f"Per step{of}", is_optional=other
        ),
    )


THREADS = TableSpec(
    "threads",
    "Threads",
    (
        text("name", "Thread", "Name of the thread, pool or device line"),
        text("section", "Section", "Host threads, or the kind of device"),
        text("kind", "Kind", "Kind of track, as in the trace viewer"),
        number("n_threads", "Threads", "count", "Threads or device lines that are shown as one"),
        number("busy_ps", "Covered", "ps", "Per step: time with an event, summed over the threads"),
        number(
            "busy_fraction",
            "Covered share",
            "fraction",
            "Share of the steps in which the thread has an event, mean of the threads",
            unknown="scopes and modules are summed over devices and threads, or its host lacks the step",
        ),
        flag("is_shown", "Shown", "Whether the page shows it"),
        text("tracks", "Tracks", "Their ids in the trace viewer, as the parameter `threads` takes them"),
    ),
    "A row per thread, pool of threads, or kind of device line, in the order of the trace viewer",
)
NODES = TableSpec(
    "nodes",
    "Flame graph",
    (
        number("thread", "Thread", "id", "Row of `threads`"),
        number("parent", "Parent", "id", "Row of the caller, -1 for a root"),
        text("name", "Function", "The function, operation, annotation or scope"),
        *_PLACE,
        _FAMILY,
        *_times(other=False),
        *_times(other=True),
        number("n_smaller", "Smaller", "count", "Nodes too small to be shown that this row sums up, else 0"),
        number(
            "start_ps",
            "Start",
            "ps",
            "Since the step's start, with order=time",
            is_optional=True,
        ),
        number(
            "flops",
            "FLOPs",
            "count",
            "Floating-point operations per step, of scopes",
            is_optional=True,
            unknown="the program states no FLOPs for the scope",
        ),
        number(
            "allocated_bytes",
            "Allocated",
            "bytes",
            "Of modules: bytes allocated per step, with the modules within; of devices' memory, if recorded",
            is_optional=True,
            unknown=_NO_MEMORY,
        ),
        number(
            "net_bytes",
            "Net",
            "bytes",
            "Of modules: the bytes allocated less those freed in the module, per step",
            is_optional=True,
            formula="allocated − freed",
            unknown=_NO_MEMORY,
        ),
        number(
            "peak_bytes",
            "Peak",
            "bytes",
            "Of modules: how far the memory in use rises above its level at the start of a call, at most",
            is_optional=True,
            unknown="no call of the module allocates or frees memory, or it is no module; without "
            "profile_memory=True no allocation is recorded",
        ),
        text(
            "phase",
            "Phase",
            "Part of the step: forward, backward or optimizer; of scopes and modules",
            is_optional=True,
            unknown="the trace does not say which part of the step it is",
        ),
        _KEY,
    ),
    "A row per call path, or per call with order=time: callers before callees, depth first, at most 4,000 "
    "per host. The children of a row take no longer than the row",
)
FUNCTIONS = TableSpec(
    "functions",
    "Functions",
    (
        text("name", "Function", "Name of the function, operation or annotation"),
        *_PLACE,
        _FAMILY,
        number(
            "with_calls_ps",
            "Self with library calls",
            "ps",
            "Per step: your function without other functions of yours, programs and operations, but with the "
            "library functions and waits that it calls",
            unknown="not your code",
        ),
        number("waiting_ps", "Waiting", "ps", "The part of it that waits", unknown="not your code"),
        *_times(other=False),
        *_times(other=True),
        number(
            "self_fraction",
            "Self share",
            "fraction",
            "Self time as a share of the time that the shown threads cover",
            formula="self time ÷ covered time of the shown threads",
        ),
        _KEY,
    ),
    "At most 300, yours first, by self time with library calls; then those of others, by self time",
)
STEPS = TableSpec(
    "steps",
    "Steps",
    (
        text("step", "Step", "Name or number of the step"),
        number("input_ps", "Waiting for input", "ps", "Time of the step that waits for its next batch"),
        number(
            "rest_ps",
            "Everything else",
            "ps",
            "The rest of the step",
            formula="step time − waiting for input",
        ),
        flag("is_shown", "Shown", "Whether the graph includes the step"),
        flag("is_compared", "Compared", "Whether the step is one of those to compare with"),
    ),
    "A row per step of the first host, at most 5,000",
)
TABLES = (FUNCTIONS, NODES, THREADS, STEPS)
SCALARS = (
    ScalarSpec(
        "step_time_ps", "Step time", "ps", "Mean of the steps shown; without steps, the trace's duration"
    ),
    ScalarSpec(
        "n_steps_shown", "Steps shown", "count", "Number of steps shown, of all hosts; 0: the whole trace"
    ),
    ScalarSpec("other_step_time_ps", "Step time (B)", "ps", "Of the steps to compare with", is_optional=True),
    ScalarSpec("n_other_steps", "Steps (B)", "count", "The steps to compare with", is_optional=True),
    ScalarSpec("has_scopes", "Has scopes", "", "Whether `mode=scopes` has something to show"),
    ScalarSpec("has_modules", "Has modules", "", "Whether `mode=modules` has something to show"),
    ScalarSpec("yours_ps", "Your code", "ps", "Per step: self time with library calls on the threads shown"),
    ScalarSpec("waiting_ps", "Waiting", "ps", "Per step: self time of calls that wait, on the threads shown"),
)

SIDES = TableSpec(
    "sides",
    "Callers and callees",
    (
        text("side", "Side", "Which tree it belongs to: callers or callees"),
        number("parent", "Parent", "id", "Row towards the function, -1 for the function itself"),
        text("name", "Function", "Name of the caller or callee"),
        *_PLACE,
        _FAMILY,
        number("total_ps", "Time", "ps", "Per step: of the function's calls, or of what they call"),
        number("calls", "Calls", "count", "Number of calls per step"),
        _KEY,
    ),
    "Two trees that begin at the function: the paths that lead to it, and those that lead on from it",
)
CALLS = TableSpec(
    "longest_calls",
    "Longest calls",
    (
        text("step", "Step", "The step in which the call begins", unknown="it begins in no step"),
        text("host", "Host", "Name of the host"),
        number("event", "Event", "id", "As numbered in the trace viewer"),
        number("start_ps", "Start", "ps", "Start of the call, since the view's start"),
        number("duration_ps", "Duration", "ps", "Duration of the call"),
    ),
    "At most 20 calls in the steps shown",
)
BY_STEP = TableSpec(
    "by_step",
    "Steps",
    (
        text("step", "Step", "Name or number of the step"),
        number("self_ps", "Self", "ps", "Time of the function in the step without the calls below"),
        number("total_ps", "Total", "ps", "Time of the function in the step with the calls below"),
        flag("is_shown", "Shown", "Whether the graph includes the step"),
    ),
    "The function in each step of the first host that calls it, at most 5,000",
)
FUNCTION_TABLES = (SIDES, CALLS, BY_STEP, SOURCE_LINES)
FUNCTION_SCALARS = (
    ScalarSpec("self_ps", "Self time", "ps", "Time of the function per step without the calls below"),
    ScalarSpec("total_ps", "Total time", "ps", "Per step; recursive calls count once"),
    ScalarSpec("calls", "Calls", "count", "Number of calls per step"),
    ScalarSpec("n_calls", "All calls", "count", "In all steps shown"),
)
