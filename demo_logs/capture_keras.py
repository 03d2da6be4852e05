"""Keras training with the TensorBoard callback and a slow input pipeline -> a logdir with scalars and one
profile.

    python capture_keras.py OUTPUT_DIR

The pipeline reads one example at a time through a Python function that sleeps, maps without parallelism and
does not prefetch, so every step waits for input: what the input pipeline analysis is there to find.
"""

from __future__ import annotations

import argparse
import shutil
import time
from pathlib import Path

import numpy as np
import tensorflow as tf
from tidy import keep_profile, print_versions, rename_event_files

BATCH_SIZE = 32
STEPS_PER_EPOCH = 40
EPOCHS = 3
FIRST_PROFILED_BATCH, LAST_PROFILED_BATCH = 50, 69
READ_S = 0.0012


def read_example(index: np.int64) -> tuple[np.ndarray, np.int64]:
    """Stand in for a slow store: wait, then make an image of one of ten classes."""
    time.sleep(READ_S)
    label = np.int64(index % 10)
    noise = np.random.default_rng(int(index)).normal(scale=0.6, size=(32, 32, 3))
    return (noise + label / 10.0).astype(np.float32), label


def augment(image: tf.Tensor, label: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Flip, change contrast and resize: ordinary work, done in sequence."""
    image = tf.ensure_shape(image, (32, 32, 3))
    image = tf.image.random_flip_left_right(image)
    image = tf.image.random_contrast(image, 0.8, 1.2)
    return tf.image.resize(image, (28, 28)), tf.ensure_shape(label, ())


def slow_dataset(n_examples: int) -> tf.data.Dataset:
    """Range -> read -> augment -> batch, with no parallel calls and no prefetch."""
    dataset = tf.data.Dataset.range(n_examples)
    dataset = dataset.map(
        lambda index: tf.numpy_function(read_example, [index], (tf.float32, tf.int64)), name="read_example"
    )
    return dataset.map(augment, name="augment").shuffle(64).batch(BATCH_SIZE, drop_remainder=True)


def small_network() -> tf.keras.Model:
    """Two convolutions and two dense layers."""
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            layers.Input((28, 28, 3)),
            layers.Conv2D(16, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(32, 3, activation="relu"),
            layers.GlobalAveragePooling2D(),
            layers.Dense(64, activation="relu"),
            layers.Dense(10),
        ]
    )
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer="adam", loss=loss, metrics=["accuracy"])
    return model


def main() -> None:
    """Train, profile batches 50 to 69, keep what is worth keeping."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output_dir", type=Path)
    logdir: Path = parser.parse_args().output_dir
    shutil.rmtree(logdir, ignore_errors=True)
    tf.keras.utils.set_random_seed(7)
    callback = tf.keras.callbacks.TensorBoard(
        str(logdir),
        update_freq="epoch",
        write_graph=False,
        profile_batch=(FIRST_PROFILED_BATCH, LAST_PROFILED_BATCH),
    )
    n_training = BATCH_SIZE * STEPS_PER_EPOCH
    small_network().fit(
        slow_dataset(n_training),
        validation_data=slow_dataset(BATCH_SIZE * 5),
        epochs=EPOCHS,
        callbacks=[callback],
        verbose=2,
    )
    keep_profile(logdir, "slow_input")
    rename_event_files(logdir)
    print_versions("tensorflow-cpu", "keras", "numpy")


if __name__ == "__main__":
    main()
