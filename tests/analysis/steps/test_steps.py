import numpy as np
import pytest

from tb_tpuprof.analysis.steps.classes import CATEGORIES, TimeClass, gpu_class, host_class
from tb_tpuprof.analysis.steps.record import Steps
from tb_tpuprof.analysis.steps.steps import steps
from tests.builders import PS, DrawnEvent, DrawnPlane, build, drawing


def parts(found: Steps) -> dict[str, list[float]]:
    """Times of the categories that occur, in columns of the drawing."""
    times = {category: (found.category_ps(category) / PS).tolist() for category in CATEGORIES}
    return {category: values for category, values in times.items() if any(values)}


def test_a_step_is_its_marker_and_its_time_goes_to_what_ran() -> None:
    found = steps(
        drawing(
            """
            main   [train                                ]  [train                                ]
            main     [IteratorGetNext] [MatMul:MatMul]         [IteratorGetNext]  [Mul:Mul]
            """,
            {"train": [{"_r": 1, "step_num": 4}, {"_r": 1, "step_num": 5}]},
        )
    )
    assert found.name == ("train 4", "train 5")
    assert found.source == "annotation"
    assert (found.duration_ps / PS).tolist() == [39, 39]
    assert parts(found) == {"input": [17, 17], "host_compute": [15, 9], "other": [7, 13]}


def test_nested_work_is_counted_once_and_wrappers_not_at_all() -> None:
    found = steps(
        drawing(
            """
            main   [train                                ]
            main     [EagerExecute       ]
            main       [outer:Outer  ]
            main         [in:In ]
            """,
            {"train": {"_r": 1}},
        )
    )
    assert parts(found) == {"host_compute": [15], "other": [24]}


def test_work_on_other_threads_counts_within_the_step_only() -> None:
    found = steps(
        drawing(
            """
            main    [train          ]
            main      [send]
            worker        [work             ]
            """,
            {"train": {"_r": 1}, "send": {"_pt": 1, "_p": 1}, "work": {"_ct": 1, "_c": 1}},
        )
    )
    assert parts(found) == {"host_compute": [15], "other": [2]}


def test_a_step_in_which_nothing_ran_is_left_out() -> None:
    found = steps(drawing("main   [train    ]", {"train": {"_r": 1}}))
    assert len(found) == 0
    assert found.n_incomplete == 1


def test_first_and_last_of_many_steps_are_left_out() -> None:
    text = "main   " + "[train      ]" * 7 + "\nmain   " + " [work    ]  " * 7
    found = steps(drawing(text, {"train": [{"_r": 1, "step_num": i} for i in range(7)]}))
    assert found.name == tuple(f"train {i}" for i in range(1, 6))
    assert found.n_trimmed == 2


def test_without_annotations_a_step_lasts_from_one_run_of_a_function_to_the_next() -> None:
    found = steps(
        drawing(
            """
            main    [FunctionRun   ]          [FunctionRun   ]
            main      [send]                    [send]
            worker       [IteratorGetNext]         [MatMul:MatMul]
            worker                        [Mul:Mul]
            """,
            {
                "FunctionRun": [{"_r": 1, "step_num": 1}, {"_r": 1, "step_num": 2}],
                "send": [{"_pt": 1, "_p": 1}, {"_pt": 1, "_p": 2}],
                "IteratorGetNext": {"_ct": 1, "_c": 1},
                "MatMul:MatMul": {"_ct": 1, "_c": 2},
            },
        )
    )
    assert found.source == "function"
    assert found.name == ("1", "2")
    assert (found.duration_ps / PS).tolist() == [26, 20]
    assert parts(found)["input"] == [17, 0]


def test_the_outermost_stage_of_an_input_pipeline_is_waited_for() -> None:
    found = steps(
        drawing(
            """
            main   [train                ]
            main     [batch      ][w:Op ]
            main       [read ]
            """,
            {"train": {"_r": 1}, "batch": {"_ipl_stage_name": "b"}, "read": {"_ipl_stage_name": "r"}},
        )
    )
    assert parts(found) == {"input": [13], "host_compute": [7], "other": [3]}


def test_a_gpu_step_is_the_span_of_its_kernels_and_streams_are_united() -> None:
    found = steps(
        drawing(
            """
            main       [train                ]
            main        [la][lb][lc]
            /device:GPU:0:
            compute          [kernel_half   ]      [kernel_b]
            copy       [MemcpyHtoD]
            """,
            {
                "train": {"_r": 1},
                "la": {"correlation_id": 1},
                "lb": {"correlation_id": 2},
                "lc": {"correlation_id": 3},
                "MemcpyHtoD": {"correlation_id": 1},
                "kernel_half": {"correlation_id": 2},
                "kernel_b": {"correlation_id": 3},
            },
        )
    )
    assert found.source == "annotation"
    assert (found.duration_ps / PS).tolist() == [38]
    assert parts(found) == {"input": [6], "device_compute": [26], "other": [6]}
    assert found.class_ps[0, TimeClass.DEVICE_COMPUTE_16] == 16 * PS


def test_a_step_s_annotation_that_contains_its_kernels_is_the_step() -> None:
    """Three unlike steps, three GPUs: the host works before and after the kernels in all but the last, whose
    kernels run on.
    """
    found = steps(
        drawing(
            """
            main    [train                    ][train                       ]     [train]
            main     [l1]                       [l2]                              [l3]
            /device:GPU:0:
            stream         [k1   ]                   [k2        ]                        [k3     ]
            /device:GPU:1:
            stream              [k1     ]                [k2 ]                            [k3 ]
            /device:GPU:2:
            stream           [k1]                                  [k2  ]                     [k3    ]
            """,
            {
                "train": [{"_r": 1, "step_num": i} for i in range(3)],
                **{f"l{i}": {"correlation_id": i} for i in (1, 2, 3)},
                **{f"k{i}": [{"correlation_id": i}] * 3 for i in (1, 2, 3)},
            },
        )
    )
    assert found.name == ("train 0", "train 1", "train 2")
    assert (found.duration_ps // PS).tolist() == [
        27,
        30,
        20,
    ]  # the last: from its mark to its last kernel's end
    assert (found.category_ps("device_compute") // PS).tolist() == [14, 18, 13]
    assert (found.category_ps("other") // PS).tolist() == [13, 12, 7]


def test_gpus_that_did_nothing_make_no_steps() -> None:
    assert (
        len(steps(drawing("main  [train    ]\nmain   [work]\n/device:GPU:0:\nstream", {"train": {"_r": 1}})))
        == 0
    )


def test_tpu_steps_are_the_devices_and_averaged_over_cores() -> None:
    def core(number: int, infeed: int) -> DrawnPlane:
        ops = []
        for step in range(2):
            start = step * 20 * PS
            ops += [
                DrawnEvent("infeed.1", start, infeed * PS),
                DrawnEvent("fusion.1", start + infeed * PS, 6 * PS),
            ]
        lines = {"Steps": [DrawnEvent(str(i), i * 20 * PS, 20 * PS) for i in range(2)], "XLA Ops": ops}
        stats = {"infeed.1": {"hlo_category": "infeed"}, "fusion.1": {"hlo_category": "loop fusion"}}
        return DrawnPlane(f"/device:TPU:{number}", lines, metadata_stats=stats)

    found = steps(build([core(0, 4), core(1, 8)]))
    assert (found.duration_ps / PS).tolist() == [20, 20]
    assert parts(found) == {"input": [6, 6], "device_compute": [6, 6], "other": [8, 8]}


def test_programs_that_ran_are_no_steps_where_the_tpu_marked_none() -> None:
    def core(number: int, n_runs: int) -> DrawnPlane:
        runs = [DrawnEvent(f"jit_f({i})", i * 20 * PS, 10 * PS) for i in range(n_runs)]
        return DrawnPlane(
            f"/device:TPU:{number}", {"XLA Modules": runs, "XLA Ops": [DrawnEvent("fusion.1", 0, 6 * PS)]}
        )

    found = steps(build([core(0, 4), core(1, 3)]))
    assert (len(found), found.n_unmarked_runs, found.source) == (0, 4, "")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("IteratorGetNext", TimeClass.HOST_WAIT_INPUT),
        ("x:InfeedEnqueueTuple", TimeClass.HOST_TO_DEVICE),
        ("MemcpyHtoD", TimeClass.HOST_TO_DEVICE),
        ("MemcpyH2H", TimeClass.HOST_COMPUTE),
        ("PjitFunction(f)", TimeClass.HOST_COMPUTE),
    ],
)
def test_classes_of_host_events(name: str, expected: TimeClass) -> None:
    assert host_class(name) == expected


@pytest.mark.parametrize(
    ("name", "shape", "expected"),
    [
        ("MemcpyD2D", "", TimeClass.DEVICE_COMPUTE_32),
        ("MemcpyDtoD", "", TimeClass.DEVICE_TO_DEVICE),
        ("ncclAllReduceRingLL", "", TimeClass.DEVICE_COLLECTIVES),
        ("volta_fp16_gemm", "", TimeClass.DEVICE_COMPUTE_16),
        ("volta_fp16_gemm", "(float32[2])", TimeClass.DEVICE_COMPUTE_32),
        ("gemm", "(half[2])", TimeClass.DEVICE_COMPUTE_16),
        ("sm80_xmma_gemm_bf16bf16_bf16f32_f32", "", TimeClass.DEVICE_COMPUTE_16),
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>>",
            "",
            TimeClass.DEVICE_COMPUTE_16,
        ),
    ],
)
def test_classes_of_gpu_events(name: str, shape: str, expected: TimeClass) -> None:
    assert gpu_class(name, shape) == expected


def test_times_of_a_step_sum_up_and_shares_are_fractions() -> None:
    text = "main   " + "[train      ]" * 4 + "\nmain   " + " [work    ]  " * 4
    found = steps(drawing(text, {"train": {"_r": 1}}))
    assert np.array_equal(found.class_ps.sum(axis=1), found.duration_ps)
    shares = [found.fraction(category) for category in CATEGORIES]
    assert sum(shares) == pytest.approx(1)
    assert all(0 <= share <= 1 for share in shares)
