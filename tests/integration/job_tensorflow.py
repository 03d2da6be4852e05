"""A TensorFlow job with a profiler server: `job_tensorflow.py PORT [idle]`; prints `ready`, trains small
steps until its input ends.
"""

import sys
import threading
import time

import tensorflow as tf

tf.profiler.experimental.server.start(int(sys.argv[1]))


@tf.function
def step(batch):
    return tf.reduce_sum(tf.tanh(batch @ batch))


data = iter(
    tf.data.Dataset.from_tensors(tf.ones((128, 128))).repeat().map(lambda batch: batch * 2).prefetch(1)
)
step(next(data))
done = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), done.set()), daemon=True).start()
print("ready", flush=True)
number = 0
while not done.is_set():
    if "idle" in sys.argv:
        done.wait(60)
    with tf.profiler.experimental.Trace("train", step_num=number, _r=1):
        step(next(data))
    number += 1
    time.sleep(0.005)
