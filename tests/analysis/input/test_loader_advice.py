"""Loaders are advised in their own terms, and instances of one stage count together."""

from __future__ import annotations

import pytest

from tb_tpuprof.analysis.input.advice import loader_advice
from tb_tpuprof.analysis.input.host import merged_stage
from tb_tpuprof.analysis.steps.pytorch import LoaderWait
from tb_tpuprof.analysis.steps.pytorch_loader import loader_sentence

TF_DATA_WORDS = ("tf.data", "num_parallel_calls", "interleave(", "`prefetch(")


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("SourceMapDataset.__getitem__", "ReadOptions(num_threads"),
        ("PrefetchDatasetIterator.__next__", "mp_prefetch"),
        ("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "DataLoader(num_workers="),
        ("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", "pin_memory=True"),
        ("batches", "load the next batch in a thread"),
    ],
)
def test_a_loader_is_advised_in_its_own_terms(name: str, word: str) -> None:
    text = loader_advice(name)
    assert word in text
    assert f"`{name}`" in text
    assert not any(foreign in text for foreign in TF_DATA_WORDS if foreign not in word)


@pytest.mark.parametrize(
    ("name", "merged"),
    [
        ("Iterator::Root::BatchV2::FlatMap[0]::Map", "Iterator::Root::BatchV2::FlatMap::Map"),
        ("Iterator::Root::BatchV2::FlatMap[19]::Map", "Iterator::Root::BatchV2::FlatMap::Map"),
        ("Iterator::Root::Interleave[3]::TFRecord[11]", "Iterator::Root::Interleave::TFRecord"),
        ("Iterator::Root::Map", "Iterator::Root::Map"),
    ],
)
def test_instances_of_a_stage_are_one_stage(name: str, merged: str) -> None:
    assert merged_stage(name) == merged


MS = 10**9


def test_the_host_that_fetches_the_largest_share_is_named_among_several() -> None:
    short = LoaderWait("batches", 4, 8 * MS, 0, 80 * MS)
    long = LoaderWait("enumerate(DataLoader)", 3, 30 * MS, 6 * MS, 75 * MS)
    absolute = LoaderWait("records", 5, 50 * MS, 0, 500 * MS)  # longest, but the smallest share
    text = loader_sentence([short, None, long, absolute], ["a", "b", "c", "d"])
    expected = "`enumerate(DataLoader)` takes 10.0 ms (40.0%) of each of the 3 marked steps"
    assert text == f"`c`: {expected}, 20.0% of it while kernels run."
    assert loader_sentence([long], ["c"]) == f"{expected}, 20.0% of it while kernels run."
    assert loader_sentence([None, None], ["a", "b"]) == ""


def test_one_step_and_a_loader_within_the_process_are_said() -> None:
    wait = LoaderWait("_SingleProcessDataLoaderIter.__next__", 1, 3 * MS, 0, 12 * MS)
    assert loader_sentence([wait], ["a"]) == (
        "`_SingleProcessDataLoaderIter.__next__` takes 3.00 ms (25.0%) of the marked step. It loads batches "
        "in the training process (num_workers=0)."
    )


@pytest.mark.parametrize(
    ("headline", "hidden_ps", "says"),
    [
        ("each step waits 10.0 ms (39.9%) for data in `batches`.", 0, False),
        ("each step waits 9.90 ms (39.5%) for data in `batches`.", 0, True),
        ("each step waits 10.0 ms (39.9%) for data in `records`.", 0, True),
        ("each step waits 10.0 ms (39.9%) for data in `batches`.", 6 * MS, True),
        ("each step waits 110.0 ms (39.9%) for data in `batches`.", 0, True),
    ],
)
def test_a_headline_with_the_loader_and_its_time_is_not_repeated(
    headline: str, hidden_ps: int, says: bool
) -> None:
    wait = LoaderWait("batches", 3, 30 * MS, hidden_ps, 75 * MS)
    assert bool(loader_sentence([wait], ["a"], headline)) is says


def test_a_loader_within_the_process_is_said_under_any_headline() -> None:
    wait = LoaderWait("_SingleProcessDataLoaderIter.__next__", 3, 30 * MS, 0, 75 * MS)
    headline = f"each step waits 10.0 ms (39.9%) for data in `{wait.name}`."
    assert "num_workers=0" in loader_sentence([wait], ["a"], headline)
