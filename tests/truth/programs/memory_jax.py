"""Programs whose memory XLA states: `python memory_jax.py OUT`. Of three one may write its result into its
parameter's memory.
"""

import json
import sys

import jax
import jax.numpy as jnp

SIDES = {"plain": 300, "donating": 700, "busy": 400}


def plain(x):
    """A parameter, a result, hardly anything between."""
    return x + 1.0


def donating(x):
    """Its result takes over the parameter's memory."""
    return x * 2.0


def busy(x):
    """Products that need memory of their own while it runs."""
    y = jnp.sin(x) @ x
    return (y @ x).sum() + y.max()


FUNCTIONS = {"plain": jax.jit(plain), "donating": jax.jit(donating, donate_argnums=0), "busy": jax.jit(busy)}
facts = {}
for name, function in FUNCTIONS.items():
    stated = (
        function.lower(jax.ShapeDtypeStruct((SIDES[name], SIDES[name]), jnp.float32))
        .compile()
        .memory_analysis()
    )
    facts[name] = {
        "parameters": stated.argument_size_in_bytes,
        "results": stated.output_size_in_bytes,
        "shared": stated.alias_size_in_bytes,
        "temporaries": stated.temp_size_in_bytes,
    }
out = sys.argv[1]
arrays = {name: jnp.ones((side, side)) for name, side in SIDES.items()}
jax.block_until_ready(arrays)
with jax.profiler.trace(out):
    for name, function in FUNCTIONS.items():
        jax.block_until_ready(function(arrays[name]))
with open(f"{out}/truth.json", "w") as file:
    json.dump(facts, file)
