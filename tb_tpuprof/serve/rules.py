"""TensorBoard's flags and the environment → which captures the server's owner allows."""

from __future__ import annotations

import os
from dataclasses import dataclass

from tb_tpuprof.errors import Forbidden

CAPTURE_VARIABLE = "TPUPROF_CAPTURE"
TARGETS_VARIABLE = "TPUPROF_CAPTURE_TARGETS"
_ON, _OFF = ("on", "true", "1", "yes", ""), ("off", "false", "0", "no")


@dataclass(frozen=True)
class CaptureRules:
    """`reason` says why capturing is off, empty if it is on; empty `allowed_targets` allow all."""

    reason: str = ""
    allowed_targets: tuple[str, ...] = ()
    default_targets: str = ""

    @classmethod
    def of(cls, flags: object) -> CaptureRules:
        """From TensorBoard's flags, else from the environment. A value that cannot be parsed turns
        capturing off.
        """
        switch = (_flag(flags, "tpuprof_capture") or os.environ.get(CAPTURE_VARIABLE, "")).strip().lower()
        patterns = _flag(flags, "tpuprof_capture_targets") or os.environ.get(TARGETS_VARIABLE, "")
        reason = ""
        if switch in _OFF:
            reason = (
                "The owner of this server has switched capturing off (flag --tpuprof_capture or "
                "variable TPUPROF_CAPTURE)."
            )
        elif switch not in _ON:
            reason = f"Capturing is off: --tpuprof_capture must be on or off, not {switch[:20]!r}."
        allowed = tuple(part.strip().lower() for part in patterns.split(",") if part.strip())
        return cls(reason, allowed, _flag(flags, "master_tpu_unsecure_channel"))

    def check_on(self) -> None:
        """Raise Forbidden if capturing is off."""
        if self.reason:
            raise Forbidden(
                self.reason, "Ask the server's owner, or use tpuprof capture on the command line."
            )


def _flag(flags: object, name: str) -> str:
    value = getattr(flags, name, "")
    return value if isinstance(value, str) else ""
