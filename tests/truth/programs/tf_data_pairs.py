"""Random tf.data pipelines with a planted slow stage, before and after a change that is really made.

    python tf_data_pairs.py OUT SEED N [NAME]

Draws N cases from SEED. Of each, steps are timed without the profiler (before, after, before, after) and
profiled once (before). Profiles lie in `OUT/<case>`; `OUT/truth.json` holds what was planted and measured.
NAME runs the one case of that name.
"""

import glob
import json
import os
import random
import shutil
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import tensorflow as tf

DATA = tf.data.Dataset
ANY_MAP = r"(Map|ParallelMapV2|MapAndBatch)"
PHASE_S, MIN_STEPS, MAX_STEPS, WARM_UP_S = 0.8, 14, 60, 0.25
FILLS_S = 0.6  # time for one pass over what a cache is to hold


def sleeping(costs_ms):
    """Sleeps by element: element i takes costs[i % n]. The processor stays free."""

    def wait(x):
        time.sleep(costs_ms[int(x.flat[0]) % len(costs_ms)] / 1e3)
        return x

    def apply(x):
        return tf.ensure_shape(tf.numpy_function(wait, [x], x.dtype), x.shape)

    return apply


def computing(costs_ms):
    """Multiplies matrices for about that long on one processor; the element decides how often, so that
    nothing is folded.
    """
    size = 256

    def apply(x):
        first = tf.reshape(x, [-1])[0]
        times = tf.gather(
            tf.constant([max(1, round(ms / UNIT_MS)) for ms in costs_ms]), first % len(costs_ms)
        )
        a = tf.fill([size, size], tf.cast(first % 7, tf.float32) * 1e-3)
        b = tf.while_loop(
            lambda i, _a: i < times, lambda i, a: (i + 1, tf.linalg.matmul(a, a) * 1e-3), [0, a]
        )[1]
        return x + tf.cast(b[0, 0] * 0.0, x.dtype)

    return apply


def plus(x):
    return x + 1


def numbers(n=1_000_000):
    return DATA.range(n)


class Case:
    """What is planted: the shape, its slow function, lanes, batch, pool, the consumer, and the change."""

    def __init__(self, rng, i):
        self.shape = rng.choices(list(SHAPES), [weight for weight, *_ in SHAPES.values()])[0]
        _weight, self.stage, changes, self.build = SHAPES[self.shape]
        self.change = rng.choice(changes)
        self.is_busy = rng.random() < 0.15 and self.shape not in ("generator", "uneven")
        self.pool = rng.choice((2, 4, 8)) if not self.is_busy else 2
        self.batch = rng.choice((2, 4, 6, 8))
        self.cost_ms = round(rng.uniform(1.5, 8.0), 2)
        self.costs = [self.cost_ms]
        if self.shape == "uneven":
            n = rng.choice((3, 4, 6, 9))
            self.costs = [round(self.cost_ms * rng.choice((0.3, 0.5, 1, 1, 3, 6)), 2) for _ in range(n)]
        elif rng.random() < 0.3:
            self.costs = [
                round(self.cost_ms * rng.uniform(0.6, 1.4), 2) for _ in range(rng.choice((5, 7, 11)))
            ]
        parallel_now = rng.choice((None, None, 2)) if self.pool > 2 else None
        self.lanes = parallel_now if self.shape != "uneven" else rng.choice((2, min(4, self.pool)))
        if self.shape == "uneven" and self.change == "parallel" and self.lanes == self.pool:
            self.change = "remove"
        self.is_ahead = self.change in ("parallel", "remove", "cache") and rng.random() < 0.5
        work = self.cost_ms * self.batch / (self.lanes or 1)
        healthy = rng.random() < 0.25
        own_ms = work * rng.uniform(1.4, 2.5) if healthy else max(3.0, work * rng.uniform(0.1, 0.9))
        self.consumer_ms = 0.0 if rng.random() < 0.1 and not healthy else round(max(3.0, own_ms), 1)
        if healthy:
            self.is_ahead, self.change = True, "none"
        self.is_computing_consumer = self.consumer_ms > 2 and rng.random() < 0.2
        self.is_autotuned = rng.random() < 0.7
        self.is_plain = "prefetch" in self.change or rng.random() < 0.5
        self.is_annotated = rng.random() < 0.9
        self.has_python = rng.random() < 0.1
        self.name = f"{i:03d}_{self.shape}_{self.change}" + ("_busy" if self.is_busy else "")

    def slow(self):
        return (computing if self.is_busy else sleeping)(self.costs)

    def dataset(self, change=""):
        """The pipeline, with the change or without."""
        lanes = self.pool if change.startswith("parallel") else self.lanes
        function = plus if change == "remove" else self.slow()
        fits = max(
            self.batch * 2, int(FILLS_S * 1e3 / (sum(self.costs) / len(self.costs)) / self.batch) * self.batch
        )
        found = self.build(function, lanes, self.batch, fits if change == "cache" else 0)
        if self.is_ahead or change.endswith("prefetch"):
            found = found.prefetch(2)
        options = tf.data.Options()
        options.threading.private_threadpool_size = self.pool
        options.autotune.enabled = self.is_autotuned
        if self.is_plain:
            options.experimental_optimization.apply_default_optimizations = False
            options.experimental_optimization.inject_prefetch = False
        return found.with_options(options)


def source(function, lanes, fits):
    """Elements through the slow map; `fits`: how many, kept by a cache."""
    return (
        numbers(fits).map(function, num_parallel_calls=lanes).cache().repeat()
        if fits
        else numbers().map(function, num_parallel_calls=lanes)
    )


def two_maps(function, lanes, batch, fits):
    return source(function, lanes, fits).map(sleeping([0.5])).batch(batch)


def batch_map(function, lanes, batch, _fits):
    return numbers().batch(batch).map(function, num_parallel_calls=lanes)


def shuffled(function, lanes, batch, _fits):
    return numbers().shuffle(50, seed=1).map(function, num_parallel_calls=lanes).batch(batch)


def flat(function, lanes, batch, _fits):
    return (
        numbers()
        .flat_map(lambda i: DATA.range(i, i + 64).map(function, num_parallel_calls=lanes))
        .batch(batch)
    )


def zipped(function, lanes, batch, _fits):
    return DATA.zip(numbers().map(function, num_parallel_calls=lanes), numbers().map(sleeping([0.6]))).batch(
        batch
    )


def woven(function, lanes, batch, _fits):
    return numbers().interleave(lambda i: DATA.range(i, i + 32).map(function), cycle_length=3).batch(batch)


def woven_parallel(function, _lanes, batch, _fits):
    return (
        numbers()
        .interleave(lambda i: DATA.range(i, i + 32).map(function), cycle_length=2, num_parallel_calls=2)
        .batch(batch)
    )


def filtered(function, _lanes, batch, _fits):
    return numbers().filter(lambda x: function(x) >= 0).batch(batch)


def generated(_function, _lanes, batch, _fits):
    """A Python generator in place of the function: it takes as long (see `run`)."""

    def rows():
        for i in range(1_000_000):
            time.sleep(GENERATED_MS[i % len(GENERATED_MS)] / 1e3)
            yield i

    return DATA.from_generator(rows, output_signature=tf.TensorSpec([], tf.int64)).batch(batch)


def half_ahead(function, lanes, batch, fits):
    return source(function, lanes, fits).prefetch(2).map(sleeping([0.7])).batch(batch)


GENERATED_MS = [3.0]  # of the case that runs
_CHANGES = ("parallel", "prefetch", "parallel_prefetch", "remove", "cache")
# Weight, the slow stage's long name, changes, builder.
SHAPES = {
    "map": (4, f"::{ANY_MAP}$", _CHANGES, lambda f, n, b, fits: source(f, n, fits).batch(b)),
    "uneven": (
        3,
        f"::{ANY_MAP}$",
        ("parallel", "remove", "cache"),
        lambda f, n, b, fits: source(f, n, fits).batch(b),
    ),
    "two_maps": (3, f"::{ANY_MAP}::{ANY_MAP}$", ("parallel", "parallel_prefetch", "remove"), two_maps),
    "batch_map": (2, f"::{ANY_MAP}$", ("parallel", "prefetch", "parallel_prefetch", "remove"), batch_map),
    "shuffled": (2, f"::{ANY_MAP}$", ("parallel", "prefetch", "parallel_prefetch", "remove"), shuffled),
    "flat": (2, f"::FlatMap::{ANY_MAP}$", ("parallel", "prefetch", "parallel_prefetch"), flat),
    "zipped": (2, f"::Zip\\[0\\]::{ANY_MAP}$", ("parallel", "prefetch", "remove"), zipped),
    "woven": (1, f"Interleave\\w*::{ANY_MAP}$", ("prefetch", "remove"), woven),
    "woven_parallel": (1, f"Interleave\\w*::{ANY_MAP}$", ("remove",), woven_parallel),
    "filtered": (2, r"::(Parallel)?Filter$", ("prefetch",), filtered),
    "generator": (1, r"::Generator$", ("prefetch",), generated),
    "half_ahead": (2, f"::Prefetch::{ANY_MAP}$", ("parallel", "remove", "cache"), half_ahead),
}


def multiplier():
    """A step that multiplies matrices, and how long one multiplication takes in ms."""
    a = tf.random.uniform([256, 256]) * 1e-3

    @tf.function
    def step(x, n):
        total = tf.reduce_sum(tf.cast(x, tf.float32)) * 0.0
        return (
            total
            + tf.while_loop(lambda i, _: i < n, lambda i, b: (i + 1, tf.linalg.matmul(a, b)), [0, a])[1][0, 0]
        )

    x = tf.zeros([2], tf.int64)
    step(x, tf.constant(2))
    start = time.perf_counter()
    float(step(x, tf.constant(100)))
    return step, (time.perf_counter() - start) * 10


def unit_ms():
    """How long one turn of the loop in `computing` takes."""
    a = tf.fill([256, 256], 1e-3)

    @tf.function
    def run(n):
        return tf.while_loop(
            lambda i, _a: i < n, lambda i, b: (i + 1, tf.linalg.matmul(b, b) * 1e-3), [0, a]
        )[1][0, 0]

    run(tf.constant(2))
    start = time.perf_counter()
    float(run(tf.constant(100)))
    return max(0.01, (time.perf_counter() - start) * 1e3 / 100)


def loop(case, iterator, seconds, first=0):
    """Steps for at least that long; mean ms of a call, of a step, and their number."""
    waited = took = 0.0
    times = tf.constant(max(0, round(case.consumer_ms / STEP_MS)) if case.is_computing_consumer else 0)
    n = 0
    while n < MAX_STEPS and (took < seconds or n < MIN_STEPS):
        start = time.perf_counter()
        if case.is_annotated:
            with tf.profiler.experimental.Trace("train", step_num=first + n, _r=1):
                waited += one(case, iterator, start, times)
        else:
            waited += one(case, iterator, start, times)
        took += time.perf_counter() - start
        n += 1
    return {"latency_ms": waited * 1e3 / n, "step_ms": took * 1e3 / n, "n": n}


def one(case, iterator, start, times):
    x = next(iterator)
    waited = time.perf_counter() - start
    float(STEP(x[0] if isinstance(x, tuple) else x, times))
    if not case.is_computing_consumer:
        time.sleep(case.consumer_ms / 1e3)
    return waited


def bare_ms():
    """What it takes to ask for an element that is there: Python and the eager call."""
    iterator = iter(numbers().batch(4).prefetch(8))
    times = []
    for _ in range(100):
        time.sleep(0.003)
        start = time.perf_counter()
        next(iterator)
        times.append(time.perf_counter() - start)
    return sorted(times)[50] * 1e3


def measured(case, change):
    iterator = iter(case.dataset(change))
    loop(case, iterator, WARM_UP_S + (2 * FILLS_S if change == "cache" else 0))
    return loop(case, iterator, PHASE_S)


def profiled(case, out):
    iterator = iter(case.dataset())
    loop(case, iterator, WARM_UP_S)
    options = tf.profiler.experimental.ProfilerOptions(
        host_tracer_level=2, python_tracer_level=int(case.has_python), device_tracer_level=0
    )
    tf.profiler.experimental.start(out, options)
    found = loop(case, iterator, PHASE_S)
    tf.profiler.experimental.stop()
    return found


def run(case, out):
    """Everything measured of a case."""
    global GENERATED_MS
    GENERATED_MS = case.costs
    before, after = [measured(case, "")], []
    if case.change != "none":
        after.append(measured(case, case.change))
    shutil.rmtree(f"{out}/{case.name}", ignore_errors=True)
    during = profiled(case, f"{out}/{case.name}")
    before.append(measured(case, ""))
    if case.change != "none":
        after.append(measured(case, case.change))
    assert glob.glob(f"{out}/{case.name}/**/*.xplane.pb", recursive=True)
    keys = (
        "name",
        "shape",
        "change",
        "stage",
        "pool",
        "batch",
        "costs",
        "lanes",
        "is_ahead",
        "consumer_ms",
        "is_plain",
        "is_autotuned",
        "is_busy",
        "is_annotated",
        "is_computing_consumer",
        "has_python",
    )
    return {
        **{key: getattr(case, key) for key in keys},
        "bare_ms": BARE_MS,
        "before": before,
        "after": after,
        "profiled": during,
    }


def main():
    global STEP, STEP_MS, UNIT_MS, BARE_MS
    out, seed, n = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    rng = random.Random(seed)
    cases = [Case(rng, i) for i in range(n)]
    STEP, STEP_MS = multiplier()
    UNIT_MS, BARE_MS = unit_ms(), bare_ms()
    result = []
    for case in cases:
        if len(sys.argv) > 4 and case.name != sys.argv[4]:
            continue
        result.append(run(case, out))
        with open(f"{out}/truth.json", "w") as file:
            json.dump(result, file, indent=1)


if __name__ == "__main__":
    main()
