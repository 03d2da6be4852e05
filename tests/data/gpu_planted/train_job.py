"""Captures PyTorch runs with one planted cause each on a GPU: `python train_job.py OUT`."""

import json
import sys
import time
from pathlib import Path

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule

OUT = Path(sys.argv[1])
OUT.mkdir(parents=True, exist_ok=True)
WARMUP, STEPS, SIZE = 3, 5, 4096
TRUTH = {}


class Slow(torch.utils.data.Dataset):
    def __len__(self):
        return 4096

    def __getitem__(self, i):
        return decode(i)


def decode(i):
    time.sleep(0.001)
    return torch.zeros(SIZE)


def network(dtype):
    layers = [nn.Linear(SIZE, SIZE, bias=False, device="cuda", dtype=dtype) for _ in range(4)]
    return nn.Sequential(*layers)


def smooth_curve(seconds):
    end = time.perf_counter() + seconds
    total = 0
    while time.perf_counter() < end:
        total += sum(range(2000))
    return total


def log_loss(loss):
    return loss.item()


def many_small(x):
    for _ in range(400):
        x = x * 1.0001
    return x


def to_device(batch):
    return batch.to("cuda")


class Trainer:
    def __init__(self, name):
        self.name = name
        self.dtype = torch.float32 if name == "fp32" else torch.bfloat16
        self.model = network(self.dtype)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-4)
        self.batch = torch.randn(SIZE, SIZE, device="cuda", dtype=self.dtype)
        self.host = torch.randn(SIZE, SIZE, dtype=torch.float32)
        self.loader = iter(torch.utils.data.DataLoader(Slow(), batch_size=16)) if name == "loader" else None
        self.lost = []

    def planted(self, function, *arguments):
        begin = time.perf_counter()
        result = function(*arguments)
        self.lost.append(time.perf_counter() - begin)
        return result

    def train_step(self):
        x = self.batch
        if self.name == "loader":
            self.planted(next, self.loader)
        if self.name == "python":
            self.planted(smooth_curve, 0.020)
        if self.name == "pageable":
            x = self.planted(to_device, self.host).to(self.dtype)
        if self.name == "small":
            self.planted(many_small, x[:16, :16])
        loss = self.model(x).float().square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        if self.name == "item":
            self.planted(log_loss, loss)
            smooth_curve(0.004)


def run(name):
    trainer = Trainer(name)
    torch.cuda.synchronize()
    steps = []
    plan = schedule(wait=1, warmup=WARMUP, active=STEPS)
    path = str(OUT / f"torch_{name}.pt.trace.json.gz")
    activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    with profile(
        activities=activities,
        schedule=plan,
        on_trace_ready=lambda p: p.export_chrome_trace(path),
        with_stack=True,
    ) as profiler:
        for i in range(1 + WARMUP + STEPS):
            begin = time.perf_counter()
            trainer.train_step()
            if i == WARMUP + STEPS:
                torch.cuda.synchronize()
            end = time.perf_counter()
            profiler.step()
            if i > WARMUP:
                steps.append(end - begin)
    TRUTH[name] = {"steps": steps, "planted": trainer.lost[-STEPS:]}


def gpu_time():
    """Seconds of a healthy step alone on the GPU."""
    trainer = Trainer("healthy")
    trainer.train_step()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(10):
        trainer.train_step()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / 10


TRUTH["gpu_s"] = gpu_time()
for job in ("healthy", "item", "python", "small", "pageable", "loader", "fp32"):
    run(job)
TRUTH["device"], TRUTH["torch"] = torch.cuda.get_device_name(), torch.__version__
(OUT / "planted.json").write_text(json.dumps(TRUTH, indent=1), "utf-8")
print({k: v["steps"][:3] if isinstance(v, dict) else v for k, v in TRUTH.items()})
