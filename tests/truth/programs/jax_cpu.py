"""One JAX program on the CPU, profiled: `python jax_cpu.py OUT PROGRAM PYTHON_TRACING`. Writes what it
measured itself to OUT/truth.json.

Truth: wall time of each step (`perf_counter`), FLOPs and bytes of one execution (`cost_analysis()`), memory
(`memory_analysis()`).
"""

import json
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec

N_STEPS = 8


def random(*shape):
    return jnp.asarray(np.random.default_rng(len(shape)).standard_normal(shape, np.float32))


def matmul():
    """Products that depend on one another: nothing runs concurrently."""
    return lambda a, b: jnp.sin(a @ b) @ b, (random(1024, 1024), random(1024, 1024) / 32)


def dot():
    """A dot beside which nothing runs, which XLA leaves to Eigen (an operand is transposed)."""
    return lambda a, b: lax.dot_general(a, b, (((0,), (1,)), ((), ()))), (
        random(1024, 1024),
        random(1024, 1024),
    )


def conv():
    """Convolutions with transposes and elementwise operations between."""
    dims = ("NCHW", "OIHW", "NCHW")

    def f(x, w):
        y = jnp.tanh(lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=dims))
        return (
            lax.conv_general_dilated(y, w, (1, 1), "SAME", dimension_numbers=dims).transpose(1, 0, 2, 3) + 1
        )

    return f, (random(4, 32, 64, 64), random(32, 32, 3, 3))


def cholesky():
    a = random(512, 512)
    return jnp.linalg.cholesky, (a @ a.T + 512 * jnp.eye(512),)


def scan():
    """17 trips, each a product and a tanh."""
    a = random(320, 320) / 18
    return lambda a: lax.scan(lambda c, _: (jnp.tanh(c @ a), c.sum()), a, None, length=17), (a,)


def loop():
    """A while loop of 23 trips."""
    a = random(256, 256) / 16
    return lambda a: lax.while_loop(lambda s: s[0] < 23, lambda s: (s[0] + 1, jnp.tanh(s[1] @ a)), (0, a)), (
        a,
    )


def sort():
    return jnp.sort, (random(300_000),)


def gather():
    rows = jnp.asarray(np.random.default_rng(1).integers(0, 50_000, 40_000))
    return lambda table, rows: jnp.tanh(table[rows]).sum(1), (random(50_000, 128), rows)


def elementwise():
    return lambda a: jnp.tanh(jnp.sin(a) * jnp.exp(-a)), (random(1_500_000),)


def mixed():
    """The program `dot` twice, with something else between."""
    one, (a, b) = dot()
    return lambda a, b: one(jnp.sin(one(a, b)), b), (a, b)


def psum():
    """The same on all CPU devices together, with a sum over them."""
    n = len(jax.devices())
    mesh = jax.make_mesh((n,), ("d",))
    f = jax.shard_map(
        lambda x: lax.psum(x.T @ x, "d"), mesh=mesh, in_specs=PartitionSpec("d"), out_specs=PartitionSpec()
    )
    return f, (jax.device_put(random(n * 512, 512), NamedSharding(mesh, PartitionSpec("d"))),)


def main(out, program, python_tracing):
    f, args = globals()[program]()
    compiled = jax.jit(f)
    for _ in range(3):
        jax.block_until_ready(compiled(*args))
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = int(python_tracing)
    wall, dot_wall = [], []
    single, operands = dot()
    single = jax.jit(single)
    jax.block_until_ready(single(*operands))
    jax.profiler.start_trace(out, profiler_options=options)
    for step in range(N_STEPS):
        with jax.profiler.StepTraceAnnotation("train", step_num=step):
            begin = time.perf_counter()
            jax.block_until_ready(compiled(*args))
            wall.append(time.perf_counter() - begin)
        if (
            program == "mixed"
        ):  # the same dot by itself, at a time when the machine is as busy with other things
            begin = time.perf_counter()
            jax.block_until_ready(single(*operands))
            dot_wall.append(time.perf_counter() - begin)
    jax.profiler.stop_trace()
    built = compiled.lower(*args).compile()
    cost, memory = built.cost_analysis(), built.memory_analysis()
    cost = cost[0] if isinstance(cost, list) else cost
    facts = {
        "wall_s": wall,
        "dot_wall_s": dot_wall,
        "n_steps": N_STEPS,
        "n_devices": len(jax.devices()),
        "flops": cost.get("flops", 0.0),
        "n_bytes": cost.get("bytes accessed", 0.0),
        "arguments": memory.argument_size_in_bytes,
        "outputs": memory.output_size_in_bytes,
        "temporaries": memory.temp_size_in_bytes,
    }
    with open(f"{out}/truth.json", "w", encoding="utf-8") as file:
        json.dump(facts, file)


main(*sys.argv[1:])
