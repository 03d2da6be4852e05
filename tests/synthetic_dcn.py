"""Synthetic hosts of a multislice job with planted transfers between slices. Nothing here was measured on a
device.

    drawn_dcn({"a": [Transfer("all-reduce.1", "ALL_REDUCE", 4, 1024)]}, {"h0": ["a", "core 0's runs", "core 1's"]})

Runs are written `name:begin-end` in µs, as in `tests/pod_drawing.py`. The operations of transfer i are send.i,
send-done.i, recv.i and recv-done.i; `fusion` is compute.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tb_tpuprof.ingest.xspace.messages import xspace_class
from tests.ingest.hlo_protos import TUPLE, array, computation, instruction, proto
from tests.synthetic import PS_PER_US, PlaneWriter, Stat, core_details, field

PROGRAM = 7
_RUN = re.compile(r"(\S+):(\d+)-(\d+)")
_TOKEN = {2: 17}
_TYPES = ("ALL_TO_ALL", "ONE_TO_ONE", "REDUCE_SCATTER", "ALL_GATHER", "ALL_REDUCE", "RAGGED_ALL_TO_ALL")
HALVES = ("send", "send-done", "recv", "recv-done")


@dataclass(frozen=True)
class Transfer:
    """A collective between slices of `n_values` float32 that each core receives. `states_type`: whether the
    program names the type, else only `dcn_collective_info` does.
    """

    name: str
    transfer_type: str
    group_size: int
    n_values: int
    states_type: bool = True

    @property
    def info(self) -> bytes:
        """Its DcnCollectiveInfoProto, with an endpoint of each participant."""
        code = _TYPES.index(self.transfer_type) + 1 if self.transfer_type in _TYPES else 0
        if self.transfer_type == "ONE_TO_ONE":
            return field(1, code) + field(3, field(1, field(1, 0)) + field(2, field(1, 1)))
        endpoints = b"".join(field(1, field(1, i) + field(2, 0)) for i in range(self.group_size))
        return field(1, code) + (field(2, endpoints) if self.group_size else b"")


@dataclass(frozen=True)
class Message:
    """A message that a host received: µs since the trace's start, slices, bytes, and duration in µs."""

    at_us: int
    source: int
    target: int
    size_bytes: int
    duration_us: int
    label: str = "all-reduce.1"


def program(transfers: Sequence[Transfer]) -> bytes:
    """A program with the four operations of each transfer; numbers of operations are those of transfers."""
    ops = [instruction(1, "parameter", array(1)), instruction(2, "after-all", _TOKEN)]
    for i, transfer in enumerate(transfers, 1):
        block, first = array(transfer.n_values), 10 * i
        halves = {2: TUPLE, 4: [block, array(code=8), _TOKEN]}
        attributes = [{1: "_xla_host_transfer_rendezvous", 2: transfer.name}]
        if transfer.states_type:
            attributes.append({1: "_xla_megascale_transfer_type", 2: transfer.transfer_type})
        frontend = {1: attributes}
        more = {"f26": i, "f68": frontend}
        ops += [
            instruction(first, "send", halves, [1, 2], f1=f"send.{i}", **more),
            instruction(first + 1, "send-done", _TOKEN, [first], f1=f"send-done.{i}", f26=i),
            instruction(first + 2, "recv", halves, [2], f1=f"recv.{i}", **more),
            instruction(
                first + 3,
                "recv-done",
                {2: TUPLE, 4: [block, _TOKEN]},
                [first + 2],
                f1=f"recv-done.{i}",
                f26=i,
            ),
        ]
    return proto([computation(1, "main", ops, 10 * len(transfers) + 3)], f1="jit_train")


def dcn_host(
    transfers: Sequence[Transfer],
    cores: Sequence[str],
    messages: Sequence[Message] = (),
    host: str = "synthetic-dcn",
    has_program: bool = True,
) -> bytes:
    """The file of one host; `cores`: what each runs."""
    space = xspace_class()()
    for local, text in enumerate(cores):
        plane = PlaneWriter(space, f"/device:TPU:{local}")
        plane.stats(plane.plane, {"device_type_string": "TPU v4", "core_details": core_details(local, local)})
        _core(plane, transfers, text)
    main = PlaneWriter(space, "/host:CPU")
    line = main.line("megascale", 1, 1_000_000)
    main.event(line, "done:NoOp", 0, PS_PER_US)
    for message in messages:
        stats: dict[str, Stat] = {
            "dcn_label": message.label,
            "dcn_source_slice_id": message.source,
            "dcn_source_per_slice_device_id": 0,
            "dcn_destination_slice_id": message.target,
            "dcn_destination_per_slice_device_id": 0,
            "payload_size_bytes": message.size_bytes,
            "duration_us": message.duration_us,
        }
        main.event(line, "MegaScale: Communication Transport Receive", message.at_us * PS_PER_US, 0, stats)
    if has_program:
        hlo = {"Hlo Proto": program(transfers)}
        PlaneWriter(space, "/host:metadata").metadata(f"jit_train({PROGRAM})", hlo)
    space.hostnames.append(host.encode())
    return bytes(space.SerializeToString())


def _core(plane: PlaneWriter, transfers: Sequence[Transfer], text: str) -> None:
    names = {"fusion": "%fusion = convolution fusion()"}
    plane.metadata(
        names["fusion"],
        {"program_id": PROGRAM, "symbol_id": 1, "hlo_category": "convolution fusion"},
        "fusion",
    )
    for i, transfer in enumerate(transfers, 1):
        for half in HALVES:
            name = f"{half}.{i}"
            names[name] = f"%{name} = {half}()"
            stats: dict[str, Stat] = {
                "program_id": PROGRAM,
                "symbol_id": 10 * i,
                "hlo_category": f"host {half}",
            }
            if half == "send":
                stats["dcn_collective_info"] = transfer.info
            plane.metadata(names[name], stats, name)
    runs = [(name, int(begin), int(end)) for name, begin, end in _RUN.findall(text)]
    modules, line = (plane.line(name, i + 1, 1_000_000) for i, name in enumerate(("XLA Modules", "XLA Ops")))
    first, last = min(begin for _, begin, _ in runs), max(end for _, _, end in runs)
    plane.event(modules, f"jit_train({PROGRAM})", first * PS_PER_US, (last - first) * PS_PER_US)
    for name, begin, end in runs:
        plane.event(line, names[name], begin * PS_PER_US, (end - begin) * PS_PER_US)
