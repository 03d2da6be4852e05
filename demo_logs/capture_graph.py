"""The training loop of capture_keras.py's model as one tf.function -> an event file beside that run, for the
page on TPU compatibility.

    python capture_graph.py keras_slow_input

The function makes its input, trains on each batch and prints the loss, as a custom loop does that somebody
wants to take to a TPU. Nothing is trained: the function is traced and `tf.summary.graph` writes its graph.
The logdir's scalars stay as they are.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

import tensorflow as tf
from capture_keras import BATCH_SIZE, slow_dataset, small_network
from tidy import print_versions

FILE = "events.out.tfevents.1795219210.worker-0.graph.v2"


def traced_loop() -> tf.Graph:
    """The graph of an epoch: the pipeline, and for each batch a step and a line of text."""
    model = small_network()
    model.optimizer.build(model.trainable_variables)

    @tf.function
    def train_epoch() -> tf.Tensor:
        loss = 0.0
        for images, labels in slow_dataset(10 * BATCH_SIZE):
            with tf.name_scope("train_step"):
                loss = model.train_step((images, labels))["loss"]
            with tf.name_scope("report"):
                tf.print("loss", loss)
        return loss

    return train_epoch.get_concrete_function().graph


def main() -> None:
    """Write the file into the run's train folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("logdir", type=Path)
    target = parser.parse_args().logdir / "train" / FILE
    tf.keras.utils.set_random_seed(7)
    with tempfile.TemporaryDirectory() as scratch:
        with tf.summary.create_file_writer(scratch).as_default(step=0):
            tf.summary.graph(traced_loop())
        (written,) = Path(scratch).glob("events.out.tfevents.*")
        shutil.copyfile(written, target)
    print(f"wrote {target} ({target.stat().st_size:,} bytes)")
    print_versions("tensorflow-cpu", "keras", "numpy")


if __name__ == "__main__":
    main()
