import numpy as np
import pytest

from tb_tpuprof.analysis.input.advice import costliest, input_advice, short, stage
from tb_tpuprof.analysis.input.host import HostInput, host_input, host_time, input_category, sum_host_input
from tb_tpuprof.analysis.input.pipeline import InputPipeline, copy_fraction, input_part, input_pipeline
from tb_tpuprof.analysis.input.tpu import SC_PARTS, TC_PARTS, waiting
from tb_tpuprof.analysis.ops.recommend import finding, input_finding
from tb_tpuprof.analysis.ops.stats import op_stats
from tb_tpuprof.trace.trace import Trace
from tests.builders import PS, DrawnEvent, DrawnPlane, build, drawing

CATEGORIES = {
    "infeed": "infeed",
    "fusion": "loop fusion",
    "all-reduce": "all-reduce",
    "outfeed": "outfeed",
    "send": "send",
    "wait": "sparse-core-v0 infeed wait",
    "host-send": "host send",
    "host-recv": "host recv-done",
}


def analysed(*traces: Trace) -> InputPipeline:
    return input_pipeline([input_part(trace) for trace in traces])


def core(
    number: int,
    ops: list[tuple[str, int, int]],
    n_steps: int = 2,
    step: int = 90,
    ids: dict[str, int] | None = None,
) -> DrawnPlane:
    """A TensorCore whose steps all hold the same operations: (name, start in the step, length)."""
    events = [
        DrawnEvent(
            name,
            (i * step + start) * PS,
            length * PS,
            {"all_reduce_unique_id": 100 * i + ids[name]} if ids and name in ids else {},
        )
        for i in range(n_steps)
        for name, start, length in ops
    ]
    lines = {
        "Steps": [DrawnEvent(str(i), i * step * PS, step * PS) for i in range(n_steps)],
        "XLA Ops": events,
    }
    stats = {name: {"hlo_category": CATEGORIES[name.partition(".")[0]]} for name, _, _ in ops}
    return DrawnPlane(f"/device:TPU:{number}", lines, metadata_stats=stats)


def test_planted_waiting_on_a_cpu_comes_back() -> None:
    found = analysed(
        drawing(
            """
            main   [train                                ]  [train                                ]
            main     [IteratorGetNext] [MatMul:MatMul]         [IteratorGetNext]  [Mul:Mul]
            """,
            {"train": [{"_r": 1, "step_num": 4}, {"_r": 1, "step_num": 5}]},
        )
    )
    assert found.input_fraction.tolist() == pytest.approx([17 / 39, 17 / 39])
    assert found.hosts[0].waiting_ps == 17 * PS
    assert found.cores is None


@pytest.mark.parametrize(
    ("row", "level", "text"),
    [
        (
            "  [IteratorGetNext     ][MatMul:MatMul               ]",
            "bad",
            "Highly input-bound: each step waits 22.0 µs (40.0%) for data.",
        ),
        (
            "  <g>[MatMul:MatMul                                  ]",
            "warn",
            "Moderately input-bound: each step waits 3.00 µs (5.45%) for data.",
        ),
        (
            "  [MatMul:MatMul                     ]",
            "warn",
            "Possibly input-bound: no waiting for data was traced",
        ),
        (
            "[MatMul:MatMul                                       ]",
            "good",
            "Not input-bound: no step waits for data.",
        ),
    ],
)
def test_the_verdict_is_highly_moderately_possibly_or_not(row: str, level: str, text: str) -> None:
    trace = drawing(
        f"main    [train{' ' * 48}]\nmain    {row}".replace("<g>", "[g]"),
        {"train": {"_r": 1}, **({"g": {"_ipl_stage_name": "g"}} if "<g>" in row else {})},
    )
    found = analysed(trace)
    told = input_finding(found.steps, "CPU")
    assert told.level == level
    assert told.text.startswith(text)
    overview = finding(found.steps, op_stats(trace), "CPU")
    assert (overview.category == "input") == (level == "bad" or "Moderately" in text)
    if overview.category == "input":
        assert overview.text == told.text


def test_without_steps_the_verdict_is_open() -> None:
    trace = drawing("main  [Iterator::Root::Map    ]")
    told = input_finding(analysed(trace).steps, "CPU")
    assert told.level == "unknown"
    assert "waits for input is unknown" in told.text


def test_copies_to_a_gpu_count_as_input() -> None:
    found = analysed(
        drawing(
            """
            main       [train                ]
            main        [la][lb]
            /device:GPU:0:
            stream           [MemcpyHtoD][kernel                   ]
            """,
            {"train": {"_r": 1}, "la": {"correlation_id": 1}, "lb": {"correlation_id": 2},
             "MemcpyHtoD": {"correlation_id": 1}, "kernel": {"correlation_id": 2}},
        )
    )  # fmt: skip
    # The step lasts from its mark on the host to the end of the kernel that it launched.
    assert found.input_fraction.tolist() == pytest.approx([12 / 45])
    assert copy_fraction(found.steps) == pytest.approx(12 / 45)
    assert "fewer, larger arrays" in input_advice(found, "bad")[0].text


def test_a_fifth_of_infeed_in_a_tpu_step_comes_back() -> None:
    """Infeed 0.2 ms of 0.9 ms: 22.2%."""
    found = analysed(build([core(0, [("infeed.1", 0, 20), ("fusion.1", 20, 60)])]))
    assert found.steps.fraction("input") == pytest.approx(0.2222, abs=1e-4)
    assert found.cores is not None
    parts = {name: (times / PS).tolist() for name, times in found.cores.parts.items() if times.any()}
    assert parts == {"tc_compute": [60, 60], "tc_infeed": [20, 20], "tc_idle": [10, 10]}


def test_every_part_of_a_tpu_step_has_its_place() -> None:
    ops = [
        ("infeed.1", 0, 5),
        ("fusion.1", 5, 20),
        ("all-reduce.1", 25, 10),
        ("send.1", 35, 3),
        ("wait.1", 38, 4),
        ("host-send.1", 42, 6),
    ]
    ops += [("host-recv.1", 48, 7), ("outfeed.1", 55, 8)]
    found = analysed(build([core(0, ops)]))
    assert found.cores is not None
    assert {name: found.cores.parts[name][0] / PS for name in TC_PARTS} == {
        "tc_compute": 20,
        "collective_compute": 10,
        "collective_sync": 0,
        "device_to_device": 3,
        "sparse_wait": 4,
        "tc_infeed": 5,
        "host_transfer": 13,
        "tc_outfeed": 8,
        "tc_idle": 27,
    }
    assert found.input_fraction[0] == pytest.approx(12 / 90)  # infeed, and what the host sends


def test_cores_make_a_band_and_the_worst_is_named() -> None:
    quick, slow = [("infeed.1", 0, 9), ("fusion.1", 9, 60)], [("infeed.1", 0, 27), ("fusion.1", 27, 60)]
    found = analysed(build([core(0, quick), core(3, slow)], host="h"))
    assert found.cores is not None
    assert found.cores.least.tolist() == pytest.approx([0.1, 0.1])
    assert found.cores.most.tolist() == pytest.approx([0.3, 0.3])
    assert found.cores.worst == ("h:3", "h:3")
    # The other core waits for this one, too: it idles or sits in a collective.
    assert found.input_fraction.tolist() == pytest.approx([0.3, 0.3])
    assert (found.cores.parts["tc_infeed"] / PS).tolist() == [27, 27]
    assert (found.cores.parts["tc_idle"] / PS).tolist() == [3, 3]


@pytest.mark.parametrize("ids", [None, {"all-reduce.1": 1, "all-reduce.2": 2}])
def test_what_a_collective_takes_longer_than_on_the_last_core_is_waiting(ids: dict[str, int] | None) -> None:
    early = [("fusion.1", 0, 20), ("all-reduce.1", 20, 30), ("fusion.1", 50, 10), ("all-reduce.2", 60, 20)]
    late = [("fusion.1", 0, 40), ("all-reduce.1", 40, 10), ("fusion.1", 50, 18), ("all-reduce.2", 68, 12)]
    found = analysed(build([core(0, early, ids=ids), core(1, late, ids=ids)]))
    assert found.cores is not None
    assert (found.cores.parts["collective_sync"] / PS).tolist() == [14, 14]  # (30 - 10 + 20 - 12) / 2 cores
    assert (found.cores.parts["collective_compute"] / PS).tolist() == [22, 22]


def test_sparse_cores_stand_beside_the_step() -> None:
    lines = {
        "Sparse Core Steps": [DrawnEvent(str(i), (i * 90 + 10) * PS, 50 * PS) for i in range(2)],
        "Sparse Core Ops": [
            event
            for i in range(2)
            for event in (
                DrawnEvent("infeed.9", (i * 90 + 10) * PS, 5 * PS),
                DrawnEvent("gather", (i * 90 + 20) * PS, 25 * PS),
            )
        ],
    }
    sparse = DrawnPlane(
        "/device:TPU:0 SparseCore 0", lines, metadata_stats={"infeed.9": {"hlo_category": "infeed"}}
    )
    found = analysed(build([core(0, [("fusion.1", 0, 60)]), sparse]))
    assert found.cores is not None
    assert {name: (found.cores.parts[name] / PS).tolist() for name in SC_PARTS} == {
        "sc_compute": [25, 25], "sc_infeed": [5, 5], "sc_outfeed": [0, 0], "sc_idle": [60, 60],
    }  # fmt: skip


def without_infeed(waited: int) -> Trace:
    """Cores that compute for 60 of 90, and a host that waits for input in each step."""
    wait = [DrawnEvent("IteratorGetNext", (i * 90 + 62) * PS, waited * PS, {"group_id": i}) for i in range(2)]
    device = core(0, [("fusion.1", 0, 60)])
    for event in device.lines["Steps"]:
        event.stats = {"group_id": int(event.name), "step_name": event.name}
    for i, event in enumerate(device.lines["XLA Ops"]):
        event.stats = {"group_id": i}
    return build([DrawnPlane("/host:CPU", {"main": wait}), device])


@pytest.mark.parametrize(("waited", "moved"), [(12, 12), (28, 28), (80, 30)])
def test_without_infeed_idling_while_the_host_waits_is_waiting(waited: int, moved: int) -> None:
    trace = without_infeed(waited)
    assert (waiting(trace).moved_ps / PS).tolist() == [moved, moved]
    found = analysed(trace)
    assert found.input_fraction.tolist() == pytest.approx([moved / 90] * 2)
    assert found.cores is not None
    assert found.cores.most.tolist() == pytest.approx([moved / 90] * 2)
    assert (found.cores.parts["tc_idle"] / PS).tolist() == [30 - moved] * 2


def test_with_infeed_idling_stays_idling() -> None:
    assert not waiting(build([core(0, [("infeed.1", 0, 1), ("fusion.1", 1, 60)])])).moved_ps.any()


@pytest.mark.parametrize(
    ("name", "type_", "category"),
    [
        ("infeed", "InfeedEnqueueTuple", "enqueuing"),
        ("MEMCPYHtoD", "MemcpyHToD", "enqueuing"),
        ("Iterator::Root::Map::TFRecord", "Dataset", "demanded_reads"),
        ("Iterator::Root::Prefetch::TextLine", "Dataset", "advanced_reads"),
        ("Iterator::Root::Interleave[3]::FixedLengthRecord", "Dataset", "advanced_reads"),
        ("Iterator::Root::ParallelMapV2::ArrayRecord", "Dataset", "advanced_reads"),
        ("Iterator::Root::TFRecord::Map", "Dataset", "preprocessing"),
        ("load", "Read", "demanded_reads"),
        ("augment", "Preprocessing", "preprocessing"),
        ("send", "Enqueue", "enqueuing"),
        ("what", "Unknown", "other"),
        ("IteratorGetNext", "IteratorGetNext", ""),
        ("MatMul", "MatMul", ""),
    ],
)
def test_operations_of_the_input_have_a_category(name: str, type_: str, category: str) -> None:
    assert input_category(name, type_) == category


def test_times_on_the_host_are_scaled_to_what_happens_between_enqueues() -> None:
    """Enqueues of 19 every 38: half the time; so reading and mapping share as much as the enqueues take, 3 to
    1.
    """
    found = host_input(
        drawing("""
            feeder  [q:InfeedEnqueue  ]                   [q:InfeedEnqueue  ]
            a       [Iterator::Root::TFRecord                                                                    ]
            b       [Iterator::Root::Map           ]
            """)
    )
    assert (found.enqueue_ps / PS, found.between_ps / PS) == (19, 38)
    time = host_time(found)
    assert time.enqueue_fraction == 0.5
    read, mapped = found.time_ps("demanded_reads"), found.time_ps("preprocessing")
    assert np.array(time.time_ps) / PS == pytest.approx(
        [38, 38 * mapped / (read + mapped), 0, 38 * read / (read + mapped), 0]
    )


def test_without_enqueues_times_on_the_host_are_what_they_are() -> None:
    found = host_input(drawing("a  [Iterator::Root::Map           ][Iterator::Root::TFRecord  ][other:Op]"))
    assert np.array(host_time(found).time_ps) / PS == pytest.approx([0, 32, 0, 28, 0])
    # Copies on a device say nothing of a host that enqueues nothing.
    assert host_time(found, 0.3) == host_time(found)
    assert host_time(found).enqueue_fraction == -1


def test_enqueues_alone_leave_the_rest_unclassified() -> None:
    found = host_input(drawing("a  [q:InfeedEnqueue  ]                   [q:InfeedEnqueue  ]"))
    assert np.array(host_time(found).time_ps) / PS == pytest.approx([38, 0, 0, 0, 38])
    assert host_time(found).largest in ("enqueuing", "other")


def test_hosts_add_up() -> None:
    one = host_input(drawing("a  [Iterator::Root::Map           ]"))
    both: HostInput = sum_host_input([one, one])
    assert both.ops.self_ps.tolist() == [64 * PS]
    assert both.category == ("preprocessing",)


def job(wait: int) -> Trace:
    text = (
        f"main [train{' ' * 43}]\nmain [{'IteratorGetNext'.ljust(wait)}][{'MatMul:MatMul'.ljust(46 - wait)}]"
    )
    return drawing(text, {"train": {"_r": 1}})


def test_hosts_are_sorted_by_how_much_they_wait() -> None:
    parts = [input_part(trace) for trace in (job(16), job(30), drawing("main  [Add:Add ]"))]
    found = input_pipeline(parts)
    assert [len(part.steps) for part in found.hosts] == [1, 1, 0]
    assert [part.waiting_ps / PS for part in found.hosts[:2]] == [32, 18]
    assert found.steps.category_ps("input").tolist() == [25 * PS]


def test_advice_names_the_stage_and_what_the_pipeline_lacks() -> None:
    text = """
        main  [train                                                                            ]
        main   [IteratorGetNext                                          ][MatMul:MatMul        ]
        data   [Iterator::Root::ForeverRepeat::BatchV2::Map           ]
        reader [Iterator::Root::ForeverRepeat::BatchV2::Map::TFRecord       ]
        """
    advice = input_advice(analysed(drawing(text, {"train": {"_r": 1}})), "bad")
    told = " ".join(one.text for one in advice)
    assert "interleave(" in told
    assert "prefetch(tf.data.AUTOTUNE)" in told
    assert "cache()" in told
    assert advice[0].category == "demanded_reads"
    assert advice[0].tool == "tf_data_bottleneck_analysis"


def test_a_job_that_does_not_wait_gets_no_advice_for_its_input() -> None:
    assert [one.tool for one in input_advice(analysed(job(16)), "good")] == ["overview_page"]


def test_names_of_stages() -> None:
    assert stage("Iterator::Root::Prefetch::BatchV2") == "Batch"
    assert stage("Iterator::Root::Interleave[12]") == "Interleave"
    assert stage("Iterator::Prefetch::Generator") == "DeviceGenerator"
    assert short("Iterator::Root::Prefetch::Shuffle::Map") == "…::Shuffle::Map"
    assert short("Iterator::Prefetch") == "Iterator::Prefetch"


def test_stages_that_wait_for_others_are_not_blamed() -> None:
    found = host_input(
        drawing("a  [Iterator::Root::Prefetch                  ][Iterator::Root::Prefetch::Map]")
    )
    assert costliest(found, "preprocessing") == "Iterator::Root::Prefetch::Map"
    assert costliest(found, "enqueuing") == ""


def test_the_generator_of_a_device_s_pipeline_waits_for_the_host_s() -> None:
    """It is no preprocessing, also where nothing below it was traced; a generator of the user's own is."""
    trace = drawing("""
        a   [Iterator::Root::Prefetch::Generator         ]
        b   [Iterator::Root::Generator          ]
        c   [Iterator::Root::Prefetch::Map ]
        """)
    found = host_input(trace)
    assert dict(zip(found.ops.name, found.category, strict=True)) == {
        "Iterator::Root::Prefetch::Generator": "waiting",
        "Iterator::Root::Generator": "preprocessing",
        "Iterator::Root::Prefetch::Map": "preprocessing",
    }
