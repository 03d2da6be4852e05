"""The framework of a job by the names in its trace, and advice in its terms that cites the run."""

from __future__ import annotations

import pytest

from tb_tpuprof.analysis.events.frameworks import (
    JAX,
    PYTORCH,
    REACTANT,
    SERVING,
    TENSORFLOW,
    UNKNOWN,
    Software,
    software,
    sum_software,
)
from tb_tpuprof.analysis.ops.framework_calls import Call, framework_calls, sum_calls
from tb_tpuprof.analysis.overview.facts import host_facts, run_facts
from tb_tpuprof.analysis.overview.framework_advice import framework_advice
from tb_tpuprof.session import Session
from tb_tpuprof.trace.trace import Trace
from tests.builders import PS, DrawnEvent, DrawnPlane, build, drawing
from tests.consistency.words import foreign_words
from tests.golden_files import demo_runs

CATEGORIES = (
    "input",
    "other",
    "kernel_launch",
    "device_collectives",
    "compilation",
    "output",
    "device_compute",
)


def named(*names: str) -> Trace:
    return build(
        [
            DrawnPlane(
                "/host:CPU", {"main": [DrawnEvent(name, i * PS, PS // 2) for i, name in enumerate(names)]}
            )
        ]
    )


def test_the_last_string_of_a_trace_is_read_too() -> None:
    name = "PjitFunction(step)"
    trace = build([DrawnPlane("/host:CPU", {name: [DrawnEvent(name, 0, PS)]})])
    assert trace.strings[len(trace.strings) - 1] == name
    assert software(trace).framework == JAX


@pytest.mark.parametrize(
    ("names", "framework"),
    [
        (("PjitFunction(step)", "$train.py:7 step"), JAX),
        (("jit_train_step(17)",), JAX),
        (("aten::mm", "ProfilerStep#3"), PYTORCH),
        (("void at::native::vectorized_elementwise_kernel<4>(int)",), PYTORCH),
        (("triton_poi_fused_add_0",), PYTORCH),
        (("EagerExecute", "MatMul:MatMul"), TENSORFLOW),
        (("__inference_train_step_123", "Iterator::Root::Map"), TENSORFLOW),
        (("BatchingSessionRun", "ExecutorState::Process"), SERVING),
        (("reactant_linear(3)",), REACTANT),
        (("Iterator::Root::Map", "PjitFunction(step)"), JAX),
        (("something", "my_jit_wrapper", "jitter", "not aten::mm", "torchlight"), UNKNOWN),
    ],
)
def test_the_framework_is_known_by_its_names(names: tuple[str, ...], framework: str) -> None:
    assert software(named(*names)).framework == framework


def test_a_version_of_jax_tells_jax_where_names_do_not() -> None:
    assert (
        software(
            build(
                [DrawnPlane("/host:CPU", {}), DrawnPlane("Task Environment", {}, {"jax_version": "0.10.2"})]
            )
        ).framework
        == JAX
    )


def test_what_else_a_job_uses() -> None:
    found = software(named("PjitFunction(f)", "Iterator::Root::Prefetch", "$x.py:1 f", "hipLaunchKernel"))
    assert found == Software(JAX, uses_tf_data=True, has_python=True, is_amd=True)
    assert found.names == {JAX, "tf.data"}
    assert sum_software([Software(), Software(PYTORCH), Software(JAX, True), Software(PYTORCH)]) == Software(
        PYTORCH, True
    )
    for flag in ("uses_tf_data", "has_python", "is_amd"):
        assert sum_software([Software(), Software(**{flag: True}), Software()]) == Software(**{flag: True})  # type: ignore[arg-type]
    assert sum_software([]) == Software()
    assert sum_software([Software(JAX), Software(PYTORCH)]).framework == JAX  # the first of equals
    assert software(drawing("")) == Software()


def test_the_demo_runs_are_known() -> None:
    found = {
        log: software(Session(str(path), cache=False).trace("worker-0")) for log, path in demo_runs().items()
    }
    assert {log: one.framework for log, one in found.items()} == {
        "jax_predict": JAX, "jax_train": JAX, "keras_slow_input": TENSORFLOW, "tf_two_workers": TENSORFLOW,
    }  # fmt: skip
    assert [log for log, one in found.items() if one.uses_tf_data] == ["keras_slow_input", "tf_two_workers"]


def test_calls_are_counted_within_the_steps() -> None:
    """The profiler itself synchronises the device when it stops: that call lies behind the last step."""
    text = """
        main  [train                      ][train                     ]
        main   [Mul:Mul ][cudaStreamSynchronize]   [Add:Add  ]            [cudaStreamSynchronize]
    """
    trace = drawing(text, {"train": [{"_r": 1, "step_num": 4}, {"_r": 1, "step_num": 5}]})
    (found,) = framework_calls(trace)
    assert (found.kind, found.name, found.n, found.time_ps) == ("sync", "cudaStreamSynchronize", 1, 23 * PS)
    assert sum_calls([[found], [found]])[0] == Call("sync", "cudaStreamSynchronize", 2, 46 * PS)


def test_calls_that_begin_with_the_first_step_count_and_those_at_the_last_one_s_end_do_not() -> None:
    trace = drawing(
        """
        main    [train                      ][train                      ]
        main    [aten::item][Mul:Mul ]         [Add:Add  ]
        other   [aten::item]                                              [aten::item]
        before [aten::item]
        """,
        {"train": [{"_r": 1, "step_num": 4}, {"_r": 1, "step_num": 5}]},
    )
    (found,) = framework_calls(trace)
    assert (found.name, found.n) == ("aten::item", 2)


@pytest.mark.parametrize("category", CATEGORIES)
@pytest.mark.parametrize(
    "names",
    [("aten::mm",), ("PjitFunction(f)",), ("EagerExecute",), ("BatchingSessionRun",), ("reactant_f(1)",)],
)
def test_advice_speaks_of_the_jobs_own_framework(names: tuple[str, ...], category: str) -> None:
    spoken = (
        f"main  [train                ][train                ]\nmain   [Mul:Mul ]  <{names[0]}>     "
        "[Add:Add  ]"
    )
    trace = drawing(spoken, {"train": [{"_r": 1, "step_num": 4}, {"_r": 1, "step_num": 5}]})
    facts = run_facts([host_facts(trace)])
    calls = (
        Call("sync", "cudaDeviceSynchronize", 7, 10**9),
        Call("launch", "cudaLaunchKernel", 1234, PS),
        Call("eager", "EagerExecute", 9, 1),
    )
    texts = framework_advice(category, facts, calls)
    assert texts
    framework = facts.software.framework
    assert framework != UNKNOWN
    assert not [word for text in texts for word in foreign_words(text, framework)]


def pytorch() -> Trace:
    text = "main  [train                ][train                ]\nmain   [Mul:Mul ]  <aten::mm>   [Add:Add  ]"
    return drawing(text, {"train": [{"_r": 1, "step_num": 4}, {"_r": 1, "step_num": 5}]})


def test_advice_cites_this_run() -> None:
    facts = run_facts([host_facts(pytorch())])
    waits = Call("sync", "cudaStreamSynchronize", 12, 30 * PS)
    first, *_ = framework_advice("other", facts, (waits,))
    assert first.startswith(
        "The host waits for the device in `cudaStreamSynchronize` (12 calls, 30.0 µs): move `.item()`"
    )
    unseen = framework_advice("other", facts, (Call("sync", "aten::item", 1, 1000),))
    assert not any("aten::item" in text for text in unseen), "what costs nothing is no evidence"
    launches = framework_advice("kernel_launch", facts, (Call("launch", "cudaLaunchKernel", 8868, PS),))
    assert launches[0].startswith(
        "8,868 kernels were launched one by one in the steps: fuse them with `torch.compile("
    )
    assert "CUDA graphs" in launches[0]
    loader = framework_advice(
        "input",
        facts,
        (Call("loader", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 6, 280 * PS),),
    )
    assert loader[0].startswith(
        "The `DataLoader` loads in the training process (6 batches took 280 µs): set `num_workers`"
    )
    workers = framework_advice(
        "input",
        facts,
        (Call("workers", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 1, PS),),
    )
    assert "are too slow (1 batch waited 1.00 µs)" in workers[0]


def test_amd_gpus_have_hip_graphs() -> None:
    text = (
        "main  [train                 ][train                ]\nmain   [Mul:Mul ]  <aten::mm>   [Add:Add "
        " "
        "] <hipMemcpy>"
    )
    facts = run_facts(
        [host_facts(drawing(text, {"train": [{"_r": 1, "step_num": 4}, {"_r": 1, "step_num": 5}]}))]
    )
    (text,) = framework_advice("kernel_launch", facts, ())
    assert "HIP graphs" in text
    assert "CUDA" not in text
