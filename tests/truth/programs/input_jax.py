"""JAX loops that wait for data in ways of their own: `python input_jax.py OUT LOADER PYTHON_TRACER_LEVEL`.

Each is 12 annotated steps of one jitted function. The program writes what it measured itself: the steps'
starts and ends, and how long each waited for its data.
"""

import json
import queue
import sys
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np

N_STEPS, SIZE = 12, 500
WAIT_S, READ_S = 0.015, 0.08


@jax.jit
def update(weights, batch):
    """A few milliseconds of matrix products."""
    for _ in range(4):
        weights = jnp.tanh(weights @ batch) * 0.01
    return weights


@jax.jit
def mean(weights):
    """A second program in each step."""
    return jnp.mean(weights)


BATCH = np.random.default_rng(0).standard_normal((SIZE, SIZE)).astype(np.float32)


def sleepy_batches():
    """A generator whose elements take long to come."""
    while True:
        time.sleep(WAIT_S)
        yield BATCH


def ready_batches():
    """A generator that has its elements."""
    while True:
        yield BATCH


class Reader:
    """A thread that fills a queue more slowly than the loop drains it."""

    def __init__(self):
        self.ready = queue.Queue(2)
        threading.Thread(target=self.fill, daemon=True).start()

    def fill(self):
        while True:
            time.sleep(READ_S)
            self.ready.put(BATCH)

    def __iter__(self):
        return self

    def __next__(self):
        return self.ready.get()


def digest(n):
    """Work that Python itself does."""
    total = 0
    for i in range(n):
        total = (total * 31 + i) % 1_000_003
    return total


def slow_pipeline():
    """A tf.data pipeline that takes 10 ms an element."""
    import tensorflow as tf

    def slow(x):
        return tf.numpy_function(lambda y: (time.sleep(0.01), y)[1], [x], tf.float32)

    return iter(tf.data.Dataset.from_tensors(BATCH).repeat().map(slow))


class Loop:
    """Runs steps one way; `wait_s` is what each of them waited."""

    def __init__(self, loader):
        self.loader, self.wait_s = loader, []
        kinds = {
            "generator": sleepy_batches,
            "before": sleepy_batches,
            "queue": lambda: iter(Reader()),
            "tfdata": slow_pipeline,
        }
        self.batches = kinds.get(loader, ready_batches)()
        self.weights = jnp.ones((SIZE, SIZE))

    def timed_next(self):
        begin = time.perf_counter()
        batch = next(self.batches)
        batch = batch if isinstance(batch, np.ndarray) else batch.numpy()
        self.wait_s.append(time.perf_counter() - begin)
        return batch

    def step(self, number):
        """One step: (start, end)."""
        begin = time.perf_counter()
        batch = self.timed_next() if self.loader == "before" else None
        with jax.profiler.StepTraceAnnotation("train", step_num=number):
            if self.loader == "annotation":
                with jax.profiler.TraceAnnotation("load"):
                    waited = time.perf_counter()
                    time.sleep(WAIT_S)
                    self.wait_s.append(time.perf_counter() - waited)
            if self.loader == "python":
                waited = time.perf_counter()
                digest(150_000)
                self.wait_s.append(time.perf_counter() - waited)
            if batch is None:
                batch = self.timed_next() if self.loader not in ("annotation", "python") else BATCH
            self.weights = update(self.weights, batch)
            if self.loader == "loss":
                float(mean(self.weights))
            elif self.loader != "async":
                self.weights.block_until_ready()
        return begin, time.perf_counter()


def main(out, loader, tracer):
    loop = Loop(loader)
    for number in range(3):
        loop.step(number)
    jax.block_until_ready(loop.weights)
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = int(tracer)
    loop.wait_s.clear()
    jax.profiler.start_trace(out, profiler_options=options)
    steps = [loop.step(100 + number) for number in range(N_STEPS)]
    jax.block_until_ready(loop.weights)
    end = time.perf_counter()
    jax.profiler.stop_trace()
    with open(f"{out}/truth.json", "w") as file:
        json.dump({"steps": steps, "wait_s": loop.wait_s, "end": end}, file)


main(*sys.argv[1:])
