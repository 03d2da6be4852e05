"""JAX training with annotated steps and the Python tracer on -> a logdir with one profile.

    python capture_jax_train.py OUTPUT_DIR

A small multilayer perceptron, one jitted update a step, batches made in Python. Steps are marked with
`jax.profiler.StepTraceAnnotation`, phases with `jax.profiler.TraceAnnotation`.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import shutil
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from tidy import keep_profile, print_versions

LAYER_SIZES = (256, 512, 512, 10)
BATCH_SIZE = 384
WARM_UP_STEPS = 3
PROFILED_STEPS = 20

Params = list[tuple[jax.Array, jax.Array]]


def init_params(key: jax.Array) -> Params:
    """He-initialized weights and zero biases for LAYER_SIZES."""
    keys = jax.random.split(key, len(LAYER_SIZES) - 1)
    shapes = itertools.pairwise(LAYER_SIZES)
    return [
        (jax.random.normal(k, shape) * jnp.sqrt(2.0 / shape[0]), jnp.zeros(shape[1]))
        for k, shape in zip(keys, shapes, strict=True)
    ]


def loss_of(params: Params, images: jax.Array, labels: jax.Array) -> jax.Array:
    """Mean cross entropy of the network's logits."""
    activations = images
    for weight, bias in params[:-1]:
        activations = jax.nn.relu(activations @ weight + bias)
    weight, bias = params[-1]
    log_probabilities = jax.nn.log_softmax(activations @ weight + bias)
    return -jnp.mean(jnp.take_along_axis(log_probabilities, labels[:, None], axis=1))


@functools.partial(jax.jit, donate_argnums=0)
def train_step(params: Params, images: jax.Array, labels: jax.Array) -> tuple[Params, jax.Array]:
    """One step of gradient descent."""
    loss, gradients = jax.value_and_grad(loss_of)(params, images, labels)
    return jax.tree.map(lambda value, gradient: value - 0.01 * gradient, params, gradients), loss


def make_example(rng: np.random.Generator) -> tuple[np.ndarray, int]:
    """One noisy example of a random class."""
    label = int(rng.integers(LAYER_SIZES[-1]))
    image = rng.normal(size=LAYER_SIZES[0]).astype(np.float32)
    image[label] += 3.0
    return image, label


def make_batch(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """BATCH_SIZE examples, made one by one in Python."""
    images, labels = zip(*(make_example(rng) for _ in range(BATCH_SIZE)), strict=True)
    return np.stack(images), np.asarray(labels, dtype=np.int32)


def train(params: Params, rng: np.random.Generator, n_steps: int) -> Params:
    """Run `n_steps` annotated steps and print the last loss."""
    loss = jnp.zeros(())
    for step in range(n_steps):
        with jax.profiler.StepTraceAnnotation("train", step_num=step):
            with jax.profiler.TraceAnnotation("make_batch"):
                images, labels = make_batch(rng)
            params, loss = train_step(params, images, labels)
            loss.block_until_ready()
    print(f"loss after {n_steps} steps: {float(loss):.3f}")
    return params


def main() -> None:
    """Warm up outside the profile, then profile a few steps."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output_dir", type=Path)
    logdir: Path = parser.parse_args().output_dir
    shutil.rmtree(logdir, ignore_errors=True)
    rng = np.random.default_rng(7)
    params = train(init_params(jax.random.key(7)), rng, WARM_UP_STEPS)
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 1
    with jax.profiler.trace(str(logdir), profiler_options=options):
        train(params, rng, PROFILED_STEPS)
    keep_profile(logdir, "python_traced")
    print_versions("jax", "jaxlib", "numpy")


if __name__ == "__main__":
    main()
