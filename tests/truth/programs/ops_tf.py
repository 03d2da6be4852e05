"""TensorFlow on a CPU, products of known size: `python ops_tf.py OUT`.

Three products that differ, each alone in its loop, so that what the loop takes is what the operation takes. The program writes the times
of its loops, which end when the result is there.
"""

import json
import sys
import time

import tensorflow as tf

tf.config.threading.set_inter_op_parallelism_threads(1)
CASES = {"small": (300, 400, 500, 20), "wide": (200, 900, 1200, 12), "large": (900, 900, 900, 8)}
out = sys.argv[1]
functions = {}
arrays = {}
for name, (m, k, n, _) in CASES.items():
    arrays[name] = (tf.random.normal((m, k)), tf.random.normal((k, n)))

    def product(a, b, name=name):
        return tf.matmul(a, b, name=name)

    functions[name] = tf.function(product)
    for _ in range(3):
        functions[name](*arrays[name]).numpy()

facts = {}
tf.profiler.experimental.start(out)
for name, (m, k, n, times) in CASES.items():
    start = time.perf_counter()
    for _ in range(times):
        functions[name](*arrays[name]).numpy()
    facts[name] = {"seconds": time.perf_counter() - start, "times": times, "flops": 2 * m * k * n}
tf.profiler.experimental.stop()
with open(f"{out}/truth.json", "w") as file:
    json.dump(facts, file)
