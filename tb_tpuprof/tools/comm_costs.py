"""What exposed communication costs a step: the same numbers on every page that shows them."""

from __future__ import annotations

from collections.abc import Sequence

from tb_tpuprof.analysis.comm.activity import Traffic
from tb_tpuprof.analysis.comm.host import CommHost, comm_between
from tb_tpuprof.analysis.comm.join import Comm, join_comm
from tb_tpuprof.analysis.pod.host import WHOLE
from tb_tpuprof.analysis.pod.parts import Part
from tb_tpuprof.session import Session
from tb_tpuprof.tools.clocks import Clocks
from tb_tpuprof.tools.payload import Scalar
from tb_tpuprof.tools.spec import ScalarSpec
from tb_tpuprof.tools.working import quotient
from tb_tpuprof.units import format_time

EXPOSED_SHARE = ScalarSpec(
    "exposed_communication_fraction",
    "Exposed communication",
    "fraction",
    "Share of the steps in which data moves and nothing computes on the device, mean per device",
    is_optional=True,
    formula="Σ exposed communication ÷ Σ step time",
)
_MOST = 0.5  # of the exposed time
_WORTH_A_WORD = 0.0005  # of the step


class Costs:
    """The numbers that the verdict and the tiles share, as means per step and device."""

    def __init__(self, comm: Comm) -> None:
        self.by_traffic = comm.exposed_ps.mean(axis=(0, 1))
        self.exposed_ps = float(self.by_traffic.sum())
        self.hidden_ps = float(comm.hidden_ps.sum(axis=2).mean())
        self.step_ps = float(comm.total_ps.mean())
        self.gain_ps = float(comm.gain_ps.mean())
        self.waiting_ps = float(comm.waiting_ps.mean())

    @property
    def moved_ps(self) -> float:
        """All communication."""
        return self.exposed_ps + self.hidden_ps

    @property
    def exposed_fraction(self) -> float:
        """Of the step."""
        return self.exposed_ps / self.step_ps if self.step_ps else 0.0

    @property
    def gain_fraction(self) -> float:
        """Of the step."""
        return self.gain_ps / self.step_ps if self.step_ps else 0.0

    @property
    def traffic(self) -> Traffic:
        """The kind of traffic that is exposed most; between devices unless another has more than half."""
        largest = Traffic(int(self.by_traffic.argmax()))
        return largest if self.by_traffic[largest] > _MOST * self.exposed_ps else Traffic.DEVICES


def is_whole(comm: Comm) -> bool:
    """Whether the run has no steps, so that the whole capture stands for one."""
    return comm.step_names == (WHOLE,)


def joined_comm(session: Session, parts: Sequence[CommHost], clocks: Clocks) -> Comm:
    """The communication of these hosts; the last one is kept."""
    return session.joined.get("communication", parts, lambda: join_comm(parts, clocks.correction_ns))


def comm_of(session: Session, hosts: Sequence[str], clocks: Clocks) -> Comm | None:
    """The communication of hosts that all exchange data or copy it asynchronously; None for others. Raises
    HostsUnreadable.
    """
    parts = session.map(comm_between, hosts)
    with_traffic = [part for part in parts if part is not None]
    if not with_traffic or len(with_traffic) < len(parts):
        return None
    return joined_comm(session, with_traffic, clocks)


def exposed_share(comm: Comm) -> Scalar:
    """The exposed share of the steps, or of the capture, and what it is made of."""
    costs = Costs(comm)
    whole = is_whole(comm)
    amount = f"{format_time(costs.exposed_ps)} {'of the capture' if whole else 'per step'}, mean per device"
    made_of = _made_of(comm, costs)
    working = quotient((costs.exposed_ps, costs.step_ps), "ps", words="" if whole else "per step")
    note = f"{amount}: {made_of}" if made_of else amount
    return EXPOSED_SHARE.of(costs.exposed_fraction, note, "", working)


def _made_of(comm: Comm, costs: Costs) -> str:
    """The exposed time by what the devices run in it, where it is more than collectives: `228 µs
    collectives, 25.0 µs copies, 7.00 µs data in flight`. Only collectives are the class of that name
    in the breakdown of the steps. Empty for hosts with several GPUs, whose steps count what all of them do.
    """
    pod = comm.pod
    is_one_each = pod.kind == "TPU" or (pod.kind == "GPU" and len(pod.cores) == len(pod.hosts))
    if not is_one_each or pod.part_ps.shape[:2] != comm.total_ps.shape:
        return ""
    collectives = float(pod.part_ps[:, :, [Part.COLLECTIVE, Part.COLLECTIVE_WAIT]].sum(axis=2).mean())
    copies = float(costs.by_traffic[[Traffic.HOST, Traffic.LOCAL]].sum())
    in_flight = costs.exposed_ps - collectives - copies
    least = _WORTH_A_WORD * costs.step_ps
    if in_flight < -least or max(copies, in_flight) < least:
        return ""
    parts = ((collectives, "collectives"), (copies, "copies"), (in_flight, "data in flight"))
    return ", ".join(f"{format_time(time)} {where}" for time, where in parts if time >= least)


def exposed_scalars(session: Session, hosts: Sequence[str], clocks: Clocks) -> dict[str, Scalar]:
    """The exposed share by its name, if devices exchange data or copy it asynchronously; else nothing. Raises
    HostsUnreadable.
    """
    comm = comm_of(session, hosts, clocks)
    return {EXPOSED_SHARE.name: exposed_share(comm)} if comm is not None and comm.has_traffic else {}
