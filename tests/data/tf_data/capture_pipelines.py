"""Captures small tf.data pipelines on the CPU, each with one planted slow stage, and pipelines before and
after a real change.

Needs TensorFlow (2.21 was used). Run it from a folder that says nothing of the machine, as paths of Python
get into profiles:

    cd /tmp/pipelines && python capture_pipelines.py

Writes `<case>.xplane.pb.gz` and `index.json` into the folder it is run from; copy them beside this script.
"""

import glob
import gzip
import json
import os
import re
import shutil
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import tensorflow as tf

STEPS, WARM_UP, MEASURED = 10, 4, 30
DATA = tf.data.Dataset
RECORDS = "records.tfrecord.gz"


def sleep(ms):
    """A function that sleeps for each element, without using the processor."""

    def wait(x):
        time.sleep(ms / 1e3)
        return x

    def apply(x):
        y = tf.numpy_function(wait, [x], x.dtype)
        return tf.ensure_shape(y, x.shape)

    return apply


def compute(n):
    """A function that multiplies matrices for each element."""

    def apply(x):
        a = tf.fill([n, n], tf.cast(tf.reduce_max(x) % 7, tf.float32))
        for _ in range(2):
            a = tf.linalg.matmul(a, a) * 1e-3
        return x + tf.cast(a[0, 0] * 0.0, x.dtype)

    return apply


def numbers():
    return DATA.range(1_000_000)


def plus(x):
    return x + 1


def records(n_files=1):
    """Records that cost time to read: compressed zeros."""
    if not os.path.exists(RECORDS):
        with tf.io.TFRecordWriter(RECORDS, tf.io.TFRecordOptions(compression_type="GZIP")) as writer:
            for _ in range(24):
                writer.write(bytes(2_000_000))
    return tf.data.TFRecordDataset([RECORDS] * n_files, compression_type="GZIP")


def lines():
    """A text file of long lines."""
    if not os.path.exists("lines.txt.gz"):
        with gzip.open("lines.txt.gz", "wb", 1) as file:
            for _ in range(40):
                file.write(b"x" * 2_000_000 + b"\n")
    return tf.data.TextLineDataset("lines.txt.gz", compression_type="GZIP")


def blocks():
    """A file of records of one length."""
    if not os.path.exists("blocks.gz"):
        with gzip.open("blocks.gz", "wb", 1) as file:
            file.write(bytes(2_000_000 * 40))
    return tf.data.FixedLengthRecordDataset("blocks.gz", 2_000_000, compression_type="GZIP")


def length(x):
    return tf.cast(tf.strings.length(x), tf.int64)


ANY_MAP = r"(Map|ParallelMapV2|MapAndBatch)"


def planted_with(slow, tag):
    """Pipelines with a slow function in each place: name, the stage's long name as a pattern, the
    pipeline.
    """

    def from_slow(i):
        return DATA.range(i, i + 4).map(slow)

    root, tail = "^Iterator::Root", "$"
    yield f"map_{tag}", f"{root}::(Prefetch::)?{ANY_MAP}{tail}", numbers().map(slow)
    yield f"map_batch_{tag}", f"{root}::({ANY_MAP}|BatchV2::Map){tail}", numbers().map(slow).batch(3)
    yield f"map_batch_prefetch_{tag}", f"::{ANY_MAP}{tail}", numbers().map(slow).batch(3).prefetch(2)
    yield f"map_shuffle_{tag}", f"::Shuffle::{ANY_MAP}{tail}", numbers().map(slow).shuffle(8).batch(2)
    yield f"shuffle_map_{tag}", f"::{ANY_MAP}{tail}", numbers().shuffle(100).map(slow).batch(3)
    yield (
        f"first_of_maps_{tag}",
        f"::{ANY_MAP}::{ANY_MAP}::{ANY_MAP}{tail}",
        numbers().map(slow).map(plus).map(plus).batch(2).prefetch(1),
    )
    yield (
        f"second_of_maps_{tag}",
        f"{root}::(Prefetch::)?{ANY_MAP}::{ANY_MAP}{tail}",
        numbers().map(plus).map(slow).map(plus).batch(3).prefetch(1),
    )
    yield (
        f"third_of_maps_{tag}",
        f"{root}::(Prefetch::)?{ANY_MAP}{tail}",
        numbers().map(plus).map(plus).map(slow).batch(3).prefetch(1),
    )
    yield f"batch_map_{tag}", f"{root}::(Prefetch::)?{ANY_MAP}{tail}", numbers().batch(8).map(slow)
    yield f"batch_map_prefetch_{tag}", f"::{ANY_MAP}{tail}", numbers().batch(8).map(slow).prefetch(2)
    yield f"flat_map_inner_{tag}", f"::FlatMap::{ANY_MAP}{tail}", numbers().flat_map(from_slow).batch(3)
    yield (
        f"flat_map_input_{tag}",
        f"::FlatMap::{ANY_MAP}{tail}",
        numbers().map(slow).flat_map(lambda i: DATA.range(2)).batch(4),
    )
    yield (
        f"interleave_inner_{tag}",
        f"::InterleaveV\\d?::{ANY_MAP}{tail}|::Interleave\\w*::{ANY_MAP}{tail}",
        numbers().interleave(from_slow, cycle_length=2).batch(3),
    )
    yield (
        f"interleave_input_{tag}",
        f"::\\w*Interleave\\w*::{ANY_MAP}{tail}",
        numbers().map(slow).interleave(lambda i: DATA.range(1), cycle_length=2).batch(2),
    )
    yield (
        f"parallel_interleave_{tag}",
        f"::ParallelInterleave\\w*::{ANY_MAP}{tail}",
        numbers().interleave(from_slow, cycle_length=2, num_parallel_calls=2).batch(6).prefetch(1),
    )
    yield from planted_in_branches(slow, tag)


def planted_in_branches(slow, tag):
    """The same for pipelines that branch, cache, filter or repeat."""

    def always(x):
        return slow(x) >= 0

    def scanned(state, x):
        return state + 1, slow(x)

    tail = "$"
    yield (
        f"zip_first_{tag}",
        f"::Zip\\[0\\]::{ANY_MAP}{tail}",
        DATA.zip(numbers().map(slow), numbers().map(plus)).map(lambda a, b: a + b).batch(3),
    )
    yield (
        f"zip_second_{tag}",
        f"::Zip\\[1\\]::{ANY_MAP}{tail}",
        DATA.zip(numbers().map(plus), numbers().map(slow)).batch(3).prefetch(1),
    )
    yield f"cache_map_{tag}", f"::{ANY_MAP}{tail}", DATA.range(64).map(plus).cache().map(slow).batch(3)
    yield (
        f"map_cache_{tag}",
        f"::(Cache|MemoryCache\\w*|Memory\\w*)::{ANY_MAP}{tail}|Cache\\w*(::\\w+)*::{ANY_MAP}{tail}",
        numbers().take(500).map(slow).cache().batch(3),
    )
    yield f"prefetch_map_{tag}", f"::{ANY_MAP}{tail}", numbers().map(plus).prefetch(4).map(slow).batch(3)
    yield (
        f"map_prefetch_map_{tag}",
        f"::Prefetch::{ANY_MAP}{tail}",
        numbers().map(slow).prefetch(2).map(plus).batch(3),
    )
    yield f"filter_{tag}", f"::Filter{tail}|::ParallelFilter{tail}", numbers().filter(always).batch(3)
    yield f"scan_{tag}", f"::Scan{tail}", numbers().scan(tf.constant(0, tf.int64), scanned).batch(3)
    yield (
        f"repeat_{tag}",
        f"::\\w*Repeat\\w*::{ANY_MAP}{tail}",
        DATA.range(8).map(slow).repeat().batch(3).prefetch(2),
    )
    yield f"take_skip_{tag}", f"::{ANY_MAP}{tail}", numbers().map(slow).skip(1).take(500).batch(3)
    yield (
        f"sample_{tag}",
        f"::DirectedInterleave\\[1\\]::{ANY_MAP}{tail}",
        DATA.sample_from_datasets([numbers().map(plus), numbers().map(slow)], [0.5, 0.5], seed=3).batch(6),
    )
    yield (
        f"parallel_map_{tag}",
        f"::{ANY_MAP}{tail}",
        numbers().map(slow, num_parallel_calls=2).batch(8).prefetch(1),
    )
    yield (
        f"autotuned_map_{tag}",
        f"::{ANY_MAP}{tail}",
        numbers().map(slow, num_parallel_calls=tf.data.AUTOTUNE).batch(8),
    )


def planted_elsewhere():
    """Slow stages other than functions: reading, generating, copying."""
    big = tf.zeros([1_000_000])

    def generate():
        for i in range(100_000):
            time.sleep(0.004)
            yield i

    generated = DATA.from_generator(generate, output_signature=tf.TensorSpec([], tf.int64))
    yield "generator", "generator", r"::FlatMap::Generator$|::Generator$", generated.batch(3)
    yield (
        "generator_prefetch",
        "generator",
        r"::FlatMap::Generator$|::Generator$",
        generated.batch(3).prefetch(2),
    )
    yield (
        "generator_zip",
        "generator",
        r"::Zip\[1\](::FlatMap)?::Generator$",
        DATA.zip(numbers(), generated).batch(3),
    )
    yield "batch_copy", "copying", r"::BatchV2$", DATA.from_tensors(big).repeat().batch(16)
    yield (
        "batch_copy_prefetch",
        "copying",
        r"::BatchV2$",
        DATA.from_tensors(big).repeat().batch(16).prefetch(1),
    )
    yield "tfrecord", "file", r"::TFRecord$", records().repeat().map(length).batch(2)
    yield "tfrecord_prefetch", "file", r"::TFRecord$", records().repeat().map(length).batch(2).prefetch(1)
    yield "tfrecord_plain", "file", r"::TFRecord$", records().repeat().map(length)
    yield (
        "tfrecord_flat_map",
        "file",
        r"::FlatMap::TFRecord$|::FlatMap::\w+::TFRecord$",
        DATA.range(1000).flat_map(lambda i: records()).map(length).batch(2),
    )
    yield (
        "tfrecord_interleave",
        "file",
        r"::\w*Interleave\w*(::FlatMap)?::TFRecord$",
        DATA.range(1000).interleave(lambda i: records(), cycle_length=2).map(length).batch(2),
    )
    yield (
        "tfrecord_zip",
        "file",
        r"::Zip\[0\](::\w+)*::TFRecord$",
        DATA.zip(records().repeat().map(length), numbers()).batch(2),
    )
    yield (
        "tfrecord_shuffle",
        "file",
        r"::TFRecord$",
        records().repeat().map(length).shuffle(4).batch(2).prefetch(1),
    )
    yield "text_lines", "file", r"::TextLine$", lines().repeat().map(length).batch(2)
    yield "text_lines_prefetch", "file", r"::TextLine$", lines().repeat().map(length).batch(2).prefetch(2)
    yield "fixed_length", "file", r"::FixedLengthRecord\w*$", blocks().repeat().map(length).batch(2)


def pooled(dataset, size, is_plain):
    """With a thread pool of its own of that size; plain: without what tf.data puts in by itself, such as a
    prefetch at the end.
    """
    options = tf.data.Options()
    options.threading.private_threadpool_size = size
    if is_plain:
        options.experimental_optimization.apply_default_optimizations = False
        options.experimental_optimization.inject_prefetch = False
    return dataset.with_options(options)


def changes():
    """Pipelines before and after a change: name, change, size of the pool, the consumer's own milliseconds,
    before, after.
    """

    def mapped(ms, batch, n=None):
        return numbers().map(sleep(ms), num_parallel_calls=n).batch(batch)

    def inner(n):
        return numbers().flat_map(lambda i: DATA.range(64).map(sleep(4), num_parallel_calls=n)).batch(4)

    def two(n):
        return numbers().map(sleep(5), num_parallel_calls=n).map(sleep(1.5)).batch(4)

    def zipped(n):
        return DATA.zip(numbers().map(sleep(5), num_parallel_calls=n), numbers().map(sleep(1))).batch(4)

    def shuffled(n):
        return numbers().shuffle(50).map(sleep(4), num_parallel_calls=n).batch(4)

    def two_chained(slow):
        last = slow if slow is not None else plus
        return numbers().map(sleep(2)).prefetch(2).map(last).batch(4)

    yield "parallel_pool2", "parallel", 2, 0, mapped(4, 4), mapped(4, 4, 2)
    yield "parallel_pool8", "parallel", 8, 0, mapped(4, 8), mapped(4, 8, 8)
    yield "parallel_pool4", "parallel", 4, 0, mapped(3, 12), mapped(3, 12, 4)
    yield "parallel_consumer", "parallel", 2, 5, mapped(5, 4), mapped(5, 4, 2)
    yield "parallel_prefetched", "parallel", 4, 10, mapped(6, 8).prefetch(2), mapped(6, 8, 4).prefetch(2)
    yield "parallel_prefetched_bound", "parallel", 2, 4, mapped(5, 8).prefetch(2), mapped(5, 8, 2).prefetch(2)
    yield "parallel_two_maps", "parallel", 4, 0, two(None), two(4)
    yield "parallel_flat_map", "parallel", 2, 0, inner(None), inner(2)
    yield "parallel_zip", "parallel", 4, 0, zipped(None), zipped(4)
    yield "parallel_shuffle", "parallel", 2, 0, shuffled(None), shuffled(2)
    yield "parallel_more", "parallel", 8, 0, mapped(6, 16, 2), mapped(6, 16, 8)
    yield "prefetch_hidden", "prefetch", 2, 25, mapped(4, 4), mapped(4, 4).prefetch(2)
    yield "prefetch_bound", "prefetch", 2, 9, mapped(5, 4), mapped(5, 4).prefetch(2)
    yield (
        "prefetch_batch_map",
        "prefetch",
        2,
        8,
        numbers().batch(4).map(sleep(12)),
        numbers().batch(4).map(sleep(12)).prefetch(2),
    )
    yield "both", "parallel_prefetch", 4, 10, mapped(4, 8), mapped(4, 8, 4).prefetch(2)
    yield "both_bound", "parallel_prefetch", 2, 6, mapped(5, 8), mapped(5, 8, 2).prefetch(2)
    yield (
        "remove_first",
        "remove",
        2,
        3,
        numbers().map(sleep(5)).map(sleep(2)).batch(4),
        numbers().map(plus).map(sleep(2)).batch(4),
    )
    yield "remove_after_prefetch", "remove", 4, 2, two_chained(sleep(5)), two_chained(None)
    yield "remove_only", "remove", 2, 8, mapped(5, 4), numbers().map(plus).batch(4)


@tf.function
def train_step(x):
    return tf.reduce_sum(tf.cast(x, tf.float32))


def loop(iterator, n, consumer_ms):
    """n steps; mean seconds of a call and of a step."""
    waited = took = 0.0
    for i in range(n):
        start = time.perf_counter()
        with tf.profiler.experimental.Trace("train", step_num=i, _r=1):
            x = next(iterator)
            waited += time.perf_counter() - start
            train_step(x[0] if isinstance(x, tuple) else x)
            time.sleep(consumer_ms / 1e3)
        took += time.perf_counter() - start
    return waited / n, took / n


def capture(name, dataset, consumer_ms=0):
    """Profile a few steps; the file's size."""
    iterator = iter(dataset)
    loop(iterator, WARM_UP, consumer_ms)
    shutil.rmtree("profile", ignore_errors=True)
    options = tf.profiler.experimental.ProfilerOptions(
        host_tracer_level=2, python_tracer_level=0, device_tracer_level=0
    )
    tf.profiler.experimental.start("profile", options)
    loop(iterator, STEPS, consumer_ms)
    tf.profiler.experimental.stop()
    (path,) = glob.glob("profile/**/*.xplane.pb", recursive=True)
    with open(path, "rb") as file, open(f"{name}.xplane.pb.gz", "wb") as to:
        to.write(gzip.compress(file.read(), 9, mtime=0))


def measure(dataset, consumer_ms):
    """Milliseconds of a call and of a step, without the profiler: the faster of two rounds."""
    iterator = iter(dataset)
    loop(iterator, WARM_UP, consumer_ms)
    waited, took = min((loop(iterator, MEASURED, consumer_ms) for _ in range(2)), key=lambda pair: pair[1])
    return {"latency_ms": round(waited * 1e3, 4), "step_ms": round(took * 1e3, 4)}


def main():
    """Everything, or only the cases whose names match the argument."""
    wanted = re.compile(sys.argv[1] if len(sys.argv) > 1 else ".")
    planted = []
    for kind, slow in (("sleep", sleep(5)), ("arithmetic", compute(400))):
        planted += [(name, kind, stage, dataset) for name, stage, dataset in planted_with(slow, kind)]
    planted += list(planted_elsewhere())
    index = {"planted": [], "what_if": []}
    for name, kind, stage, dataset in planted:
        if wanted.search(name):
            capture(name, dataset)
            index["planted"].append({"name": name, "kind": kind, "stage": stage})
    for name, change, pool, consumer_ms, before, after in changes():
        if wanted.search(name):
            is_plain = "prefetch" in change
            before, after = pooled(before, pool, is_plain), pooled(after, pool, is_plain)
            capture(name, before, consumer_ms)
            case = {"name": name, "change": change, "pool": pool, "consumer_ms": consumer_ms}
            index["what_if"].append(
                case | {"before": measure(before, consumer_ms), "after": measure(after, consumer_ms)}
            )
    with open("index.json", "w") as file:
        json.dump(index, file, indent=1)


if __name__ == "__main__":
    main()
