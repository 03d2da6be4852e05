"""Captures a JAX run of this folder on a GPU: `python capture_jax.py OUT NAME TRACER_LEVEL
slow|sync|async`.
"""

import json
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

OUT, TRACER, MODE = Path(sys.argv[1]) / sys.argv[2], int(sys.argv[3]), sys.argv[4]
N, BATCH, LAYERS, STEPS = 4096, 8192, 4, 8


@jax.jit
def step(weights, x):
    def loss(weights):
        h = x
        for w in weights:
            h = jnp.tanh(h @ w)
        return (h.astype(jnp.float32) ** 2).mean()

    value, gradients = jax.value_and_grad(loss)(weights)
    return [w - 0.01 * g for w, g in zip(weights, gradients, strict=True)], value


weights = [jax.random.normal(jax.random.key(0), (N, N), jnp.bfloat16) * 0.02 for _ in range(LAYERS)]
on_host = [np.random.randn(BATCH, N).astype(np.float32) for _ in range(3)]
on_device = jnp.asarray(on_host[0], jnp.bfloat16)
weights, value = step(weights, on_device)
value.block_until_ready()
begin = time.perf_counter()
for _ in range(10):
    weights, value = step(weights, on_device)
value.block_until_ready()
truth = {"steps": [], "input": [], "alone_s": (time.perf_counter() - begin) / 10}


def load(i):
    if MODE != "slow":
        return on_device
    time.sleep(0.03)
    return jnp.asarray(on_host[i % 3], jnp.bfloat16)


options = jax.profiler.ProfileOptions()
options.python_tracer_level = TRACER
jax.profiler.start_trace(str(OUT), profiler_options=options)
for i in range(STEPS):
    begin = time.perf_counter()
    with jax.profiler.StepTraceAnnotation("train", step_num=i):
        batch = load(i)
        loaded = time.perf_counter()
        weights, value = step(weights, batch)
        if MODE != "async":
            value.block_until_ready()
    truth["steps"].append(time.perf_counter() - begin)
    truth["input"].append(loaded - begin)
value.block_until_ready()
jax.profiler.stop_trace()
(OUT / "truth.json").write_text(json.dumps(truth), "utf-8")
