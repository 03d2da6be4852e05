"""PyTorch on a CPU, whose batches come from worker processes that are too slow: `python capture_workers.py
OUT 2` with torch 2.14 writes `workers.pt.trace.json.gz` and `workers.json`: how long the steps and the calls
of `next` took.
"""

import json
import sys
import time

import torch
from torch.profiler import ProfilerActivity, profile, schedule

WARM_UP, N_STEPS, BATCH, SLEEP_S = 2, 10, 8, 0.004


class Samples(torch.utils.data.Dataset):
    def __len__(self):
        return (WARM_UP + N_STEPS + 1) * BATCH

    def __getitem__(self, index):
        time.sleep(SLEEP_S)
        return torch.full((256,), float(index))


def main(out, n_workers):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    n = int(n_workers)
    batches = iter(
        torch.utils.data.DataLoader(
            Samples(), batch_size=BATCH, num_workers=n, prefetch_factor=1 if n else None
        )
    )
    steps, waits = [], []
    with profile(
        activities=[ProfilerActivity.CPU], schedule=schedule(wait=0, warmup=WARM_UP, active=N_STEPS, repeat=1)
    ) as profiler:
        for _ in range(WARM_UP + N_STEPS):
            begin = time.perf_counter()
            batch = next(batches)
            waits.append(time.perf_counter() - begin)
            loss = model(batch).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            time.sleep(0.005)
            steps.append((begin, time.perf_counter()))
            profiler.step()
    profiler.export_chrome_trace(f"{out}/workers.pt.trace.json.gz")
    facts = {"steps": [e - b for b, e in steps[WARM_UP:]], "wait_s": waits[WARM_UP:], "n_workers": n}
    with open(f"{out}/workers.json", "w", encoding="utf-8") as file:
        json.dump(facts, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
