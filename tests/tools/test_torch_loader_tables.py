"""Tables of PyTorch's DataLoader on three unlike hosts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tb_tpuprof.analysis.input.torch_loader import Copies, loader_changes
from tb_tpuprof.tools.input_pipeline_analyzer.torch_loader import loader_tables
from tests.analysis.input.test_torch_loader import MANY, US
from tests.payload_columns import cells
from tests.tools.inference_profile.test_words import values

ONE = replace(
    MANY,
    host="a",
    n_steps=10,
    steps_ps=1000 * US,
    waiting_ps=100 * US,
    pageable=Copies(3, 40 * US),
    pinned=Copies(5, 60 * US),
    copy_wait_ps=50 * US,
    pinning_ps=20 * US,
)
OTHER = replace(ONE, host="b", mode="in_process", n_steps=4, steps_ps=400 * US, waiting_ps=80 * US)
IDLE = replace(ONE, host="c", mode="unknown", n_steps=0, steps_ps=0, waiting_ps=0, fetch_ps=8)


def test_hosts_that_wait_longest_for_their_steps_come_first() -> None:
    tables = loader_tables([None, ONE, IDLE, OTHER])
    loader = tables["loader"]
    texts = {column.name: cells(column) for column in loader.columns}
    assert texts["host"] == ["b", "a", "c"]
    assert texts["loads_in"] == ["training process (num_workers=0)", "worker processes", None]
    assert values(loader, "fetch_ps") == [100 * US, 40 * US, 8]
    assert values(loader, "waiting_ps") == [20 * US, 10 * US, 0]
    assert values(loader, "waiting_fraction") == [0.2, 0.1, 0]
    assert values(loader, "n_fetches") == [8, 8, 8]
    assert values(loader, "longest_ps") == [365 * US] * 3
    assert values(loader, "median_ps") == [5 * US] * 3
    assert values(loader, "n_pageable_copies") == [3] * 3
    assert values(loader, "n_pinned_copies") == [5] * 3
    assert values(loader, "pageable_ps") == [10 * US, 4 * US, 40 * US]
    assert values(loader, "pinned_ps") == [15 * US, 6 * US, 60 * US]
    assert values(loader, "copy_wait_ps") == [12.5 * US, 5 * US, 50 * US]
    assert values(loader, "pinning_ps") == [5 * US, 2 * US, 20 * US]
    assert loader.note == "means over each host's steps"


def test_changes_of_all_hosts_are_ranked_together() -> None:
    changes = loader_tables([ONE, IDLE, OTHER])["loader_changes"]
    expected = sorted([*loader_changes(ONE), *loader_changes(OTHER)], key=lambda change: -change.gain_ps)
    texts = {column.name: cells(column) for column in changes.columns}
    assert texts["host"] == [change.host for change in expected]
    assert texts["change"] == [change.text for change in expected]
    assert values(changes, "gain_ps") == pytest.approx([change.gain_ps for change in expected])
    assert values(changes, "gain_ps")[0] == 20 * US
    assert set(texts["host"]) == {"a", "b"}


def test_one_host_states_its_steps_and_may_have_no_changes() -> None:
    idle = replace(ONE, waiting_ps=0, copy_wait_ps=0, pinning_ps=0, n_steps=1200)
    tables = loader_tables([idle])
    assert list(tables) == ["loader"]
    assert tables["loader"].note == "means over 1,200 steps"
    assert loader_tables([None, None]) == {}
