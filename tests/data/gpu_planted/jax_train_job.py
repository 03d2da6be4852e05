"""Captures JAX runs with one planted cause each on a GPU: `python jax_train_job.py OUT`."""

import gzip
import json
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

OUT = Path(sys.argv[1])
OUT.mkdir(parents=True, exist_ok=True)
STEPS, SIZE = 8, 4096
TRUTH = {}


@jax.jit
def update(w, x):
    for _ in range(12):
        x = jnp.tanh(x @ w)
    return w + 1e-6 * x, (x.astype(jnp.float32) ** 2).mean()


def smooth_curve(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        sum(range(2000))


def log_loss(loss):
    return float(loss)


def many_small(x):
    for _ in range(60):
        x = jnp.sin(x) + 1.0
    return x


def send_table(table):
    return jax.device_put(table).sum()


def run(name):
    w = jnp.eye(SIZE, dtype=jnp.bfloat16)
    x = jnp.ones((SIZE, SIZE), jnp.bfloat16)
    table = np.ones((4096, 4096), np.float32)
    small = jnp.ones((64, 64))
    lost, steps = [], []

    def train_step(w):
        begin = time.perf_counter()
        if name == "put":
            send_table(table).block_until_ready()
        if name == "small":
            many_small(small).block_until_ready()
        if name == "python":
            smooth_curve(0.015)
        lost.append(time.perf_counter() - begin)
        w, loss = update(w, x)
        if name == "item":
            log_loss(loss)
            smooth_curve(0.003)
        return w, loss

    w, loss = train_step(w)
    loss.block_until_ready()
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 1
    folder = OUT / f"_{name}"
    with jax.profiler.trace(str(folder), profiler_options=options):
        for i in range(STEPS):
            begin = time.perf_counter()
            with jax.profiler.StepTraceAnnotation("train", step_num=i):
                w, loss = train_step(w)
                if name != "healthy":
                    loss.block_until_ready()
            steps.append(time.perf_counter() - begin)
        loss.block_until_ready()
    (path,) = folder.rglob("*.xplane.pb")
    (OUT / f"jax_{name}.xplane.pb.gz").write_bytes(gzip.compress(path.read_bytes()))
    for one in sorted(folder.rglob("*"), reverse=True):
        one.unlink() if one.is_file() else one.rmdir()
    folder.rmdir()
    TRUTH[f"jax_{name}"] = {"steps": steps, "planted": lost[1:]}


for job in ("healthy", "item", "python", "small", "put"):
    run(job)
TRUTH["jax"] = jax.__version__
(OUT / "planted_jax.json").write_text(json.dumps(TRUTH, indent=1), "utf-8")
print({k: v["steps"][:3] if isinstance(v, dict) else v for k, v in TRUTH.items()})
