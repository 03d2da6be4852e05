import numpy as np
import pytest

from tb_tpuprof.analysis.inference import parts as parts_module
from tb_tpuprof.analysis.inference.parts import request_parts
from tb_tpuprof.analysis.inference.work import Part, work
from tb_tpuprof.trace.trace import Trace
from tests.analysis.inference.serving import server
from tests.builders import PS, DrawnEvent, DrawnPlane, build, event
from tests.plain.plain_requests import parts_of, random_job

NAMES = ("wait", "queue", "host_before", "host_runtime", "host_after", "to_host", "to_device", "device")


def microseconds(trace: Trace) -> list[dict[str, int]]:
    """The parts of each request that take time, in µs."""
    rows = (request_parts(trace).time_ps / PS).tolist()
    return [{name: int(time) for name, time in zip(NAMES, row, strict=True) if time} for row in rows]


def gpu(host: list[DrawnEvent], **streams: list[DrawnEvent]) -> Trace:
    return build([DrawnPlane("/host:CPU", {"main": host}), DrawnPlane("/device:GPU:0", streams)])


def test_requests_in_batches() -> None:
    of_batch = {"host_runtime": 1, "to_device": 2, "device": 10, "wait": 2}
    assert microseconds(server()) == [
        {
            "wait": 2,
            "queue": 25,
            "host_before": 8,
            "host_runtime": 1,
            "host_after": 12,
            "to_device": 2,
            "device": 10,
        },
        {"queue": 15, "host_before": 8, "host_after": 10, **of_batch},
        {"wait": 6, "queue": 35, "host_before": 8, "host_runtime": 1, "host_after": 20, "device": 30},
    ]
    assert (request_parts(server()).batch_device_ps // PS).tolist() == [10, 30]


def test_an_annotated_request_from_decoding_to_encoding() -> None:
    trace = gpu(
        [
            event("predict", 0, 100, _r=1, step_num=1),
            event("decode", 5, 15),
            event("cudaLaunchKernel", 25, 4, correlation_id=1),
            event("cudaStreamSynchronize", 29, 41),
            event("encode", 75, 20),
        ],
        stream=[
            event("MemcpyHToD", 30, 5, correlation_id=1),
            event("fusion", 37, 21, correlation_id=1),
            event("MemcpyDToH", 60, 3, correlation_id=1),
        ],
    )
    assert microseconds(trace) == [
        {
            "wait": 1 + 2 + 2 + 7,  # within the call that waits: 29, 35 to 37, 58 to 60, 63 to 70
            "host_before": 25,
            "host_runtime": 4,
            "host_after": 30,
            "to_device": 5,
            "device": 21,
            "to_host": 3,
        }
    ]


def test_a_device_that_works_for_others_is_a_queue_only_while_the_thread_waits() -> None:
    trace = build(
        [
            DrawnPlane(
                "/host:CPU",
                {
                    "a": [
                        event("predict", 0, 50, _r=1, step_num=1),
                        event("cudaLaunchKernel", 1, 2, correlation_id=1),
                    ],
                    "b": [
                        event("predict", 5, 60, _r=1, step_num=2),
                        event("cudaLaunchKernel", 7, 2, correlation_id=2),
                        event("encode", 10, 6),
                        event("cudaStreamSynchronize", 16, 40),
                    ],
                },
            ),
            DrawnPlane(
                "/device:GPU:0",
                {"stream": [event("k", 4, 36, correlation_id=1), event("k", 42, 8, correlation_id=2)]},
            ),
        ]
    )
    assert microseconds(trace)[1] == {
        "host_before": 2,
        "host_runtime": 8,
        "queue": 1 + 24,  # 9 to 10, and 16 to 40
        "wait": 2 + 6,  # 40 to 42, and 50 to 56
        "device": 8,
        "host_after": 9,
    }


def test_a_request_lasts_until_its_work_has_ended() -> None:
    trace = gpu(
        [
            event("predict", 0, 10, _r=1, step_num=1),
            event("cudaLaunchKernel", 2, 3, correlation_id=1),
            event("predict", 20, 10, _r=1, step_num=2),
        ],
        stream=[event("k", 12, 13, correlation_id=1)],
    )
    assert (request_parts(trace).end // PS).tolist() == [25, 30]
    assert microseconds(trace) == [
        {"host_before": 2, "host_runtime": 3, "wait": 7, "device": 13},
        {"host_before": 10},
    ]


def test_work_that_nothing_assigns_belongs_to_the_request_during_which_it_starts() -> None:
    def trace(second: int) -> Trace:
        lines = {
            "main": [event("predict", 0, 40)],
            "other": [event("predict", second, 30)],
        }
        modules = [event("jit_f(1)", 10, 20), event("jit_f(1)", 50, 15)]
        return build([DrawnPlane("/host:CPU", lines), DrawnPlane("/device:TPU:0", {"XLA Modules": modules})])

    assert [row.get("device", 0) for row in microseconds(trace(40))] == [20, 15]
    assert [row.get("device", 0) for row in microseconds(trace(39))] == [0, 0]


def test_work_that_starts_as_a_request_ends_is_not_its_own() -> None:
    lines = {"main": [event("predict", 0, 40), event("predict", 60, 30)]}
    modules = [event("jit_f(1)", 39, 2), event("jit_g(1)", 41, 5), event("jit_h(1)", 60, 10)]
    trace = build([DrawnPlane("/host:CPU", lines), DrawnPlane("/device:TPU:0", {"XLA Modules": modules})])
    assert work(trace).owner.tolist() == [0, -1, 1]
    modules[1] = event("jit_g(1)", 40, 5)
    trace = build([DrawnPlane("/host:CPU", lines), DrawnPlane("/device:TPU:0", {"XLA Modules": modules})])
    assert work(trace).owner.tolist() == [0, -1, 1]


def test_work_that_runs_during_a_later_request_stays_its_own() -> None:
    """The kernels of the first and of the second request run while the third one does."""
    host = [event("predict", start, 10, _r=1, step_num=i) for i, start in enumerate((0, 20, 40))]
    host += [
        event("cudaLaunchKernel", start + 2, 1, correlation_id=i) for i, start in enumerate((0, 20, 40), 1)
    ]
    host.sort(key=lambda one: (one.start_ps, -one.duration_ps))
    trace = gpu(
        host, stream=[event("k", start, 2, correlation_id=i) for i, start in enumerate((41, 44, 47), 1)]
    )
    assert work(trace).owner.tolist() == [0, 1, 2]


def test_waiting_for_work_of_nobody_known_is_waiting_not_a_queue() -> None:
    lines = {
        f"t{i}": [event("predict", 5 * i, 60), event("np.asarray(jax.Array)", 5 * i + 10, 50)]
        for i in range(2)
    }
    modules = {"XLA Modules": [event("jit_f(1)", 20, 30)]}
    trace = build([DrawnPlane("/host:CPU", lines), DrawnPlane("/device:TPU:0", modules)])
    assert microseconds(trace) == [{"host_before": 10, "wait": 50}] * 2


def test_a_session_is_not_its_own_launch_and_fetches_are_no_work_of_the_model() -> None:
    trace = build(
        [
            DrawnPlane(
                "/host:CPU",
                {
                    "main": [
                        event("SessionRun", 0, 50),
                        event("input:IteratorGetNext", 5, 6),
                        event("dense:MatMul", 20, 10),
                        event("out:_Retval", 40, 3),
                    ]
                },
            )
        ]
    )
    assert microseconds(trace) == [{"host_before": 20, "device": 10, "host_after": 20}]


def test_copies_of_a_tpu_s_host_and_names_of_waits() -> None:
    lines = {
        "main": [
            event("predict", 0, 100, _r=1, step_num=1),
            event("DevicePut", 3, 4),
            event("PjitFunction(f)", 10, 5),
            event("np.asarray(jax.Array)", 20, 70),
        ],
        "pool": [event("tpu::System::TransferFromDevice=>IssueEvent=>Done", 70, 8)],
    }
    modules = [event("jit_f(1)", 30, 35)]
    trace = build([DrawnPlane("/host:CPU", lines), DrawnPlane("/device:TPU:0", {"XLA Modules": modules})])
    assert microseconds(trace) == [
        {
            "wait": 5 + 10 + 5 + 12,
            "host_before": 6,
            "host_runtime": 5,
            "host_after": 10,
            "to_device": 4,
            "device": 35,
            "to_host": 8,
        }
    ]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("is_batched", [False, True])
def test_parts_are_those_of_a_plain_loop(seed: int, is_batched: bool) -> None:
    job = random_job(seed, is_batched)
    assert microseconds(job.trace) == [dict(parts_of(request, job)) for request in job.requests]


@pytest.mark.parametrize("is_batched", [False, True])
def test_parts_add_up_on_a_short_axis(is_batched: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Executions that do not fit on one axis are laid out on several."""
    job = random_job(3, is_batched)
    expected = request_parts(job.trace).time_ps
    monkeypatch.setattr(parts_module, "_ROOM", 70 * PS)
    found = request_parts(random_job(3, is_batched).trace).time_ps
    assert np.array_equal(found, expected)


def test_too_many_overlaps_to_list(monkeypatch: pytest.MonkeyPatch) -> None:
    job = random_job(5, is_batched=False)
    parts = request_parts(job.trace)
    assert parts.counts_others
    assert parts.time_ps[:, Part.QUEUE].any()
    monkeypatch.setattr(parts_module, "_MOST_PAIRS", 3)
    without = request_parts(random_job(5, is_batched=False).trace)
    assert not without.counts_others
    assert not without.time_ps[:, Part.QUEUE].any()
    assert (without.time_ps.sum(axis=1) == parts.time_ps.sum(axis=1)).all()
