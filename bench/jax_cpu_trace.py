"""A target number of events -> a real JAX CPU run of about that size, as `<output dir>/host0.xplane.pb`.

    python bench/jax_cpu_trace.py OUTPUT_DIR [--events 1720000]

Trains a small network with JAX on the CPU while the Python tracer is on; batches are made one example at a
time, which is where most events come from. A short profile first counts the events of a step; the second one
runs as many steps as the target needs. 1,720,000 events make a file of about 57 MB. Needs jax and nothing of
this project.
"""

from __future__ import annotations

import argparse
import itertools
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

LAYER_SIZES = (64, *(64,) * 16, 10)
BATCH_SIZE = 44
CALIBRATION_STEPS = 24
LEARNING_RATE = 0.01
EXAMPLES_PER_SHARD = 4096
EXAMPLE_BYTES = 4 * LAYER_SIZES[0]

Params = list[jax.Array]
annotated = jax.profiler.TraceAnnotation


def init_params(key: jax.Array) -> Params:
    """Random weights, no biases."""
    shapes = list(itertools.pairwise(LAYER_SIZES))
    keys = jax.random.split(key, len(shapes))
    return [
        jax.random.normal(k, shape) * np.sqrt(2.0 / shape[0]) for k, shape in zip(keys, shapes, strict=True)
    ]


def loss_of(params: Params, images: jax.Array, labels: jax.Array) -> jax.Array:
    """Mean cross entropy."""
    activations = images
    for weight in params[:-1]:
        activations = jax.nn.relu(activations @ weight)
    log_probabilities = jax.nn.log_softmax(activations @ params[-1])
    return -jnp.mean(jnp.take_along_axis(log_probabilities, labels[:, None], axis=1))


@jax.jit
def train_step(params: Params, images: jax.Array, labels: jax.Array) -> tuple[Params, jax.Array]:
    """One step of gradient descent."""
    loss, gradients = jax.value_and_grad(loss_of)(params, images, labels)
    return jax.tree.map(lambda value, gradient: value - LEARNING_RATE * gradient, params, gradients), loss


def examples(rng: np.random.Generator) -> Iterator[tuple[np.ndarray, int]]:
    """An endless stream of examples; reading, decoding and augmenting are annotated as a data
    loader would.
    """
    for index in itertools.count():
        shard, offset = divmod(index, EXAMPLES_PER_SHARD)
        offset_bytes = offset * EXAMPLE_BYTES
        with annotated(
            "read", shard=f"train-{shard:05d}-of-01024", offset_bytes=offset_bytes, size_bytes=EXAMPLE_BYTES
        ):
            image = rng.normal(size=LAYER_SIZES[0])
        with annotated("decode", index=index, shape=f"f32[{LAYER_SIZES[0]}]", size_bytes=EXAMPLE_BYTES):
            image, label = image.astype(np.float32), index % LAYER_SIZES[-1]
        with annotated("augment", index=index, label=label, policy="add_class_mark"):
            yield augment(image, label), label


def augment(image: np.ndarray, label: int) -> np.ndarray:
    """Add the class's mark to an image."""
    image[label] += 3.0
    return np.multiply(image, 0.5)


def train(params: Params, n_steps: int) -> None:
    """Run `n_steps` annotated steps."""
    stream = examples(np.random.default_rng(7))
    for step in range(n_steps):
        with jax.profiler.StepTraceAnnotation("train", step_num=step):
            images, labels = zip(*(next(stream) for _ in range(BATCH_SIZE)), strict=True)
            params, loss = train_step(params, np.stack(images), np.asarray(labels, dtype=np.int32))
            loss.block_until_ready()


def profile(params: Params, n_steps: int, logdir: str) -> Path:
    """Profile `n_steps` steps into `logdir`; the path of the XSpace file."""
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 1
    with jax.profiler.trace(logdir, profiler_options=options):
        train(params, n_steps)
    return next(Path(logdir).rglob("*.xplane.pb"))


def count_events(file: Path) -> int:
    """Events in all lines of all planes."""
    planes = jax.profiler.ProfileData.from_file(str(file)).planes
    return sum(1 for plane in planes for line in plane.lines for _ in line.events)


def main() -> None:
    """Calibrate, profile, move the file into place."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("output_dir", type=Path)
    parser.add_argument("--events", type=int, default=1_720_000)
    arguments = parser.parse_args()
    params = init_params(jax.random.key(7))
    train(params, 3)
    with tempfile.TemporaryDirectory() as logdir:
        n_events_per_step = count_events(profile(params, CALIBRATION_STEPS, logdir)) / CALIBRATION_STEPS
    n_steps = max(1, round(arguments.events / n_events_per_step))
    with tempfile.TemporaryDirectory() as logdir:
        file = profile(params, n_steps, logdir)
        arguments.output_dir.mkdir(parents=True, exist_ok=True)
        target = arguments.output_dir / "host0.xplane.pb"
        shutil.move(file, target)
    size_mb = target.stat().st_size / 1e6
    print(f"wrote {target}: {n_steps} steps, {count_events(target):,} events, {size_mb:.1f} MB")


if __name__ == "__main__":
    main()
