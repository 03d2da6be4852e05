"""Tables of PyTorch's DataLoader: how it loads on each host, and what to change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from tb_tpuprof.analysis.input.torch_loader import LoaderUse, loader_changes
from tb_tpuprof.tools.payload import Table
from tb_tpuprof.tools.spec import TableSpec, known_texts, number, text

_MODES = {
    "in_process": "training process (num_workers=0)",
    "workers": "worker processes",
    "unknown": "",
}
LOADER = TableSpec(
    "loader",
    "Data loader",
    (
        text("host", "Host", "The host whose steps fetch batches"),
        text("iterator", "Iterator", "The call that takes most of the time of fetching"),
        text(
            "loads_in",
            "Loads in",
            "Whether the training process makes the batches itself, or waits for worker processes",
            unknown="the trace has a frame of the loader, which does not say it",
        ),
        number("n_fetches", "Batches", "count", "Number of batches fetched in the steps shown"),
        number("fetch_ps", "Fetching", "ps", "Time of fetching per step, on the steps' own thread"),
        number(
            "waiting_ps",
            "Waiting",
            "ps",
            "Part of it per step while nothing ran on the devices: what a faster loader can gain",
        ),
        number(
            "waiting_fraction",
            "Waiting, share of the step",
            "fraction",
            "Waiting as a share of the steps' time",
            formula="waiting ÷ step time",
        ),
        number("longest_ps", "Longest fetch", "ps", "The longest fetch of one batch"),
        number("median_ps", "Median fetch", "ps", "The median over the fetches"),
        number(
            "n_pageable_copies",
            "Copies from pageable memory",
            "count",
            "Copies to the device in the steps shown whose source is not pinned: the host waits for them",
        ),
        number(
            "pageable_ps", "Time of pageable copies", "ps", "Time per step of copies from pageable memory"
        ),
        number(
            "n_pinned_copies",
            "Copies from pinned memory",
            "count",
            "Copies to the device in the steps shown whose source is pinned",
        ),
        number("pinned_ps", "Time of pinned copies", "ps", "Time per step of copies from pinned memory"),
        number(
            "copy_wait_ps",
            "Waiting for copies",
            "ps",
            "Time per step in which copies to the device run and nothing else does",
        ),
        number(
            "pinning_ps",
            "Pinning in the loop",
            "ps",
            "Time per step in which the steps' own thread pins memory outside fetches and no kernel runs",
        ),
    ),
    "A row per host that fetches batches from PyTorch's DataLoader; times are means per step",
    is_optional=True,
    sentence="How PyTorch's DataLoader loads in the steps shown, and how long they wait for it",
)
CHANGES = TableSpec(
    "loader_changes",
    "Changes of the data loader",
    (
        text("host", "Host", "The host that the change is for"),
        text("change", "Change", "What to do"),
        text("why", "Why", "What the trace shows"),
        number("gain_ps", "Gain, at most", "ps", "Time per step that the change can save at most"),
        number(
            "gain_fraction",
            "Share of the step",
            "fraction",
            "The gain as a share of the steps' time",
            formula="gain ÷ step time",
        ),
    ),
    "Changes of PyTorch's DataLoader that can save 1% of the steps' time or more, the largest gain first",
    is_optional=True,
    sentence="What to change in PyTorch's DataLoader, and what it gains at most",
)
LOADER_TABLES = (LOADER, CHANGES)


def loader_tables(uses: Sequence[LoaderUse | None]) -> dict[str, Table]:
    """The tables of all hosts with a loader; none if no host has one."""
    with_loader = [use for use in uses if use]
    if not with_loader:
        return {}
    tables = {
        "loader": _loader_table(sorted(with_loader, key=lambda use: -use.waiting_ps / (use.steps_ps or 1)))
    }
    changes = [change for use in with_loader for change in loader_changes(use)]
    changes.sort(key=lambda change: -change.gain_ps)
    if changes:
        tables["loader_changes"] = CHANGES.fill(
            {
                "host": [change.host for change in changes],
                "change": [change.text for change in changes],
                "why": [change.why for change in changes],
                "gain_ps": np.array([change.gain_ps for change in changes]),
                "gain_fraction": np.array([change.gain_fraction for change in changes]),
            },
            "gains of one host are of different parts of its steps",
        )
    return tables


def _loader_table(uses: Sequence[LoaderUse]) -> Table:
    def per_step(times: Iterable[int]) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        return np.array(
            [time / max(1, use.n_steps) for time, use in zip(times, uses, strict=True)], np.float64
        )

    def counts(values: Iterable[int]) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        return np.array([*values], np.int64)

    return LOADER.fill(
        {
            "host": [use.host for use in uses],
            "iterator": [use.name for use in uses],
            "loads_in": known_texts([_MODES[use.mode] for use in uses]),
            "n_fetches": counts(use.n_fetches for use in uses),
            "fetch_ps": per_step(use.fetch_ps for use in uses),
            "waiting_ps": per_step(use.waiting_ps for use in uses),
            "waiting_fraction": np.array([use.waiting_ps / (use.steps_ps or 1) for use in uses]),
            "longest_ps": counts(use.longest_ps for use in uses),
            "median_ps": counts(use.median_ps for use in uses),
            "n_pageable_copies": counts(use.pageable.n for use in uses),
            "pageable_ps": per_step(use.pageable.time_ps for use in uses),
            "n_pinned_copies": counts(use.pinned.n for use in uses),
            "pinned_ps": per_step(use.pinned.time_ps for use in uses),
            "copy_wait_ps": per_step(use.copy_wait_ps for use in uses),
            "pinning_ps": per_step(use.pinning_ps for use in uses),
        },
        f"means over {uses[0].n_steps:,} steps" if len(uses) == 1 else "means over each host's steps",
    )
