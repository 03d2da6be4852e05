import numpy as np
import pytest

from tb_tpuprof.analysis.events import names as event_names
from tb_tpuprof.analysis.events.names import (
    Op,
    hlo_op_type,
    is_explicit_step,
    is_fetch,
    is_graph_launch,
    is_loop_op,
    parse_op,
)
from tb_tpuprof.analysis.events.stat_rows import events_of
from tb_tpuprof.session import Session
from tests.golden_files import demo_runs


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("scope/dense/MatMul:MatMul", Op("scope/dense/MatMul", "MatMul", event_names.TENSORFLOW)),
        ("jit(f)/dot_general:dot_general", Op("jit(f)/dot_general", "dot_general", event_names.JAX)),
        (
            "jit(f)/transpose[permutation=(1, 0)]:",
            Op("jit(f)/transpose[permutation=(1, 0)]", "transpose", event_names.JAX),
        ),
        ("jit(f)/add_1:", Op("jit(f)/add_1", "add", event_names.JAX)),
        ("model/Add_1:", Op("model/Add_1", "Add", event_names.TENSORFLOW)),
        (
            "jit(f)/aten::mean.dim/reduce_sum:",
            Op("jit(f)/aten::mean.dim/reduce_sum", "reduce_sum", event_names.JAX),
        ),
        ("jit(f)/aten::add.Tensor/x:add", Op("jit(f)/aten::add.Tensor/x", "add", event_names.JAX)),
        ("jit(f)/aten::mean", Op("jit(f)/aten::mean", "")),
        ("Iterator::Root::Map", Op("Iterator::Root::Map", "Dataset", event_names.TF_DATA)),
        ("MemcpyHtoD", Op("MemcpyHtoD", "MemcpyHToD", event_names.MEMCPY)),
        ("ExecutorState::Process", Op("ExecutorState::Process", "")),
        ("PjitFunction(step)", Op("PjitFunction(step)", "")),
        ("$file.py:12 function", Op("$file.py:12 function", "")),
        ("", Op("", "")),
        ("cudaGraphLaunch in my::operator", Op("cudaGraphLaunch in my::operator", "cudaGraphLaunch")),
        ("hipGraphLaunch", Op("hipGraphLaunch", "hipGraphLaunch")),
        ("nccl (record_param_comms)", Op("nccl (record_param_comms)", "collective")),
        ("nccl:all_reduce", Op("nccl:all_reduce", "all_reduce")),
        ("nccl:a/all_reduce:x", Op("nccl:a/all_reduce:x", "")),
        ("scope/nccl:all_reduce", Op("scope/nccl", "all_reduce", event_names.JAX)),
        ("aten::mm", Op("aten::mm", "mm")),
        ("c10d::allreduce_::x", Op("c10d::allreduce_::x", "x")),
        ("MakeIterator::Root", Op("MakeIterator::Root", "")),
        ("ReduceIterator::Root::Map", Op("ReduceIterator::Root::Map", "Dataset", event_names.TF_DATA)),
        ("Iterator:Root", Op("Iterator", "Root", event_names.TENSORFLOW)),
        ("MemcpyD2H", Op("MemcpyD2H", "")),
        (
            "Memcpy DtoH (Device -> Pinned)",
            Op("Memcpy DtoH (Device -> Pinned)", "MemcpyDToH", event_names.MEMCPY),
        ),
        ("MEMCPYHtoH", Op("MEMCPYHtoH", "MemcpyHToH", event_names.MEMCPY)),
        ("MemcpyDtoD", Op("MemcpyDtoD", "MemcpyDToD", event_names.MEMCPY)),
        ("xMemcpyDtoD", Op("xMemcpyDtoD", "")),
        ("a b:??", Op("a b:??", "")),
        ("model/Add_-12:", Op("model/Add_-12", "Add", event_names.TENSORFLOW)),
        ("Add_1/Mul:", Op("Add_1/Mul", "Mul", event_names.TENSORFLOW)),
    ],
)
def test_a_name_is_an_operation_or_is_not(text: str, expected: Op) -> None:
    assert parse_op(text) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [("dot.12", "dot"), ("loop_fusion.3.clone", "loop_fusion"), ("copy", "copy"), (".1", ".1")],
)
def test_kind_of_an_instruction_is_its_name_without_number(name: str, expected: str) -> None:
    assert hlo_op_type(name) == expected


def test_steps_are_called_train_or_test() -> None:
    assert [
        is_explicit_step(name) for name in ("train", "test_step", "TraceContext", "train/x", "Train", "step")
    ] == [True] * 3 + [False] * 3
    assert not is_explicit_step("train.py(15): run"), "a Python frame in a file"


def test_fetches_graph_launches_and_loops() -> None:
    fetch = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    frame = "torch/utils/data/dataloader.py(631): __next__"
    names = (
        fetch,
        frame,
        "torch/utils/data/dataloader.py(631): reset",
        "mine/dataloader.py(3): __next__",
        "x",
    )
    assert [is_fetch(name) for name in names] == [True, True, False, False, False]
    launches = ("cuGraphLaunch", "hipGraphLaunch in step", "cudaLaunchKernel", "my cudaGraphLaunch")
    assert [is_graph_launch(name) for name in launches] == [True, True, False, False]
    assert [is_loop_op(name) for name in ("ForOp", "WhileOp-EvalCond", "For", "")] == [
        True,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize("seed", range(3))
def test_events_of_chosen_names(seed: int) -> None:
    session = Session(str(demo_runs()["jax_predict"]), cache=False)
    trace = session.trace(session.hosts[0])
    chosen = np.random.default_rng(seed).random(len(trace.metadata)) < (0, 0.1, 0.9)[seed]
    rows = [row for row, name in enumerate(trace.events["metadata"].tolist()) if chosen[name]]
    assert events_of(trace, chosen).tolist() == rows
    assert bool(rows) is (seed > 0)
