"""What a Kineto file says, counted in the plainest way: Python's JSON parser, lists and loops, and nothing of
this project.

`python plain_kineto.py FILE…` prints the counts of files; tests compare pages with them.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

Event = dict[str, Any]
Spans = list[tuple[float, float]]
NO_OPERATION = "(no operation)"
KERNELS, OPERATORS = {"kernel", "Kernel"}, {"cpu_op", "Operator"}
LAUNCHES = {"cuda_runtime", "Runtime", "cuda_driver", "xpu_runtime", "xpu_driver", "mtia_runtime"}
COPIES = {"gpu_memcpy", "Memcpy", "gpu_memset", "Memset"}
MTIA_OTHERS = {"dma_request", "event_wait", "event_record"}
TRIMMED_ABOVE = 5


def events_of(path: Path) -> list[Event]:
    """All complete events of a file."""
    data = path.read_bytes()
    data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    whole = json.loads(data, strict=False)
    found = whole.get("traceEvents", []) if isinstance(whole, dict) else whole
    return [event for event in found if isinstance(event, dict) and event.get("ph") == "X"]


def is_kernel(event: Event) -> bool:
    """Whether an event is a kernel of a device."""
    return event.get("cat") in KERNELS or (
        event.get("cat") == "mtia_ccp_events" and event["name"] not in MTIA_OTHERS
    )


def is_operator(event: Event) -> bool:
    """Whether an event is an operator of the framework."""
    return event.get("cat") in OPERATORS and not event["name"].startswith(
        ("ProfilerStep#", "ProfilerStep*", "enumerate(DataLoader)#")
    )


def end(event: Event) -> float:
    """When an event ends, in µs."""
    return float(event["ts"]) + float(event.get("dur", 0))


def thread(event: Event) -> tuple[str, str]:
    """Process and thread, however they are written."""
    return str(event.get("pid")), str(event.get("tid"))


def operator_name(event: Event) -> str:
    """An operator's name; a collective's own where the file states it."""
    told = event.get("args", {}).get("Collective name") if event["name"] == "record_param_comms" else None
    return f"{told} (record_param_comms)" if told else str(event["name"])


def around(launches: list[Event], operators: list[Event]) -> dict[int, Event]:
    """The innermost operator around each launch, by the launch's id()."""
    result: dict[int, Event] = {}
    by_thread: dict[tuple[str, str], list[tuple[float, int, float, Event]]] = defaultdict(list)
    for op in operators:
        by_thread[thread(op)].append((float(op["ts"]), 0, -float(op.get("dur", 0)), op))
    for launch in launches:
        by_thread[thread(launch)].append((float(launch["ts"]), 1, 0.0, launch))
    for listed in by_thread.values():
        open_ones: list[Event] = []
        for time, is_launch, _, event in sorted(listed, key=lambda item: item[:3]):
            open_ones = [op for op in open_ones if end(op) > time or float(op["ts"]) == time]
            if not is_launch:
                open_ones.append(event)
            elif open_ones:
                result[id(event)] = open_ones[-1]
    return result


def kernel_operators(events: list[Event]) -> list[tuple[Event, str]]:
    """Each kernel with the operation that launched it."""
    kernels = [event for event in events if is_kernel(event)]
    operators = [event for event in events if is_operator(event)]
    launches = [
        event
        for event in events
        if event.get("cat") in LAUNCHES and event.get("args", {}).get("correlation", 0) > 0
    ]
    of_id: dict[int, list[Event]] = defaultdict(list)
    for launch in launches:
        of_id[launch["args"]["correlation"]].append(launch)
    inside = around(launches, operators)
    found = []
    for kernel in kernels:
        made = of_id.get(kernel.get("args", {}).get("correlation", 0), [])
        before = [launch for launch in made if float(launch["ts"]) <= float(kernel["ts"])]
        launch = (
            max(before, key=lambda e: float(e["ts"]))
            if before
            else min(made, key=lambda e: float(e["ts"]))
            if made
            else None
        )
        op = inside.get(id(launch)) if launch else None
        name = operator_name(op) if op else ""
        if launch and re.match(r"(cuda|hip|cu)GraphLaunch", launch["name"]):
            name = f"{launch['name']} in {name}" if name else launch["name"]
        found.append((kernel, name or NO_OPERATION))
    return found


def union(spans: Spans) -> Spans:
    """Spans that overlap as one."""
    result: list[list[float]] = []
    for a, b in sorted(spans):
        if result and a <= result[-1][1]:
            result[-1][1] = max(result[-1][1], b)
        elif b > a:
            result.append([a, b])
    return [(a, b) for a, b in result]


def length(spans: Spans) -> float:
    """Length of a union."""
    return sum(b - a for a, b in union(spans))


def within(spans: Spans, window: tuple[float, float]) -> Spans:
    """What of the spans lies in a window."""
    cut = [(max(a, window[0]), min(b, window[1])) for a, b in spans]
    return [(a, b) for a, b in cut if b > a]


def step_facts(events: list[Event]) -> dict[str, dict[str, float]]:
    """Of each step of the host: duration, time in which a device is busy, and in which the step waits for
    input; in µs.

    It waits while the data loader fetches or data is copied to the device, and nothing of more importance
    runs.
    """
    markers = [
        e
        for e in events
        if re.match(r"ProfilerStep[#*]\d+$", e["name"]) and e.get("cat") in OPERATORS | {"user_annotation"}
    ]
    threads = {thread(marker) for marker in markers}
    on_device = [e for e in events if is_kernel(e) or e.get("cat") in COPIES]
    spans: dict[str, Spans] = defaultdict(list)
    for event in on_device:
        name = event["name"].lower()
        kind = "h2d" if re.match(r"memcpy ?htod", name) else "nccl" if name.startswith("nccl") else "compute"
        spans[kind].append((float(event["ts"]), end(event)))
    fetch = re.compile(
        r"enumerate\((DataLoader|DataPipe)\)#|.*torch/utils/data/dataloader\.py\(\d+\): __next__$"
    )
    spans["loader"] = [
        (float(e["ts"]), end(e)) for e in events if fetch.match(e["name"]) and thread(e) in threads
    ]
    result = {}
    for marker in markers:
        window = float(marker["ts"]), end(marker)
        cut = {kind: within(spans[kind], window) for kind in ("h2d", "nccl", "compute", "loader")}
        all_but = length(cut["compute"] + cut["nccl"])
        every = length(cut["compute"] + cut["nccl"] + cut["loader"] + cut["h2d"])
        fetched = length(cut["compute"] + cut["loader"]) - length(cut["compute"])
        copied = every - length(cut["compute"] + cut["nccl"] + cut["loader"])
        result[re.sub(r"[#*]", " ", marker["name"])] = {
            "duration": window[1] - window[0],
            "busy": length(cut["compute"] + cut["nccl"] + cut["h2d"]),
            "input": fetched + copied,
            "loader": length(cut["loader"]),
            "kernels": all_but,
            "start": window[0],
        }
    return result


def counts(path: Path) -> dict[str, Any]:
    """Kernels, their time by operation, and the steps of a file; times in µs."""
    events = events_of(path)
    attributed = kernel_operators(events)
    time: dict[str, float] = defaultdict(float)
    number: Counter[str] = Counter()
    for kernel, op in attributed:
        time[op] += float(kernel.get("dur", 0))
        number[op] += 1
    return {
        "n_kernels": len(attributed),
        "kernel_us": sum(time.values()),
        "op_us": dict(time),
        "op_n": dict(number),
        "steps": step_facts(events),
        "has_device": any(is_kernel(e) or e.get("cat") in COPIES for e in events),
    }


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(name, json.dumps(counts(Path(name)), indent=1))
