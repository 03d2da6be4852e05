"""A batching server of two models in JAX: `python serve_batches_jax.py OUT KIND`.

Requests of one example arrive at random, each for one of two models. A worker takes what waits for a model,
at most eight, pads it to an allowed size (1, 4 or 8), runs the model, and answers.

    batches     the worker annotates each batch: `predict` with its model and the number of its examples
    requests    clients annotate each request from its arrival to its answer: `request` with its model

The program writes the moments of all requests and batches by its own clock.
"""

import json
import queue
import random
import sys
import threading
import time
from contextlib import nullcontext

import jax
import jax.numpy as jnp
import numpy as np

ALLOWED, N_REQUESTS, WIDTHS = (1, 4, 8), 120, {"small": 256, "large": 768}
WEIGHTS = {
    name: [jnp.full((width, width), 0.5 / width, jnp.float32) for _ in range(6)]
    for name, width in WIDTHS.items()
}


@jax.jit
def model(weights, inputs):
    """A few layers."""
    for layer in weights:
        inputs = jnp.tanh(inputs @ layer) + 0.01
    return inputs.sum(axis=1)


def padded(n):
    """The least allowed size for n examples."""
    return min(size for size in ALLOWED if size >= n)


class Server:
    """Queues of two models and a worker."""

    def __init__(self, kind):
        self.kind, self.batches, self.requests = kind, [], []
        self.waiting = {name: queue.Queue() for name in WIDTHS}
        self.arrived, self.is_open = threading.Semaphore(0), True

    def answer(self, name, members):
        """Run one batch."""
        n = len(members)
        began = time.perf_counter()
        mark = (
            jax.profiler.TraceAnnotation("predict", model_id=name, batch_size=n)
            if self.kind == "batches"
            else jax.profiler.TraceAnnotation("run_model")
        )
        with mark:
            rows = np.zeros((padded(n) * 16, WIDTHS[name]), np.float32)
            for i, number in enumerate(members):
                rows[i * 16 : (i + 1) * 16] = number
            result = np.asarray(model(WEIGHTS[name], rows))
        self.batches.append((began, time.perf_counter(), name, n, padded(n)))
        return result

    def work(self):
        """Answer requests until the server closes."""
        while self.is_open or any(not one.empty() for one in self.waiting.values()):
            if not self.arrived.acquire(timeout=0.05):
                continue
            for name, waiting in self.waiting.items():
                members, events = [], []
                while len(members) < ALLOWED[-1] and not waiting.empty():
                    number, event = waiting.get()
                    members.append(number)
                    events.append(event)
                if members:
                    self.answer(name, members)
                    for event in events:
                        event.set()

    def ask(self, number, name):
        """One request of a client."""
        began = time.perf_counter()
        mark = (
            jax.profiler.TraceAnnotation("request", model_id=name, batch_size=1, request_id=number)
            if self.kind == "requests"
            else nullcontext()
        )
        with mark:
            event = threading.Event()
            self.waiting[name].put((number, event))
            self.arrived.release()
            event.wait()
        self.requests.append((began, time.perf_counter(), name))


def main():
    out, kind = sys.argv[1], sys.argv[2]
    chance, server = random.Random(5), Server(kind)
    for name in WIDTHS:
        for size in ALLOWED:
            server.answer(name, [0] * size)
    server.batches.clear()
    worker = threading.Thread(target=server.work)
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    clients = []
    with jax.profiler.trace(out, profiler_options=options):
        worker.start()
        for number in range(N_REQUESTS):
            name = chance.choices(tuple(WIDTHS), (2, 1))[0]
            clients.append(threading.Thread(target=server.ask, args=(number, name)))
            clients[-1].start()
            time.sleep(chance.expovariate(1 / 0.0015) if number % 30 > 10 else 0)
        for client in clients:
            client.join()
        server.is_open = False
        worker.join()
    facts = {"batches": server.batches, "requests": server.requests}
    with open(f"{out}/truth.json", "w", encoding="utf-8") as file:
        json.dump(facts, file)


main()
