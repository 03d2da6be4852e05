"""What exposed communication costs, what it is made of, and what hiding it could save, in sentences."""

from __future__ import annotations

from typing import Literal

from tb_tpuprof.analysis.comm.activity import Traffic
from tb_tpuprof.analysis.comm.join import Comm, OpTimes
from tb_tpuprof.tools.comm_costs import Costs, is_whole
from tb_tpuprof.tools.communication.tables import last_name, unit_word
from tb_tpuprof.tools.payload import NextStep, Subject, Verdict
from tb_tpuprof.units import format_fraction, format_time

_BAD, _WARN, _WORTH_A_WORD = 0.1, 0.03, 0.01
_MUCH_WAITING = 0.1
_ANY_GAIN = 0.0005  # of the step
_SUBJECTS = {
    Traffic.DEVICES: ("communication", "it", "costs"),
    Traffic.HOST: ("copies to and from the host", "them", "cost"),
    Traffic.LOCAL: ("copies within the device", "them", "cost"),
}


def verdict(comm: Comm) -> Verdict:
    """What a step pays for communication that nothing hides."""
    costs = Costs(comm)
    if costs.exposed_fraction < _WORTH_A_WORD:
        return Verdict("good", _almost_nothing(comm, costs), "", (), _links(comm))
    noun, it, verb = _SUBJECTS[costs.traffic]
    gain = format_fraction(costs.gain_fraction)
    saving = f"save at most {gain}" if costs.gain_fraction >= _ANY_GAIN else "save almost nothing"
    text = f"Exposed {noun} {verb} {_cost(comm, costs)}; hiding {it} fully would {saving}."
    sentences = _top(comm, costs), _limits(comm, costs), _wait(comm, costs)
    top = comm.ops[0]
    subjects = (Subject("ops", "op", top.op.name, {"exposed_ps": top.exposed_ps}),)
    details = tuple(sentence for sentence in sentences if sentence)
    return Verdict(_level(costs.exposed_fraction), text, "collective", details, _links(comm), subjects)


def _level(exposed_fraction: float) -> Literal["good", "warn", "bad"]:
    return "bad" if exposed_fraction >= _BAD else "warn" if exposed_fraction >= _WARN else "good"


def _cost(comm: Comm, costs: Costs) -> str:
    """`2.10 ms (17.0%) of each step`."""
    base = "of the capture" if is_whole(comm) else "of each step"
    return f"{format_time(costs.exposed_ps)} ({format_fraction(costs.exposed_fraction)}) {base}"


def _almost_nothing(comm: Comm, costs: Costs) -> str:
    moves = any(one.op.traffic == Traffic.DEVICES for one in comm.ops)
    hidden = format_fraction(costs.hidden_ps / costs.moved_ps) if costs.moved_ps else "0%"
    return (
        f"{'Communication costs' if moves else 'Copies cost'} almost nothing: "
        f"{_cost(comm, costs)} is exposed, and compute hides {hidden} of {'it' if moves else 'their time'}."
    )


def _top(comm: Comm, costs: Costs) -> str:
    """The operation that is exposed most, and why."""
    top = comm.ops[0]
    share = format_fraction(top.exposed_ps / costs.exposed_ps)
    amount = f"{share} of this time is" if len(comm.ops) > 1 else "All of it is"
    return f"{amount} `{top.op.name}`: {_why(comm, top)}."


def _why(comm: Comm, top: OpTimes) -> str:
    hidden = top.hidden_ps / top.total_ps if top.total_ps else 0.0
    if not top.op.is_async and comm.pod.kind == "TPU":
        return "it is not asynchronous, so its core does nothing else meanwhile"
    if hidden < _WORTH_A_WORD:
        return "nothing computes while it runs"
    return f"compute hides only {format_fraction(hidden)} of it"


def _limits(comm: Comm, costs: Costs) -> str:
    """What keeps the saving below the exposed time: data moves for longer than compute could hide."""
    if costs.gain_ps >= costs.exposed_ps - costs.waiting_ps - _WORTH_A_WORD * costs.exposed_ps:
        return ""
    moved = (comm.hidden_ps + comm.exposed_ps).sum(axis=2).mean(axis=1)
    n_long, n = int((moved > comm.compute_ps.mean(axis=1)).sum()), len(comm.cores)
    if n_long == n:
        computes = format_time(float(comm.compute_ps.mean()))
        moves = format_time(costs.moved_ps)
        return f"Data moves for {moves}, longer than the {computes} of compute that could hide it."
    if not n_long:
        return "In some steps data moves for longer than the compute that could hide it."
    where = f"On {n_long:,} of {n:,} {unit_word(comm)}s"
    return f"{where}, data moves for longer than the compute that could hide it."


def _wait(comm: Comm, costs: Costs) -> str:
    """How much of it is waiting for others, which hiding does not remove."""
    if costs.waiting_ps < _MUCH_WAITING * costs.exposed_ps:
        return ""
    waits = max((one.pod for one in comm.ops if one.pod), key=lambda one: one.wait_ps, default=None)
    last = last_name(comm, waits) if waits else ""
    whom = f"mostly for `{last}`" if last else f"for the last {unit_word(comm)} to arrive"
    return (
        f"Of the {format_time(costs.exposed_ps)}, {format_time(costs.waiting_ps)} is waiting, {whom}, which "
        "hiding does not remove."
    )


def _interval(comm: Comm) -> dict[str, str]:
    """The step that the page draws, as the timeline's parameters; none for a whole capture."""
    if is_whole(comm):
        return {}
    device, step = comm.shown
    begin = int(comm.begin_ps[device, step])
    end = begin + int(comm.total_ps[device, step])
    return {"hosts": comm.hosts[int(comm.host_of[device])], "start_ps": str(begin), "end_ps": str(end)}


def _links(comm: Comm) -> tuple[NextStep, ...]:
    has_lines = comm.pod.kind == "TPU" or (
        comm.pod.kind == "GPU" and any(one.op.traffic == Traffic.DEVICES for one in comm.ops)
    )
    lines = ", on the lines Exposed communication" if has_lines else ""
    look = NextStep(f"See it in the trace viewer{lines}", "trace_viewer", _interval(comm))
    waits = float(comm.waiting_ps.mean()) > _WORTH_A_WORD * float(comm.total_ps.mean())
    compare = (NextStep(f"Compare the {unit_word(comm)}s in the pod viewer", "pod_viewer"),) if waits else ()
    return (look, *compare)
