"""Allocations and modules of PyTorch on a CPU: `python capture_modules.py OUT` with torch 2.14 writes
`modules.pt.trace.json.gz`.

Three training steps of a network of unlike layers, with batches of unlike sizes; the program keeps one tensor
of each step.
"""

import sys

import torch
from torch.profiler import ProfilerActivity, profile, schedule


class Block(torch.nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = torch.nn.Linear(n_in, n_out)
        self.act = torch.nn.GELU()

    def forward(self, x):
        return self.act(self.linear(x))


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Block(64, 256)
        self.second = Block(256, 32)
        self.head = torch.nn.Linear(32, 10)

    def forward(self, x):
        return self.head(self.second(self.first(x)) * 2)


def main(out):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    kept = []
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=0, warmup=1, active=3, repeat=1),
        profile_memory=True,
        with_stack=True,
        record_shapes=True,
    ) as profiler:
        for i in range(4):
            x = torch.randn(16 * (i + 1), 64)
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            kept.append(torch.full((1000 + i,), float(i)))
            profiler.step()
    profiler.export_chrome_trace(f"{out}/modules.pt.trace.json.gz")


main(*sys.argv[1:])
