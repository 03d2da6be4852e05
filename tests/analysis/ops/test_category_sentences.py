"""What most of the operations' time is, in words: runs without steps, several hosts, idle devices."""

from __future__ import annotations

import pytest

from tb_tpuprof.analysis.ops.category_sentence import (
    DeviceIdle,
    OpCategories,
    category_sentence,
    sum_categories,
    verdict_by_category,
)
from tb_tpuprof.analysis.ops.recommend import (
    Finding,
)
from tests.analysis.ops.examples import MS


def categories(times: dict[str, int], offload: int = 0, n: int = 1, kind: str = "TPU") -> OpCategories:
    return OpCategories({name: ms * MS for name, ms in times.items()}, offload * MS, n, kind)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (
            categories({"fusion": 70, "copy-done": 30}),
            "`fusion` takes 70.0% of the operations' time on the TPU: 70.0 ms.",
        ),
        (
            categories({"fusion": 70, "copy": 30}, n=2),
            (
                "`fusion` takes 70.0% of the operations' time on the TPU: 70.0 ms summed over 2 cores, 35.0"
                " ms per core."
            ),
        ),
        (
            categories({"fusion": 70, "copy": 30}, n=2, kind="GPU"),
            (
                "`fusion` takes 70.0% of the operations' time on the GPU: 70.0 ms summed over 2 GPUs, 35.0 ms"
                " per GPU."
            ),
        ),
        (
            categories({"fusion": 70, "copy": 30}, n=2, kind="CPU"),
            "`fusion` takes 70.0% of the operations' time on the CPU: 70.0 ms.",
        ),
        (
            categories({"fusion": 40, "copy": 20, "copy-done": 25, "async-done": 15}),
            (
                "40.0% of the operations' time on the TPU is waiting for asynchronous copies and other"
                " operations (largest: `copy-done`): 40.0 ms."
            ),
        ),
        (
            categories({"fusion": 40, "copy-done": 57, "async-done": 3}),
            (
                "60.0% of the operations' time on the TPU is waiting for asynchronous copies (`copy-done`):"
                " 60.0 ms."
            ),
        ),
        (
            categories({"fusion": 40, "copy-done": 56, "async-done": 4}),
            (
                "60.0% of the operations' time on the TPU is waiting for asynchronous copies and other"
                " operations (largest: `copy-done`): 60.0 ms."
            ),
        ),
        (
            categories({"fusion": 40, "async-done": 60}),
            (
                "60.0% of the operations' time on the TPU is waiting for asynchronous operations"
                " (`async-done`): 60.0 ms."
            ),
        ),
        (
            categories({"fusion": 40, "all-reduce-done": 60}),
            (
                "60.0% of the operations' time on the TPU is waiting for transfers between devices"
                " (`all-reduce-done`): 60.0 ms."
            ),
        ),
        (
            categories({"fusion": 40, "infeed": 50, "copy-done": 10}),
            "60.0% of the operations' time on the TPU is waiting for the host (`infeed`): 60.0 ms.",
        ),
        (
            categories({"fusion": 40, "copy-done": 60}, 57),
            (
                "60.0% of the operations' time on the TPU is waiting for host-offload copies (`copy-done`):"
                " 60.0 ms."
            ),
        ),
        (
            categories({"fusion": 40, "copy-done": 60}, 56),
            (
                "60.0% of the operations' time on the TPU is waiting for asynchronous copies (`copy-done`):"
                " 60.0 ms."
            ),
        ),
        (
            categories({"fusion": 61, "copy-done": 60}),
            "`fusion` takes 50.4% of the operations' time on the TPU: 61.0 ms.",
        ),
    ],
)
def test_what_most_of_the_operations_time_is(given: OpCategories, text: str) -> None:
    assert category_sentence(given) == text


def test_categories_of_several_hosts() -> None:
    parts = [
        categories({}, kind="CPU"),
        categories({"a": 1, "b": 2}, 1, 2),
        categories({"b": 4, "c": 8}, 3, 5),
    ]
    assert sum_categories(parts) == categories({"a": 1, "b": 6, "c": 8}, 4, 8)
    assert not categories({"copy-done": 0}).waits_most
    assert not categories({"fusion": 0}).waits_most
    assert categories({"copy-done": 1}).waits_most


def test_the_verdict_on_a_run_without_steps() -> None:
    largest = Finding("unknown", "", "The largest operation.", ("no steps",))
    work, waits = categories({"fusion": 95}), categories({"copy-done": 95})
    by_category = verdict_by_category(largest, work, 100 * MS, None)
    assert (by_category.level, by_category.text) == ("unknown", category_sentence(work))
    assert (by_category.why, by_category.details) == (("The largest operation.",), ("no steps",))
    assert verdict_by_category(largest, waits, 100 * MS, None).level == "warn"
    # Compiled operations are less than 95% of the devices' time, or of the host.
    for given, busy in ((work, 101), (categories({"fusion": 95}, kind="CPU"), 95)):
        assert verdict_by_category(largest, given, busy * MS, None) == largest
    assert verdict_by_category(largest, work, 0, None) is largest
    half, less = (DeviceIdle(fraction, 200 * MS, 1, "TPU") for fraction in (0.5, 0.49))
    idle = verdict_by_category(largest, work, 100 * MS, half)
    assert (idle.level, idle.category, idle.text) == ("warn", "other", half.sentence)
    assert idle.why == (category_sentence(work),)
    assert verdict_by_category(largest, work, 100 * MS, less) == by_category


def test_idle_devices_in_words() -> None:
    one = DeviceIdle(0.882, 32.6 * MS, 1, "GPU").sentence
    assert one == "The GPU is idle for 88.2% of the 32.6 ms between its first and its last operation."
    two = DeviceIdle(0.5, 32.6 * MS, 2, "XPU").sentence
    assert (
        two == "The 2 devices are idle for 50.0% of the 32.6 ms between their first and their last operation."
    )
    four = DeviceIdle(0.882, 32.6 * MS, 4, "TPU").sentence
    assert (
        four == "The 4 cores are idle for 88.2% of the 32.6 ms between their first and their last operation."
    )
