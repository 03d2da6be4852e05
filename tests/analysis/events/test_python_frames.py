"""Names on a Python thread: frames, annotations, waits and loaders."""

from __future__ import annotations

import pytest

from tb_tpuprof.analysis.events.python_frames import Frame, Kind, frame_of, is_compilation, kind_of


@pytest.mark.parametrize(
    ("name", "frame"),
    [
        ("$train.py:15 batches", Frame("batches", "train.py", 15)),
        ("$a/b/train.pyx:7 <lambda>", Frame("<lambda>", "a/b/train.pyx", 7)),
        ("$time sleep", Frame("sleep", module="time")),
        ("$builtins next", Frame("next", module="builtins")),
        ("$odd", Frame("odd")),
        ("torch/nn/modules/conv.py(462): forward", Frame("forward", "conv.py", 462)),
        ("<built-in method relu of type object at 0x7f>", Frame("relu", module="builtins")),
        ("<built-in function next>", Frame("next", module="builtins")),
        ("train.py:15 batches", None),
        ("PjitFunction(f)", None),
        ("", None),
    ],
)
def test_a_name_is_a_frame_or_is_not(name: str, frame: Frame | None) -> None:
    assert frame_of(name) == frame


def test_places_stems_and_owners() -> None:
    frame = Frame("f", "a/b/train.py", 15)
    assert (frame.place, frame.stem, frame.is_users) == ("a/b/train.py:15", "train", True)
    builtin = Frame("sleep", module="time")
    assert (builtin.place, builtin.stem, builtin.is_users) == ("", "", False)
    assert [
        Frame("f", name).is_users for name in ("queue.py", "functools.py", "popen_fork.py", "mine.py")
    ] == [
        False,
        False,
        False,
        True,
    ]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("$time sleep", Kind.WAIT),
        ("$queue.py:154 get", Kind.WAIT),
        ("$mine.py:3 get", Kind.PYTHON),  # the user's own function of that name
        ("$mine.py:3 wait", Kind.PYTHON),
        ("$mine.py:3 block_until_ready", Kind.WAIT),
        ("$mine.py:3 synchronize", Kind.WAIT),
        ("$mine.py:3 sleep", Kind.PYTHON),
        ("$math sqrt", Kind.PYTHON),
        ("$builtins next", Kind.NEXT),
        ("$time next", Kind.PYTHON),
        ("$builtins len", Kind.PYTHON),
        ("$mine.py:3 __next__", Kind.LOADER),
        ("$mine.py:3 load_batch", Kind.LOADER),
        ("$mine.py:3 NextBatch", Kind.LOADER),
        ("$mine.py:3 train_on_batch", Kind.PYTHON),
        ("$mine.py:3 update", Kind.PYTHON),
        ("$threading.py:3 load", Kind.PYTHON),  # one of Python's own that only wait
        ("$dataloader.py:9 fetch_it", Kind.LOADER),
        ("$dataloader.py:9 reset", Kind.LOADER),
        ("$dataloader.py:9 _reset", Kind.PYTHON),
        ("$pjit.py:9 read_inputs", Kind.PYTHON),  # a framework's word
        ("load_batch", Kind.LOADER),
        ("anneal", Kind.ANNOTATION),
        ("train_step", Kind.ANNOTATION),
        ("load_model", Kind.ANNOTATION),
        ("", Kind.NONE),
        ("a/Mul:Mul", Kind.NONE),
        ("PjitFunction(f)", Kind.NONE),
        ("backend_compile", Kind.NONE),
        ("cudaLaunchKernel", Kind.NONE),
    ],
)
def test_kinds(name: str, kind: Kind) -> None:
    assert kind_of(name) == kind


def test_kinds_have_the_numbers_that_arrays_hold() -> None:
    assert [int(kind) for kind in Kind] == list(range(6))


def test_compilations() -> None:
    names = (
        "backend_compile",
        "CpuCompiler::Compile",
        "$x.py:3 backend_compile",
        "GpuCompiler::BufferFrom",
        "f",
    )
    assert [is_compilation(name) for name in names] == [True, True, False, False, False]
