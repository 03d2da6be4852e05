"""TensorFlow on a CPU, operations of known number: `python ops_tf.py OUT function|eager`.

Three operations that differ, each alone in its loop, so that what the loop takes is what the operation takes:
products, each in a `tf.function` of its own, or operations of three types that Python runs one by one
(eagerly). Each loop takes several times as long as another, whatever else the machine does. The program
writes the times of its loops, which end when the result is there, and those of their fastest calls, which the
machine's other work made no longer.
"""

import itertools
import json
import sys
import time

import tensorflow as tf

tf.config.threading.set_inter_op_parallelism_threads(1)
out, mode = sys.argv[1:]


def products():
    """Name → (what runs it once and waits, how often)."""
    made = {}
    for name, (m, k, n, times) in {
        "small": (400, 500, 600, 20),
        "wide": (500, 1200, 1400, 12),
        "large": (1600, 1600, 1800, 8),
    }.items():
        a, b = tf.random.normal((m, k)), tf.random.normal((k, n))
        function = tf.function(lambda a, b, name=name: tf.matmul(a, b, name=name))
        made[name] = (lambda function=function, a=a, b=b: function(a, b).numpy(), times)
    return made


def eager():
    """The same of operations that run on their own: their names are those of their types."""
    a, b, c = (tf.random.normal(shape) for shape in ((1600, 1700), (1700, 1800), (6000, 1000)))
    return {
        "MatMul": (lambda: tf.matmul(a, b), 20),
        "Softmax": (lambda: tf.nn.softmax(c), 12),
        "Relu": (lambda: tf.nn.relu(a), 8),
    }


runs = products() if mode == "function" else eager()
for run, _ in runs.values():
    for _ in range(3):
        run()

facts = {}
tf.profiler.experimental.start(out)
for name, (run, times) in runs.items():
    marks = [time.perf_counter()]
    for _ in range(times):
        run()
        marks.append(time.perf_counter())
    fastest = min(after - before for before, after in itertools.pairwise(marks))
    facts[name] = {"seconds": marks[-1] - marks[0], "fastest_call_s": fastest, "times": times}
tf.profiler.experimental.stop()
with open(f"{out}/truth.json", "w") as file:
    json.dump(facts, file)
