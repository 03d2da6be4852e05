"""Synthetic hosts of a multislice job with planted transfers between slices. Nothing here was measured on a
device.

    transfers = [Transfer("all-reduce.1", "ALL_REDUCE", 4, 1024)]
    drawn_dcn({"a": transfers}, {"h0": ["a", "core 0's runs", "core 1's"]})

Runs are written `name:begin-end` in µs, as in `tests/pod_drawing.py`. The operations of transfer i are
send.i, send-done.i, recv.i and recv-done.i; `fusion` is compute.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tb_tpuprof.ingest.xspace.messages import xspace_class
from tests.ingest.hlo_protos import TUPLE, array, computation, instruction, proto
from tests.synthetic import PS_PER_US, PlaneWriter, Stat, core_details, field

PROGRAM = 1  # the id of its metadata, by which XProf knows it
_RUN = re.compile(r"(\S+):(\d+)-(\d+)")
_TOKEN = {2: 17}
_WORD = {2: 8}  # u32[]
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
    blocks = [array(transfer.n_values) for transfer in transfers]
    ops: list[dict[int, Any]] = [instruction(1, "after-all", _TOKEN)]
    for i, (transfer, block) in enumerate(zip(transfers, blocks, strict=True), 1):
        ops += _four_operations(i, transfer, block)
    result = {2: TUPLE, 4: [array(1)]}
    ops += [instruction(2, "parameter", array(1)), instruction(3, "tuple", result, [2])]
    # A module needs the shape of its program, and a parameter its number, for XLA to read it.
    shape = {1: [array(1), *blocks], 2: result, 3: ["p", *(f"block.{i}" for i in range(len(blocks)))]}
    main = {**computation(1, "main", ops, 3), 4: shape}
    return proto([main], f1="jit_train", f2="main", f4=shape)


def _four_operations(i: int, transfer: Transfer, block: dict[int, Any]) -> list[dict[int, Any]]:
    first = 10 * i
    halves = {2: TUPLE, 4: [block, _WORD, _TOKEN]}
    attributes = [{1: "_xla_host_transfer_rendezvous", 2: transfer.name}]
    if transfer.states_type:
        attributes.append({1: "_xla_megascale_transfer_type", 2: transfer.transfer_type})
    # Fields: 26 channel, 47 whether it is a transfer with the host, 68 frontend attributes.
    begins: dict[str, Any] = {"f26": i, "f47": 1, "f68": {1: attributes}}
    ends: dict[str, Any] = {"f26": i, "f47": 1}
    return [
        instruction(first + 4, "parameter", block, f1=f"block.{i}", f9=i),
        instruction(first, "send", halves, [first + 4, 1], f1=f"send.{i}", **begins),
        instruction(first + 1, "send-done", _TOKEN, [first], f1=f"send-done.{i}", **ends),
        instruction(first + 2, "recv", halves, [1], f1=f"recv.{i}", **begins),
        instruction(
            first + 3, "recv-done", {2: TUPLE, 4: [block, _TOKEN]}, [first + 2], f1=f"recv-done.{i}", **ends
        ),
    ]


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
    main.event(line, "MegaScale: Barrier.", 0, PS_PER_US)
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


REDUCE = Transfer("all-reduce.1", "ALL_REDUCE", 4, 1_000_000)
GATHER = Transfer("all-gather.7", "ALL_GATHER", 2, 500_000)
PERMUTE = Transfer("permute.3", "ONE_TO_ONE", 1, 250_000, states_type=False)
SCATTER = Transfer("scatter.9", "REDUCE_SCATTER", 3, 100_000)
SHUFFLE = Transfer("shuffle.5", "ALL_TO_ALL", 5, 50_000)
RAGGED = Transfer("ragged.6", "RAGGED_ALL_TO_ALL", 5, 50_000)
ALL = (REDUCE, GATHER, PERMUTE, SCATTER, SHUFFLE, RAGGED)
# One transfer alone: slack 5–100, 110–200 and 205–300: 95 + 90 + 95 µs; stall 5 + 10 + 5 + 40 µs.
ALONE = (
    "send.1:0-5 fusion:5-100 send-done.1:100-110 fusion:110-200 recv.1:200-205 fusion:205-300 "
    "recv-done.1:300-340"
)
# Two interleaved: the operations of either count in neither's slack.
INTERLEAVED = (
    "send.1:0-10 send.2:10-30 fusion:30-100 send-done.2:100-105 send-done.1:105-120 recv.1:120-130 "
    "recv.2:130-140 "
    "recv-done.2:140-200 fusion:200-250 recv-done.1:250-300"
)


# What the cores of each host run. On the third host: two transfers of a kind, then one that does not
# complete;
# and on its last core a recv-done whose send is before the capture.
CORES = {
    "synthetic-0": [ALONE, INTERLEAVED],
    "synthetic-1": ["send.3:1000-1100 send-done.3:1100-1300 recv.3:1300-1400 recv-done.3:1400-1800"],
    "synthetic-2": [
        "send.1:0-10 send-done.1:10-20 fusion:20-50 recv.1:50-60 recv-done.1:60-70 fusion:70-100 "
        "send.1:100-110 "
        "send-done.1:110-130 recv.1:130-140 fusion:140-300 recv-done.1:300-320 send.4:330-340",
        "send.4:0-10 send-done.4:10-20 recv.4:20-30 fusion:30-80 recv-done.4:80-90",
        "recv-done.5:0-50 send.5:50-60 send-done.5:60-70 recv.5:70-80 fusion:80-90 recv-done.5:90-95 "
        "send.6:95-96 send-done.6:96-97 recv.6:97-98 fusion:98-99 recv-done.6:99-100",
    ],
}
RECEIVED = {
    "synthetic-2": [
        Message(10, 0, 1, 1000, 30),
        Message(20, 0, 1, 3000, 50),
        Message(30, 0, 1, 500, 0),
        Message(40, 2, 1, 9000, 20),
    ]
}


def dcn_hosts(n_cores: int = 3) -> dict[str, bytes]:
    """Three unlike hosts with two cores, one, and three, and six kinds of transfers; at most so many cores of
    each.
    """
    return {
        host: dcn_host(ALL, cores[:n_cores], RECEIVED.get(host, ()), host=host)
        for host, cores in CORES.items()
    }
