"""Saves two device memory profiles of a JAX program, and what the program itself says it holds.

    python tests/data/heap/capture_jax.py FOLDER

`memory.prof` and, after more arrays, `later.memory.prof`; `index.json` has the number of live arrays and the
sum of their bytes (`jax.live_arrays`), and by function what it made and kept (counted with `nbytes`).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import jax
import jax.numpy as jnp


def load() -> list[jax.Array]:
    """Three equal arrays."""
    return [jnp.ones((250, 1000), jnp.float32), jnp.ones((250, 1000), jnp.float32), jnp.ones((250, 1000))]


def weights() -> tuple[jax.Array, jax.Array]:
    """A large and a small one."""
    return jnp.zeros((4096, 300), jnp.float32), jnp.arange(1000, dtype=jnp.int8)


def grow(n: int) -> list[jax.Array]:
    """Arrays that differ in size."""
    kept = []
    for i in range(n):
        kept.append(jnp.full((i + 1, 1000), 1.5, jnp.float32))
    return kept


def save(path: Path, made: dict[str, list[jax.Array]]) -> dict[str, object]:
    """Save a profile; what is alive by the program's own count."""
    live = jax.live_arrays()
    jax.block_until_ready(live)
    jax.profiler.save_device_memory_profile(str(path))
    by_function = {name: [len(arrays), sum(one.nbytes for one in arrays)] for name, arrays in made.items()}
    return {"n_arrays": len(live), "n_bytes": sum(one.nbytes for one in live), "by_function": by_function}


def main() -> None:
    """Make arrays, and save twice."""
    folder = Path(sys.argv[1])
    made = {"load": load(), "weights": list(weights())}
    index = {"memory": save(folder / "memory.prof", made)}
    made["grow"] = grow(5)
    made["load"] += load()
    index["later.memory"] = save(folder / "later.memory.prof", made)
    (folder / "index.json").write_text(json.dumps(index, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
