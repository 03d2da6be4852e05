"""What the contexts around each context decide, on random trees, compared with loops up the tree; and
distinct rows.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

from tb_tpuprof.analysis.diagnosis.names import Origin
from tb_tpuprof.analysis.diagnosis.parts import _is_entry, _strongest, origins
from tb_tpuprof.trace.distinct_rows import distinct_rows


def random_tree(rng: random.Random) -> list[int]:
    """The parent of each node: an earlier one, -1 for none."""
    return [rng.randint(max(-1, i - 4), i - 1) for i in range(rng.randint(1, 25))]


def upward(parent: list[int], node: int) -> list[int]:
    """A node and all nodes above it."""
    result = []
    while node >= 0:
        result.append(node)
        node = parent[node]
    return result


@pytest.mark.parametrize("seed", range(4))
def test_origins_and_entries(seed: int) -> None:
    """A common file name is the library's if the nearest frame of known origin is, else the user's."""
    rng = random.Random(f"origins {seed}")
    for _ in range(100):
        parent = random_tree(rng)
        origin = [rng.choice((*Origin, Origin.COMMON, Origin.USER)) for _ in parent]
        expected = []
        for node, own in enumerate(origin):
            frames = [
                origin[i] for i in upward(parent, node)
                if origin[i] >= Origin.USER and origin[i] not in (Origin.BUILTIN, Origin.COMMON)
            ]  # fmt: skip
            of_library = bool(frames) and frames[0] >= Origin.LIBRARY
            expected.append(own if own != Origin.COMMON else frames[0] if of_library else Origin.USER)
        parents = np.array(parent, np.int32)
        made = origins(np.array(origin, np.uint8), parents)
        assert made.tolist() == expected
        entries = [
            expected[i] != Origin.USER and (above < 0 or expected[above] in (Origin.USER, Origin.ANNOTATION))
            for i, above in enumerate(parent)
        ]
        assert _is_entry(made, parents).tolist() == entries


@pytest.mark.parametrize("seed", range(4))
def test_the_strongest_claim_around_each_context(seed: int) -> None:
    rng = random.Random(f"claims {seed}")
    for _ in range(100):
        parent = random_tree(rng)
        claim = [rng.choice((0, 0, 1, 4)) for _ in parent]
        strength = [rng.randint(0, 3) for _ in parent]
        expected = []
        for node in range(len(parent)):
            claiming = [i for i in upward(parent, node) if claim[i]]
            expected.append(max(claiming, key=lambda i: strength[i]) if claiming else -1)
        arrays = np.array(claim, np.uint8), np.array(strength, np.uint8), np.array(parent, np.int32)
        assert _strongest(*arrays).tolist() == expected


@pytest.mark.parametrize("seed", range(4))
def test_distinct_rows_of_any_size(seed: int) -> None:
    """Also where a row does not fit into 63 bits: values that differ only in their high bits stay apart."""
    rng = random.Random(f"rows {seed}")
    for _ in range(60):
        columns = [
            [rng.choice((0, 1, 2**24, 2**40, 2**59)) + rng.choice((-1, 0, 5)) for _ in range(4)]
            for _ in range(rng.randint(1, 4))
        ]
        rows = [[rng.choice(column) for column in columns] for _ in range(rng.randint(1, 30))]
        unique, inverse = distinct_rows(*np.array(rows, np.int64).T)
        expected = sorted(map(list, set(map(tuple, rows))))
        assert unique.tolist() == expected
        assert [expected[i] for i in inverse.tolist()] == rows
    empty = distinct_rows(*np.empty((3, 0), np.int64))
    assert (empty[0].shape, empty[1].shape) == ((0, 3), (0,))
