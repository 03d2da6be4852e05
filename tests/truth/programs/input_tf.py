"""TensorFlow loops with a slow or a ready input: `python input_tf.py OUT LOOP INPUT`, INPUT one of slow,
ready.

The pipeline's map sleeps 20 ms an element (slow) or not at all; `shuffle` fills a buffer of 16 such elements
before its first. The program writes the starts and ends of its steps, and how long each asked for its batch.
"""

import json
import sys
import time

import tensorflow as tf

N_STEPS, SIZE, SLEEP_S, PER_CALL = 12, 700, 0.02, 4
WEIGHTS = tf.Variable(tf.random.normal((SIZE, SIZE)))


def as_written():
    """Nothing is added to the pipeline: TensorFlow would work ahead of the loop otherwise."""
    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = False
    options.autotune.enabled = False
    return options


def pipeline(slow):
    def sleep(x):
        return tf.numpy_function(lambda y: (time.sleep(SLEEP_S), y)[1], [x], tf.float32)

    data = tf.data.Dataset.from_tensors(tf.ones((SIZE, SIZE))).repeat().with_options(as_written())
    if slow == "shuffle":
        return data.map(sleep).shuffle(16, seed=0)
    return data.map(sleep) if slow == "slow" else data.prefetch(4)


def compute(batch):
    value = batch
    for _ in range(4):
        value = tf.tanh(value @ WEIGHTS) * 0.01
    WEIGHTS.assign_add(value * 1e-6)
    return tf.reduce_sum(value)


@tf.function
def one_step(batch):
    return compute(batch)


@tf.function
def loop_step(batch):
    total = 0.0
    for _ in tf.range(3):
        total += compute(batch)
    return total


@tf.function
def all_steps(data):
    total = 0.0
    for batch in data.take(N_STEPS):
        total += compute(batch)
    return total


def keras_model(per_call):
    model = tf.keras.Sequential(
        [
            tf.keras.Input((64,)),
            tf.keras.layers.Dense(2048),
            tf.keras.layers.Dense(2048),
            tf.keras.layers.Dense(1),
        ]
    )
    model.compile("sgd", "mse", steps_per_execution=per_call)
    return model


def keras_data(slow):
    data = (
        tf.data.Dataset.from_tensors((tf.ones((64, 64)), tf.ones((64, 1))))
        .repeat()
        .with_options(as_written())
    )

    def sleep(x, y):
        return tf.numpy_function(lambda z: (time.sleep(SLEEP_S), z)[1], [x], tf.float32), y

    def sized(x, y):
        return tf.ensure_shape(x, (64, 64)), y

    return data.map(sleep).map(sized) if slow == "slow" else data.prefetch(4)


class Times(tf.keras.callbacks.Callback):
    """When batches began and ended."""

    def __init__(self):
        super().__init__()
        self.began, self.ended = [], []

    def on_train_batch_begin(self, batch, logs=None):
        self.began.append(time.perf_counter())

    def on_train_batch_end(self, batch, logs=None):
        self.ended.append(time.perf_counter())


def keras(out, slow, per_call):
    model, data = keras_model(per_call), keras_data(slow)
    model.fit(data, steps_per_epoch=2 * per_call, epochs=1, verbose=0)
    times = Times()
    n_batches = N_STEPS * per_call
    tf.profiler.experimental.start(out)
    begin = time.perf_counter()
    model.fit(data, steps_per_epoch=n_batches, epochs=1, verbose=0, callbacks=[times])
    end = time.perf_counter()
    tf.profiler.experimental.stop()
    return list(zip(times.began, times.ended, strict=False)), begin, end, []


def custom(out, kind, slow):
    data = pipeline(slow)
    iterator = iter(data)
    step = loop_step if kind == "matloop" else one_step
    if slow != "shuffle":
        step(next(iterator)).numpy()
    else:
        step(tf.ones((SIZE, SIZE))).numpy()
    steps, waits = [], []

    def batch():
        asked = time.perf_counter()
        value = next(iterator)
        waits.append(time.perf_counter() - asked)
        return value

    tf.profiler.experimental.start(out)
    begin = time.perf_counter()
    for number in range(N_STEPS):
        started = time.perf_counter()
        if kind == "custom":
            step(batch()).numpy()
        else:
            with tf.profiler.experimental.Trace("train", step_num=number, _r=1):
                step(batch()).numpy()
        steps.append((started, time.perf_counter()))
    end = time.perf_counter()
    tf.profiler.experimental.stop()
    return steps, begin, end, waits


def graph(out, slow):
    data = pipeline(slow)
    all_steps(data).numpy()
    tf.profiler.experimental.start(out)
    begin = time.perf_counter()
    all_steps(data).numpy()
    end = time.perf_counter()
    tf.profiler.experimental.stop()
    return [], begin, end, []


def main(out, kind, slow):
    if kind in ("keras", "spe"):
        steps, begin, end, waits = keras(out, slow, PER_CALL if kind == "spe" else 1)
    else:
        steps, begin, end, waits = graph(out, slow) if kind == "graph" else custom(out, kind, slow)
    with open(f"{out}/truth.json", "w") as file:
        json.dump({"steps": steps, "begin": begin, "end": end, "wait_s": waits}, file)


main(*sys.argv[1:])
