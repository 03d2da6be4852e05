"""The origin of an event's code (the user, a library, a framework or the runtime), and the cause that its
name reveals.

train.py main            user         frames in files of no known library
  trainer.py fit         framework    JAX, TensorFlow, Keras
    queue.py get         library      the standard library, NumPy
    $time sleep          built-in     written in C: belongs to its caller
  PjitFunction(step)     runtime      not a frame
  stage_b                annotation   a name that the user gives to a stretch of time
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.torch_files import is_framework, is_library
from tb_tpuprof.analysis.events.library_files import library_files
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.metadata_names import metadata_names
from tb_tpuprof.analysis.events.python_frames import Frame, Kind, frame_of
from tb_tpuprof.analysis.steps.waits import name_kinds
from tb_tpuprof.trace.trace import Trace

CAUSES = (None, *Cause)  # by index; 0 is none


class Origin(IntEnum):
    """Origin of an event's code. COMMON: a file name that both libraries and users have; inside a library's
    frame it is the library's.
    """

    RUNTIME = 0
    ANNOTATION = 1
    USER = 2
    BUILTIN = 3
    LIBRARY = 4
    FRAMEWORK = 5
    COMMON = 6


@dataclass(frozen=True)
class Names:
    """Per metadata row: origin, index in CAUSES of the cause that it claims (0 for none), strength of the
    claim, and whether it is an operation's own event.
    """

    origin: npt.NDArray[np.uint8]
    claim: npt.NDArray[np.uint8]
    strength: npt.NDArray[np.uint8]
    is_op: npt.NDArray[np.bool_]


def origin_of(frame: Frame) -> Origin:
    """Origin of a frame, by its file name."""
    if not frame.file:
        return Origin.BUILTIN
    if "site-packages/" in frame.file or "dist-packages/" in frame.file or frame.file.startswith("torch/"):
        return (
            Origin.FRAMEWORK
            if re.search(r"(?:^|packages/)(?:torch|jax|tensorflow|keras)/", frame.file)
            else Origin.LIBRARY
        )
    if re.search(r"(?:^|/)lib(?:64)?/python\d", frame.file):
        return Origin.LIBRARY
    lists = library_files()
    stem = frame.stem
    if stem == "__init__" or stem.startswith("<"):
        return Origin.LIBRARY
    if stem in lists["common"]:
        return Origin.COMMON
    if stem in lists["framework"]:
        return Origin.FRAMEWORK
    return Origin.LIBRARY if stem in lists["library"] or stem in lists["either"] else Origin.USER


@once
def names(trace: Trace) -> Names:
    """Origins and claims of all metadata rows."""
    from tb_tpuprof.analysis.diagnosis.rules import claim_of

    kinds = name_kinds(trace)
    origin, claim, strength = (np.zeros(len(kinds), np.uint8) for _ in range(3))
    origin[(kinds == Kind.ANNOTATION) | (kinds == Kind.LOADER)] = Origin.ANNOTATION
    for row, text in enumerate(metadata_names(trace)):
        frame = frame_of(text)
        if frame:
            origin[row] = (
                Origin.FRAMEWORK
                if is_framework(text)
                else Origin.LIBRARY
                if is_library(text)
                else origin_of(frame)
            )
        elif text == "ProfilerStep":
            origin[row] = Origin.ANNOTATION
        cause_and_strength = claim_of(text)
        if cause_and_strength:
            claim[row], strength[row] = CAUSES.index(cause_and_strength[0]), cause_and_strength[1]
    is_op = np.zeros(len(kinds), np.bool_)
    owner = trace.event_stats.texts("hlo_op").owner
    is_op[trace.events["metadata"][owner]] = True
    return Names(origin, claim, strength, is_op)
