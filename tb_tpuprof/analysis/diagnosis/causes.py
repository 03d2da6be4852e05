"""The causes of step time, in the order in which pages list them."""

from __future__ import annotations

from enum import Enum


class Cause(str, Enum):
    """Every moment of a step has exactly one cause. COMPUTE is useful work; UNRECORDED is time without any
    event.
    """

    COMPILATION = "compilation"
    INPUT = "input"
    PYTHON = "python"
    SYNCHRONIZATION = "synchronization"
    CALLBACKS = "callbacks"
    DISPATCH = "dispatch"
    PERIODIC = "periodic"
    COMPUTE = "device_compute"
    COMMUNICATION = "communication"
    TRANSFERS = "transfers"
    CONTENTION = "contention"
    WARM_UP = "warm_up"
    UNRECORDED = "not_recorded"

    @property
    def label(self) -> str:
        """Its name on pages."""
        return _TITLES[self]


_TITLES = {
    Cause.COMPILATION: "Compilation",
    Cause.INPUT: "Input",
    Cause.PYTHON: "Python",
    Cause.SYNCHRONIZATION: "Synchronization",
    Cause.CALLBACKS: "Callbacks",
    Cause.DISPATCH: "Dispatch",
    Cause.PERIODIC: "Periodic work",
    Cause.COMPUTE: "Compute",
    Cause.COMMUNICATION: "Communication",
    Cause.TRANSFERS: "Transfers",
    Cause.CONTENTION: "Contention",
    Cause.WARM_UP: "Warm-up",
    Cause.UNRECORDED: "Not recorded",
}
