"""Perfetto traces for tests, written with Perfetto's own protobuf classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

from tb_tpuprof.ingest.opening import open_trace
from tb_tpuprof.trace.trace import Trace

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
BOOTTIME, REALTIME, MONOTONIC = 6, 1, 3
CLEARED, NEEDS_STATE = 1, 2
US = 10**6  # ps


class Writer:
    """Writes packets of one or several sequences."""

    def __init__(self) -> None:
        self.trace = pb.Trace()

    def packet(self, sequence: int = 1, **fields: Any) -> Any:
        packet = self.trace.packet.add(trusted_packet_sequence_id=sequence, **fields)
        return packet

    def event(
        self, time_ns: int, kind: int, name: str = "", track: int = 0, sequence: int = 1, **fields: Any
    ) -> Any:
        packet = self.packet(sequence, timestamp=time_ns)
        packet.track_event.type = kind
        if track:
            packet.track_event.track_uuid = track
        if name:
            packet.track_event.name = name
        for key, value in fields.items():
            target = getattr(packet.track_event, key)
            if isinstance(value, list):
                target.extend(value)
            else:
                setattr(packet.track_event, key, value)
        return packet.track_event

    def slice(self, start_ns: int, end_ns: int, name: str, track: int, sequence: int = 1) -> Any:
        first = self.event(start_ns, BEGIN, name, track, sequence)
        self.event(end_ns, END, "", track, sequence)
        return first

    def thread(self, uuid: int, pid: int, tid: int, name: str) -> None:
        descriptor = self.packet().track_descriptor
        descriptor.uuid = uuid
        descriptor.thread.pid, descriptor.thread.tid, descriptor.thread.thread_name = pid, tid, name

    def process(self, uuid: int, pid: int, name: str) -> None:
        descriptor = self.packet().track_descriptor
        descriptor.uuid = uuid
        descriptor.process.pid, descriptor.process.process_name = pid, name

    def track(self, uuid: int, name: str = "", parent: int = 0) -> Any:
        descriptor = self.packet().track_descriptor
        descriptor.uuid, descriptor.name = uuid, name
        if parent:
            descriptor.parent_uuid = parent
        return descriptor

    def opened(self, folder: Path, name: str = "host.pftrace") -> Trace:
        path = folder / name
        path.write_bytes(self.trace.SerializeToString())
        return open_trace(str(path))


def rows(trace: Trace) -> list[tuple[str, str, str, int, int]]:
    """(plane, line, name, start, duration) of all events, in ps."""
    name_ids = trace.metadata["name"][trace.events["metadata"]]
    lines = trace.event_line
    planes = trace.lines["plane"][lines]
    return [
        (
            trace.plane_names[plane],
            trace.line_names[line],
            trace.strings.get(int(name)),
            int(start),
            int(duration),
        )
        for plane, line, name, start, duration in zip(
            planes.tolist(),
            lines.tolist(),
            name_ids.tolist(),
            trace.events["start_ps"].tolist(),
            trace.events["duration_ps"].tolist(),
            strict=True,
        )
    ]


def arguments(trace: Trace) -> dict[str, dict[str, object]]:
    """The arguments of each event, by its name."""
    names = [trace.strings.get(int(i)) for i in trace.metadata["name"][trace.events["metadata"]]]
    return {name: dict(trace.source.event_stats(trace, i)) for i, name in enumerate(names)}


def snapshot(writer: Writer, *pairs: tuple[int, int], sequence: int = 1, unit_ns: int = 0) -> None:
    """A clock snapshot of (clock, time); `unit_ns`: of clocks of a sequence, 0: not stated."""
    packet = writer.packet(sequence)
    for clock, time in pairs:
        one = packet.clock_snapshot.clocks.add(clock_id=clock, timestamp=time)
        if unit_ns and clock >= 64:
            one.unit_multiplier_ns = unit_ns


def instant(writer: Writer, time: int, name: str, clock: int = 0, sequence: int = 1) -> None:
    writer.event(time, INSTANT, name, 1, sequence)
    if clock:
        writer.trace.packet[-1].timestamp_clock_id = clock


def starts(trace: Trace) -> dict[str, int]:
    """Nanoseconds from the trace's start by name."""
    return {name: start // 1000 for _, _, name, start, _ in rows(trace)}


def samples(trace: Trace) -> dict[str, tuple[list[int], list[float]]]:
    """(ns, values) of the samples of each counter."""
    found = {}
    for i, name in enumerate(trace.counters["name"].tolist()):
        first, n = int(trace.counters["first_sample"][i]), int(trace.counters["n_samples"][i])
        found[trace.strings.get(name)] = (
            (trace.samples["time_ps"][first : first + n] // 1000).tolist(),
            trace.samples["value"][first : first + n].tolist(),
        )
    return found
