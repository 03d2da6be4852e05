"""The slice that a pod's chips form, the links of its channels, and one channel step by step."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tb_tpuprof.analysis.pod.join import Pod
from tb_tpuprof.analysis.pod.topology import AXES, Topology
from tb_tpuprof.tools.payload import Table
from tb_tpuprof.tools.spec import TableSpec, Values, flag, number, text
from tb_tpuprof.units import counted

TOPOLOGY = TableSpec(
    "topology",
    "Topology",
    (
        text("shape", "Shape", "Chips along each axis: a torus is closed along all axes, a mesh along none"),
        text("generation", "Generation", "The generation of TPUs, which sets the shapes of its slices"),
        *(
            number(f"n_{axis}", f"Chips along {axis}", "count", f"Size of the slice along {axis}")
            for axis in AXES
        ),
        *(
            flag(
                f"wraps_{axis}",
                f"Wraps along {axis}",
                f"Whether a link leads from the last chip along {axis} back to the first",
            )
            for axis in AXES
        ),
        text("placed_by", "Places from", "Source of the chips' places"),
        number("n_missing", "Chips not captured", "count", "Chips of the slice that are not in the traces"),
        number("link_bytes_per_s", "Rate of a link", "bytes_per_s", "Peak rate of one link in one direction"),
    ),
    "One row for the slice; none if the chips' places are unknown: the note says why",
    is_optional=True,
    sentence="The slice that the chips form",
)


def topology_table(pod: Pod, slice_of_pod: Topology | str) -> dict[str, Table]:
    """The slice; without rows if it is unknown, and absent for devices that are no TPUs."""
    if pod.kind != "TPU":
        return {}
    if isinstance(slice_of_pod, str):
        return {"topology": TOPOLOGY.empty(f"places unknown: {slice_of_pod}")}
    sizes, wraps = slice_of_pod.shape, slice_of_pod.wraps
    values: dict[str, Values] = {
        "shape": [slice_of_pod.name],
        "generation": [slice_of_pod.generation.name],
        **{f"n_{axis}": np.array([size]) for axis, size in zip(AXES, sizes, strict=True)},
        **{f"wraps_{axis}": np.array([is_ring]) for axis, is_ring in zip(AXES, wraps, strict=True)},
        "placed_by": [slice_of_pod.placed_by.value],
        "n_missing": np.array([slice_of_pod.n_missing]),
        "link_bytes_per_s": np.array([slice_of_pod.generation.link_bytes_per_s]),
    }
    return {"topology": TOPOLOGY.fill(values, _note(slice_of_pod))}


def _note(slice_of_pod: Topology) -> str:
    notes = [f"places from {slice_of_pod.placed_by.value}"]
    if slice_of_pod.n_missing:
        were = "was" if slice_of_pod.n_missing == 1 else "were"
        notes.append(
            f"{counted(slice_of_pod.n_missing, 'chip')} of the slice {were} not captured, so its shape is "
            "the smallest that fits and its wrap links are unknown"
        )
    if slice_of_pod.may_be_twisted:
        notes.append("if the torus is twisted, its wrap links lead elsewhere; the trace does not say")
    return "; ".join(notes)


def core_places(slice_of_pod: Topology | str) -> Mapping[str, Values]:
    """The columns of the cores' places; none if they are unknown."""
    if isinstance(slice_of_pod, str):
        return {}
    return {axis: slice_of_pod.place[:, i].astype(np.float64) for i, axis in enumerate(AXES)}
