"""Captures the PyTorch runs of this folder on a GPU: `python capture_torch.py OUT` writes a trace and
truth.json into OUT/<run>.
"""

import json
import sys
import time
from pathlib import Path

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule

OUT = Path(sys.argv[1])
WARMUP, STEPS = 3, 6
ACTIVITIES = [ProfilerActivity.CPU, ProfilerActivity.CUDA]


class Data(torch.utils.data.Dataset):
    def __init__(self, sleep_s):
        self.sleep_s = sleep_s

    def __len__(self):
        return 4096

    def __getitem__(self, i):
        if self.sleep_s:
            time.sleep(self.sleep_s)
        return torch.randn(3, 64, 64), i % 10


def network():
    layers = [
        nn.Conv2d(3, 64, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(64, 128, 3, padding=1, stride=2),
        nn.ReLU(),
    ]
    layers += [nn.Conv2d(128, 256, 3, padding=1, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 10)).cuda()


def written(name, truth):
    (OUT / name / "truth.json").write_text(json.dumps(truth), "utf-8")


def exporter(name):
    (OUT / name).mkdir(parents=True, exist_ok=True)
    return lambda profiler: profiler.export_chrome_trace(str(OUT / name / "worker.pt.trace.json.gz"))


def train(name, workers, sample_s, sleep_s=0.0, synchronizes=True):
    model, loss_of = network(), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = torch.utils.data.DataLoader(
        Data(sample_s), batch_size=64, num_workers=workers, prefetch_factor=4 if workers else None
    )
    batches = iter(loader)
    truth = {"steps": [], "input": [], "with_step_call": [], "extra_sleep": sleep_s}
    plan = schedule(wait=1, warmup=WARMUP, active=STEPS)
    with profile(
        activities=ACTIVITIES, schedule=plan, on_trace_ready=exporter(name), record_shapes=True
    ) as profiler:
        for i in range(1 + WARMUP + STEPS):
            begin = time.perf_counter()
            x, y = next(batches)
            loaded = time.perf_counter()
            loss = loss_of(model(x.cuda()), y.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if synchronizes:
                loss.item()
            time.sleep(sleep_s)
            end = time.perf_counter()
            profiler.step()
            if i > WARMUP:
                truth["steps"].append(end - begin)
                truth["input"].append(loaded - begin)
                truth["with_step_call"].append(time.perf_counter() - begin)
    written(name, truth)


def graph(name, n_replays=20, steps=3):
    a, b = (torch.randn(2048, 2048, device="cuda", dtype=torch.bfloat16) for _ in range(2))

    def work():
        y = a
        for _ in range(6):
            y = torch.relu(y @ b) * 0.5
        return y

    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        work()
    torch.cuda.synchronize()
    recorded = torch.cuda.CUDAGraph()
    with torch.cuda.graph(recorded):
        work()
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for _ in range(10):
        recorded.replay()
    first.record()
    for _ in range(n_replays):
        recorded.replay()
    last.record()
    torch.cuda.synchronize()
    truth = {
        "replay_ms": first.elapsed_time(last) / n_replays,
        "replays_per_step": n_replays,
        "steps": steps,
        "kernels_per_replay": 18,
    }
    with profile(
        activities=ACTIVITIES,
        schedule=schedule(wait=0, warmup=1, active=steps),
        on_trace_ready=exporter(name),
    ) as profiler:
        for _ in range(1 + steps):
            for _ in range(n_replays):
                recorded.replay()
            a + b
            torch.cuda.synchronize()
            profiler.step()
    written(name, truth)


if __name__ == "__main__":
    train("loader0", 0, 0.0005)
    train("loader4", 4, 0.0005)
    train("sleepy", 0, 0.0, sleep_s=0.03)
    train("async", 4, 0.0, synchronizes=False)
    graph("graph")
