"""A JAX inference loop -> a logdir with one profile.

    python capture_predict.py OUTPUT_DIR

A small image classifier answers requests of two batch sizes; each request is one annotated step. The forward
pass is compiled for both sizes before the profile starts. The Python tracer is off, so the runtime's own
events stand out.
"""

from __future__ import annotations

import argparse
import itertools
import shutil
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from tidy import keep_profile, print_versions

IMAGE_SHAPE = (32, 32, 3)
CHANNELS = (3, 16, 32, 64)
N_CLASSES = 10
BATCH_SIZES = (4, 16)
PROFILED_REQUESTS = 240

Params = dict[str, jax.Array]


def init_params(key: jax.Array) -> Params:
    """Random weights of three convolutions and a classifier."""
    keys = jax.random.split(key, len(CHANNELS))
    params = {
        f"conv_{i}": jax.random.normal(keys[i], (3, 3, n_in, n_out)) / np.sqrt(9 * n_in)
        for i, (n_in, n_out) in enumerate(itertools.pairwise(CHANNELS))
    }
    params["head"] = jax.random.normal(keys[-1], (CHANNELS[-1], N_CLASSES)) / np.sqrt(CHANNELS[-1])
    return params


@jax.jit
def predict(params: Params, images: jax.Array) -> jax.Array:
    """Class probabilities of a batch of images."""
    activations = images
    for i in range(len(CHANNELS) - 1):
        with jax.named_scope(f"conv_{i}"):
            activations = jax.lax.conv_general_dilated(
                activations, params[f"conv_{i}"], (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
            activations = jax.nn.relu(activations)
    with jax.named_scope("head"):
        return jax.nn.softmax(activations.mean(axis=(1, 2)) @ params["head"])


def answer(params: Params, rng: np.random.Generator, request: int) -> np.ndarray:
    """Make one request's images, run the network, fetch the winning classes."""
    batch_size = BATCH_SIZES[request % len(BATCH_SIZES)]
    with jax.profiler.TraceAnnotation("decode_request", batch_size=batch_size):
        images = rng.normal(size=(batch_size, *IMAGE_SHAPE)).astype(np.float32)
    return np.asarray(jnp.argmax(predict(params, images), axis=1))


def main() -> None:
    """Answer each batch size once outside the profile, then profile a series of requests."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output_dir", type=Path)
    logdir: Path = parser.parse_args().output_dir
    shutil.rmtree(logdir, ignore_errors=True)
    rng = np.random.default_rng(7)
    params = init_params(jax.random.key(7))
    for request in range(len(BATCH_SIZES)):
        answer(params, rng, request)
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    with jax.profiler.trace(str(logdir), profiler_options=options):
        for request in range(PROFILED_REQUESTS):
            with jax.profiler.StepTraceAnnotation("predict", step_num=request):
                answer(params, rng, request)
    keep_profile(logdir, "requests")
    print_versions("jax", "jaxlib", "numpy")


if __name__ == "__main__":
    main()
