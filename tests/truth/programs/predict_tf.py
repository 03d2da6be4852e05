"""TensorFlow that predicts: `python predict_tf.py OUT KIND`.

    annotated   calls of a tf.function, each in an annotation `predict`
    function    the same calls without annotations, of a function called `serve`
    keras       one `predict` of a Keras model, batch by batch
    uneven      the same with 100 rows in batches of 7: the last batch has 2

The program writes when each request began and ended by its own clock; of Keras as its callback sees it.
"""

import json
import sys
import time
from contextlib import nullcontext

import numpy as np
import tensorflow as tf

N_REQUESTS, SIZES = 40, (32, 256)
WEIGHTS = [tf.constant(np.random.default_rng(i).standard_normal((512, 512)), tf.float32) for i in range(4)]


@tf.function(reduce_retracing=True)
def serve(inputs):
    """A few layers."""
    for layer in WEIGHTS:
        inputs = tf.tanh(tf.matmul(inputs, layer)) * 0.1
    return tf.reduce_sum(inputs, axis=1)


def calls(is_annotated):
    """Moments of each request."""
    moments = []
    for number in range(N_REQUESTS):
        size = SIZES[number % 2]
        mark = (
            tf.profiler.experimental.Trace("predict", step_num=number, batch_size=size, _r=1)
            if is_annotated
            else nullcontext()
        )
        began = time.perf_counter()
        with mark:
            serve(tf.constant(np.full((size, 512), number, np.float32))).numpy()
        moments.append((began, time.perf_counter(), size))
    return moments


def keras_batches(n_rows, batch_size):
    """Moments of each batch of one `predict`."""
    import keras

    model = keras.Sequential([keras.layers.Dense(512, activation="tanh") for _ in range(4)])
    inputs = np.random.default_rng(0).standard_normal((n_rows, 512)).astype(np.float32)
    moments = []

    class Clock(keras.callbacks.Callback):
        def on_predict_batch_begin(self, batch, logs=None):
            self.began = time.perf_counter()

        def on_predict_batch_end(self, batch, logs=None):
            size = min(batch_size, n_rows - batch * batch_size)
            moments.append((self.began, time.perf_counter(), size))

    model.predict(inputs, batch_size=batch_size, verbose=0)
    with tf.profiler.experimental.Profile(sys.argv[1]):
        model.predict(inputs, batch_size=batch_size, verbose=0, callbacks=[Clock()])
    return moments


def main():
    out, kind = sys.argv[1], sys.argv[2]
    if kind == "keras":
        moments = keras_batches(64 * N_REQUESTS, 64)
    elif kind == "uneven":
        moments = keras_batches(100, 7)
    else:
        for size in SIZES * 2:
            serve(tf.zeros((size, 512)))
        with tf.profiler.experimental.Profile(out):
            moments = calls(kind == "annotated")
    columns = dict(zip(("began_s", "ended_s", "size"), zip(*moments, strict=True), strict=True))
    with open(f"{out}/truth.json", "w", encoding="utf-8") as file:
        json.dump(columns, file)


main()
