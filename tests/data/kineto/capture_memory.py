"""Makes memory.pt.trace.json.gz: twelve steps of a small PyTorch job on the CPU, of which each keeps 256 KiB
that nobody needs.

Needs PyTorch 2.13 (`pip install torch==2.13.0`): python capture_memory.py. tests/ingest/test_kineto_memory.py
knows what is planted.
"""

from __future__ import annotations

import gzip
import json
import tempfile
from pathlib import Path

import torch

N_STEPS = 12
KEPT_FLOATS = 64 * 1024
HIDDEN = 512


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(256, HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    kept = []
    schedule = torch.profiler.schedule(wait=0, warmup=1, active=N_STEPS, repeat=1)
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True, schedule=schedule
    ) as profiler:
        for _ in range(N_STEPS + 1):
            loss = model(torch.randn(128, 256)).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            kept.append(torch.zeros(KEPT_FLOATS))
            profiler.step()
    with tempfile.TemporaryDirectory() as folder:
        profiler.export_chrome_trace(f"{folder}/trace.json")
        trace = json.loads(Path(folder, "trace.json").read_text())
    trace["host_name"] = "host"
    trace.pop("traceName", None)
    trace["traceEvents"] = [
        event for event in trace["traceEvents"] if event.get("cat") != "Trace"
    ]  # its name is the folder's
    target = Path(__file__).with_name("memory.pt.trace.json.gz")
    target.write_bytes(gzip.compress(json.dumps(trace, separators=(",", ":")).encode(), mtime=0))
    print(target.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
