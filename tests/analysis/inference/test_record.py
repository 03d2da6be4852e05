from dataclasses import replace

import numpy as np
import pytest

from tb_tpuprof.analysis.inference.limits import padding_of
from tb_tpuprof.analysis.inference.record import Batches, HostInference, host_inference, summed
from tests.analysis.inference.serving import server
from tests.builders import PS, DrawnEvent, DrawnPlane, build, event


def patterns(found: HostInference) -> list[str | None]:
    return [found.patterns[i] if i >= 0 else None for i in found.pattern.tolist()]


def test_shapes_copied_to_the_device_or_else_the_longest_program() -> None:
    copies = [
        event("tpu::System::TransferToDevice", 5, 2, shape="f32[8,4]"),
        event("tpu::System::TransferToDevice", 8, 2, shape="s32[8]"),
        event("tpu::System::TransferToDevice", 105, 2, shape="s32[8]"),
        event("tpu::System::TransferToDevice", 108, 2, shape="f32[8,4]"),
        event("tpu::System::TransferToDevice", 205, 2, shape="f32[1,4]"),
        event("tpu::System::TransferFromDevice", 340, 2, shape="f32[9]"),
    ]
    lines = {"main": [event("predict", 100 * i, 60) for i in range(5)], "pool": copies}
    modules = [event("jit_f(1)", 310, 5), event("jit_g(2)", 320, 9), event("jit_f(1)", 330, 3)]
    modules = [event("jit_h(3)", start, 20) for start in (20, 120, 220)] + modules  # copies count first
    trace = build([DrawnPlane("/host:CPU", lines), DrawnPlane("/device:TPU:0", {"XLA Modules": modules})])
    both = "f32[8,4], s32[8]"
    assert patterns(host_inference(trace)) == [both, both, "f32[1,4]", "jit_g(2)", None]


def test_many_shapes_are_cut_off() -> None:
    copies = [event("DevicePut", 3 * i, 1, shape=f"f32[{i}]") for i in range(6)]
    trace = build([DrawnPlane("/host:CPU", {"main": [event("predict", 0, 60)], "pool": copies})])
    assert patterns(host_inference(trace)) == ["f32[0], f32[1], f32[2], f32[3] and 2 more"]


def test_sizes_and_models_of_requests() -> None:
    lines = {
        "main": [
            event("predict", 0, 10, batch_size=3),
            event("serve 7", 20, 10, model_id=5),
            event("serve 8", 40, 10),
            event("decode_input", 42, 3, batch_size=9),
            event("predict", 60, 10, batch_size=-4),
            event("predict", 80, 10, batch_size=2**41),
        ]
    }
    found = host_inference(build([DrawnPlane("/host:CPU", lines)]))
    assert found.size.tolist() == [3, -1, 9, -1, -1]
    assert [found.models[i] for i in found.model.tolist()] == ["predict", "5", "serve", "predict", "predict"]


def test_devices_work_between_the_first_request_and_the_last() -> None:
    modules = [event("jit_f(1)", 0, 20), event("jit_f(1)", 30, 10), event("jit_f(1)", 75, 40)]
    lines = {"main": [event("predict", 10, 40), event("predict", 70, 30)]}
    trace = build([DrawnPlane("/host:CPU", lines), DrawnPlane("/device:TPU:0", {"XLA Modules": modules})])
    found = host_inference(trace)
    # Work that began before the first request is nobody's.
    assert (found.span_ps, found.busy_ps, found.unassigned_ps) == (90 * PS, 45 * PS, 10 * PS)
    assert found.device_kind == "TPU"
    both = summed([found, replace(found, counts_others=False), found])
    assert (both.span_ps, both.busy_ps, both.unassigned_ps) == (270 * PS, 135 * PS, 30 * PS)
    assert not both.counts_others
    assert summed([found, found]).counts_others


@pytest.mark.parametrize(("sizes", "expected"), [((2, 3), 5), ((2, None), -1), ((None, 3), -1)])
def test_a_batch_without_padding_is_as_large_as_its_requests(
    sizes: tuple[int | None, int | None], expected: int
) -> None:
    lines: dict[str, list[DrawnEvent]] = {"batches": [event("ProcessBatch", 30, 20, _ct=4, _c=1)]}
    for i, size in enumerate(sizes):
        stats = {} if size is None else {"batching_input_task_size": size}
        schedule = event("ScheduleWithoutSplit", i, 4, _pt=4, _p=1, **stats)
        lines[f"caller {i}"] = [event("BatchingSessionRun", i, 60), schedule]
    assert host_inference(build([DrawnPlane("/host:CPU", lines)])).batches.size.tolist() == [expected]


def test_hosts_are_joined_by_their_names() -> None:
    other = build([DrawnPlane("/host:CPU", {"main": [event("answer", 0, 10), event("cat:1", 20, 5)]})])
    both = summed([host_inference(one) for one in (server(), other, server())])
    assert both.models == ("answer", "cat:1", "dog:2")
    assert [both.models[i] for i in both.model.tolist()] == [
        "cat:1",
        "cat:1",
        "dog:2",
        "answer",
        "cat:1",
        "cat:1",
        "dog:2",
    ]
    assert both.batch.tolist() == [0, 0, 1, -1, 2, 2, 3]
    assert both.host.tolist() == [0, 0, 0, 1, 2, 2, 2]
    assert both.batches.host.tolist() == [0, 0, 2, 2]
    assert both.number.tolist() == [1, 4, 6, 2, 3, 5, 7]
    assert both.batches.number.tolist() == [1, 3, 2, 4]
    assert both.source == "a model server and annotations"
    assert both.span_ps == (140 + 10 + 140) * PS


def test_one_model_of_all() -> None:
    found = host_inference(server())
    dogs = found.of_model("dog:2")
    assert (len(dogs), len(dogs.batches), dogs.batch.tolist()) == (1, 1, [0])
    assert (dogs.number.tolist(), dogs.batches.number.tolist()) == ([3], [2])
    assert found.of_model("") is found
    assert found.of_model("cow") is found


def batches(*rows: tuple[int, int]) -> Batches:
    size, padded = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    zero = np.zeros(len(rows), np.int64)
    return Batches(*(zero,) * 5, size, padded, *(zero,) * 4)


def test_padding_and_the_size_that_would_save_most() -> None:
    found = padding_of(batches((1, 1), (2, 4), (2, 4), (5, 8), (6, 8), (6, 8), (7, 8), (8, 8)))
    assert found is not None
    assert (found.n_slots, found.n_padding) == (49, 12)
    # 2 × 2 slots of pairs, 3 of five, 2 × 2 of sixes, 1 of seven: the first of equals.
    assert (found.worst_size, found.worst_padded, found.worst_share) == (2, 4, 4 / 12)
    # Allowing 6 saves 3 × 2 slots, 2 saves 4, 7 saves 4, 5 saves 3.
    assert found.better_size == 6
    assert found.better_fraction == pytest.approx(6 / 43)


def test_a_size_that_saves_less_than_a_tenth_is_not_named() -> None:
    assert padding_of(batches((8, 10), *[(0, 1)] * 18)).better_size == 8  # type: ignore[union-attr]
    assert padding_of(batches((8, 10), *[(0, 1)] * 19)).better_size == -1  # type: ignore[union-attr]


def test_of_sizes_that_save_as_much_the_smallest_is_named() -> None:
    """Allowing 2 saves 1 × 2 slots, 3 saves 2 × 1, 5 saves 1 × 1; batches of unknown sizes do not count."""
    found = padding_of(batches((2, 4), (3, 4), (5, 6), (-1, 8), (9, 8)))
    assert found is not None
    assert (found.n_slots, found.n_padding, found.better_size) == (14, 4, 2)


def test_a_host_without_requests_has_no_span() -> None:
    modules = {"XLA Modules": [event("jit_f(1)", 20, 30)]}
    lines = {"main": [event("train", 0, 60)]}
    found = host_inference(build([DrawnPlane("/host:CPU", lines), DrawnPlane("/device:TPU:0", modules)]))
    assert (len(found), found.span_ps, found.busy_ps, found.unassigned_ps) == (0, 0, 0, 0)


def test_padding_is_unknown_without_sizes_and_none_without_padding() -> None:
    assert padding_of(batches((-1, 8), (3, -1), (9, 8))) is None
    found = padding_of(batches((4, 4), (8, 8)))
    assert found is not None
    assert (found.fraction, found.better_size) == (0.0, -1)
    assert (found.worst_size, found.worst_padded, found.worst_share) == (-1, -1, 0.0)
