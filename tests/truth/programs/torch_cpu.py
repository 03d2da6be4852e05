"""PyTorch on the CPU, steps that wait for their data loader: `python torch_cpu.py OUT`.

Ten training steps of a model of two linear layers. Each batch has 8 samples that sleep 2 ms, but for every
third one, which sleep twice as long. The program writes the starts and ends of its steps, how long each
waited for its batch, and how often it called each operation.
"""

import json
import sys
import time

import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule

WARM_UP, N_STEPS, BATCH, SLEEP_S = 2, 10, 8, 0.002
WIDTHS = (256, 1024, 64)


class Samples(torch.utils.data.Dataset):
    """Samples that take long to come."""

    def __len__(self):
        return (WARM_UP + N_STEPS + 1) * BATCH

    def __getitem__(self, index):
        time.sleep(SLEEP_S * (2 if index // BATCH % 3 == 0 else 1))
        return torch.full((WIDTHS[0],), float(index))


def main(out):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = torch.nn.Sequential(
        torch.nn.Linear(WIDTHS[0], WIDTHS[1]), torch.nn.ReLU(), torch.nn.Linear(WIDTHS[1], WIDTHS[2])
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    batches = iter(torch.utils.data.DataLoader(Samples(), batch_size=BATCH))
    steps, waits, forward = [], [], []
    with profile(
        activities=[ProfilerActivity.CPU], schedule=schedule(wait=0, warmup=WARM_UP, active=N_STEPS, repeat=1)
    ) as profiler:
        for _ in range(WARM_UP + N_STEPS):
            begin = time.perf_counter()
            batch = next(batches)
            waits.append(time.perf_counter() - begin)
            ahead = time.perf_counter()
            with record_function("forward_pass"):
                loss = model(batch).square().mean()
            forward.append(time.perf_counter() - ahead)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            steps.append((begin, time.perf_counter()))
            profiler.step()
    profiler.export_chrome_trace(f"{out}/worker-0.pt.trace.json")
    facts = {
        "steps": steps[WARM_UP:],
        "wait_s": waits[WARM_UP:],
        "forward_s": forward[WARM_UP:],
        "n_steps": N_STEPS,
        "calls": {"aten::linear": 2 * N_STEPS, "aten::relu": N_STEPS, "forward_pass": N_STEPS},
    }
    with open(f"{out}/truth.json", "w", encoding="utf-8") as file:
        json.dump(facts, file)


main(*sys.argv[1:])
