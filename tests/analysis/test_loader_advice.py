"""Loaders are advised in their own terms, and instances of one stage count together."""

from __future__ import annotations

import pytest

from tb_tpuprof.analysis.input.advice import loader_advice
from tb_tpuprof.analysis.input.host import merged_stage

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
