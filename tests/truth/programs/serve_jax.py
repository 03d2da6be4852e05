"""A prediction server in JAX: `python serve_jax.py OUT THREADS`.

Each thread answers requests of two sizes, one after another: it decodes an input, calls the model, waits for
the result and encodes it. A thread takes as many requests as the others. The program writes when each request
began, was decoded, had its result, and ended, by its own clock.
"""

import json
import sys
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np

N_REQUESTS, SIZES = 60, (2, 16)
DECODE_S, ENCODE_S = 0.002, 0.001
WEIGHTS = np.random.default_rng(0).standard_normal((6, 640, 640)).astype(np.float32)


@jax.jit
def model(weights, inputs):
    """A few layers."""
    for layer in weights:
        inputs = jnp.tanh(inputs @ layer) * 0.1
    return inputs.sum(axis=1)


def work(seconds):
    """Compute in Python for about that long."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        np.sum(np.arange(200))


def answer(weights, number, size):
    """One request; its moments."""
    began = time.perf_counter()
    with jax.profiler.StepTraceAnnotation("predict", step_num=number, batch_size=size):
        with jax.profiler.TraceAnnotation("read_body"):
            work(DECODE_S)
            inputs = np.full((size * 40, WEIGHTS.shape[1]), number % 7, np.float32)
        decoded = time.perf_counter()
        result = np.asarray(model(weights, inputs))
        done = time.perf_counter()
        with jax.profiler.TraceAnnotation("write_body"):
            work(ENCODE_S)
            json.dumps(result.tolist())
    return began, decoded, done, time.perf_counter(), size


def main():
    out, n_threads = sys.argv[1], int(sys.argv[2])
    weights = jax.device_put(WEIGHTS)
    for size in SIZES:
        answer(weights, 0, size)
    moments = []

    def serve(first):
        for number in range(first, N_REQUESTS, n_threads):
            moments.append((number, *answer(weights, number, SIZES[number % len(SIZES)])))

    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    threads = [threading.Thread(target=serve, args=(first,)) for first in range(n_threads)]
    with jax.profiler.trace(out, profiler_options=options):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    moments.sort()
    columns = dict(
        zip(
            ("number", "began_s", "decoded_s", "done_s", "ended_s", "size"),
            zip(*moments, strict=True),
            strict=True,
        )
    )
    with open(f"{out}/truth.json", "w", encoding="utf-8") as file:
        json.dump(columns, file)


main()
