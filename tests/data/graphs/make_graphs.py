"""Real TensorFlow -> the small event files and SavedModels beside this script, which the tests read without
TensorFlow.

    python make_graphs.py [OUTPUT_DIR]

Needs tensorflow-cpu 2.21. File names carry neither machine nor time. What each holds stands at its function.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import tensorflow as tf

HERE = Path(__file__).resolve().parent


def only_event_file(folder: Path) -> Path:
    files = list(folder.rglob("*.tfevents.*"))
    assert len(files) == 1, files
    return files[0]


def events(write: Callable[[], None], target: Path) -> None:
    """Keep the one event file that `write` makes."""
    with tempfile.TemporaryDirectory() as scratch:
        with tf.summary.create_file_writer(scratch).as_default(step=0):
            write()
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(only_event_file(Path(scratch)), target)


class Words(tf.Module):
    """Looks words up, embeds them, multiplies: strings, a hash table, a py_function and a matrix product."""

    def __init__(self) -> None:
        super().__init__()
        pairs = tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([0, 1], tf.int64))
        self.table = tf.lookup.StaticHashTable(pairs, -1)
        self.weights = tf.Variable(np.ones((4, 3), np.float32), name="weights")

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def __call__(self, words: tf.Tensor) -> tf.Tensor:
        with tf.name_scope("lookup"):
            ids = self.table.lookup(tf.strings.lower(words))
        with tf.name_scope("network"):
            with tf.name_scope("embed"):
                rows = tf.gather(self.weights, tf.maximum(ids, 0))
            with tf.name_scope("score"):
                return tf.nn.softmax(tf.matmul(rows, self.weights, transpose_b=True))


@tf.function
def step(x: tf.Tensor) -> tf.Tensor:
    """A loop, a condition, a Python function, a CPU's corner and a nonzero: what v2 control flow and
    functions look like.
    """
    with tf.name_scope("train"):
        for _ in tf.range(3):
            x = tf.cond(tf.reduce_sum(x) > 0, lambda x=x: x * 2.0, lambda x=x: x - 1.0)
        with tf.name_scope("python"):
            y = tf.numpy_function(np.sin, [x], tf.float32)
        with tf.name_scope("host"), tf.device("/CPU:0"):
            tf.print("x is", tf.strings.as_string(tf.reduce_sum(x)))
        return x + tf.ensure_shape(y, x.shape)


def graph_of_a_function() -> None:
    tf.summary.graph(step.get_concrete_function(tf.TensorSpec([2, 2], tf.float32)).graph)


def trace_of_a_function() -> None:
    tf.summary.trace_on(graph=True)
    step(tf.ones([2, 2]))
    tf.summary.trace_export("step", step=0)


def version_1(target: Path) -> None:
    """Session-style: variables, v1 control flow, a summary, a node that a TPU computation holds and one
    outside of compilation.
    """
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [2, 2], name="x")
        reference = tf.compat.v1.get_variable("reference", [2, 2], use_resource=False)
        y = tf.compat.v1.while_loop(lambda i, _: i < 3, lambda i, v: (i + 1, v + reference), [0, x])[1]
        tf.compat.v1.summary.scalar("total", tf.reduce_sum(y))
        tf.compat.v1.train.Saver([reference])
        with tempfile.TemporaryDirectory() as scratch:
            tf.compat.v1.summary.FileWriter(scratch, graph).close()
            shutil.copyfile(only_event_file(Path(scratch)), target)


def saved_model(target: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        tf.saved_model.save(Words(), scratch)
        target.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(Path(scratch, "saved_model.pb"), target / "saved_model.pb")


def main() -> None:
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    os.chdir(tempfile.gettempdir())
    events(graph_of_a_function, target / "function.tfevents.0")
    events(trace_of_a_function, target / "traced.tfevents.0")
    version_1(target / "version1.tfevents.0")
    saved_model(target / "words")


if __name__ == "__main__":
    main()
