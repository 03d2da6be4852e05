"""Random tf.data pipelines of three to six unlike stages, as the model represents them."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np

from tb_tpuprof.analysis.tf_data.simulation import Part
from tb_tpuprof.analysis.tf_data.what_if import Model

_NAMES = {
    "inline": ("Map", "Shuffle", "Filter", "TFRecord", "BatchV2"),
    "prefetch": ("Prefetch",),
    "lanes": ("ParallelMapV2", "ParallelBatch"),
    "batch_lanes": ("MapAndBatch",),
    "interleave": ("ParallelInterleaveV4",),
}
MS = 1e9


def random_parts(rng: random.Random) -> tuple[Part, ...]:
    """A root and two to five stages; most feed the previous stage, some share a consumer."""
    parts = [Part("Root", -1, "inline", 1.0, np.zeros(1), np.zeros(0))]
    for _ in range(rng.randint(2, 5)):
        kind = rng.choice(("inline", "inline", "prefetch", "lanes", "batch_lanes", "interleave"))
        # Nothing feeds an interleave: the order in which its threads read it would be arbitrary.
        open_parts = [i for i, part in enumerate(parts) if part.kind != "interleave"]
        parent = open_parts[-1] if rng.random() < 0.85 else rng.choice(open_parts)
        parts.append(_part(rng, kind, parent))
    return tuple(parts)


def _part(rng: random.Random, kind: str, parent: int) -> Part:
    work = kind in ("inline", "interleave") or (kind in ("lanes", "batch_lanes") and rng.random() < 0.3)
    return Part(
        rng.choice(_NAMES[kind]),
        parent,
        kind,  # type: ignore[arg-type]
        rng.choice((1.0, 1.0, 2.0, 3.0, 0.5)),
        np.array(times(rng, 4 * MS) if work else [0.0]),
        np.array(times(rng, 15 * MS) if kind in ("lanes", "batch_lanes") or rng.random() < 0.3 else []),
        rng.randint(1, 5),
        rng.randint(1, 4),
        rng.randint(1, 4),
        rng.random() < 0.6,
    )


def times(rng: random.Random, most_ps: float) -> list[float]:
    return [rng.uniform(0.0, most_ps) for _ in range(rng.randint(1, 7))]


def random_model(rng: random.Random) -> Model:
    """A pipeline with a bottleneck of any kind, and random measurements."""
    parts = random_parts(rng)
    position = rng.choice(
        [i for i, part in enumerate(parts) if i and part.kind != "prefetch"] or [len(parts) - 1]
    )
    batched = parts[position].parent > 0 and rng.random() < 0.4
    if batched:  # a map below a batch, which tf.data fuses once the map is parallel
        above = parts[position].parent
        changed = list(parts)
        changed[above] = replace(
            parts[above], name="BatchV2", kind="inline", work_ps=np.array(times(rng, MS))
        )
        changed[position] = replace(
            parts[position], name="Map", kind="inline", per_parent=3.0, work_ps=np.array(times(rng, 4 * MS))
        )
        parts = tuple(changed)
    consumer = np.array(times(rng, 10 * MS))
    return Model(
        parts,
        position,
        consumer,
        period_ps=rng.uniform(4, 60) * MS,
        latency_ps=rng.uniform(0, 20) * MS,
        step_ps=rng.choice((None, rng.uniform(4, 60) * MS)),
        errors=(rng.uniform(0, 0.1), rng.uniform(0, 0.1)),
        pool=rng.choice((0, 2, 4, 8)),
        processors=rng.choice((0, 2, 4)),
        cpu_ps=rng.uniform(0, 40) * MS,
        is_python=rng.random() < 0.5,
    )
