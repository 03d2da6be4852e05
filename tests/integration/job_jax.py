"""A JAX job with a profiler server: `job_jax.py PORT [idle]`; prints `ready`, trains small steps until its
input ends.
"""

import sys
import threading
import time

import jax
import jax.numpy as jnp

jax.profiler.start_server(int(sys.argv[1]))
step = jax.jit(lambda x: jnp.tanh(x @ x).sum())
x = jnp.ones((128, 128))
step(x).block_until_ready()
done = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), done.set()), daemon=True).start()
print("ready", flush=True)
number = 0
while not done.is_set():
    if "idle" in sys.argv:
        done.wait(60)
    with jax.profiler.StepTraceAnnotation("train", step_num=number):
        step(x).block_until_ready()
    number += 1
    time.sleep(0.005)
