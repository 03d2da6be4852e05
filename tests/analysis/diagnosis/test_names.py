"""The origin of an event's code, and the cause that its name reveals."""

from __future__ import annotations

import re

import pytest

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.names import CAUSES, Origin, names, origin_of
from tb_tpuprof.analysis.diagnosis.rules import claim_of, rules
from tb_tpuprof.analysis.events.python_frames import Frame
from tests.builders import drawing


@pytest.mark.parametrize(
    ("file", "origin"),
    [
        ("", Origin.BUILTIN),
        ("mine.py", Origin.USER),
        ("a/b/mine.py", Origin.USER),
        ("train.py", Origin.COMMON),
        ("trainer.py", Origin.COMMON),
        ("pxla.py", Origin.FRAMEWORK),
        ("callback_list.py", Origin.FRAMEWORK),
        ("queue.py", Origin.LIBRARY),
        ("threading.py", Origin.LIBRARY),
        ("__init__.py", Origin.LIBRARY),
        ("<frozen importlib._bootstrap>", Origin.LIBRARY),
        ("/x/site-packages/torch/nn/module.py", Origin.FRAMEWORK),
        ("/x/site-packages/jax/_src/mine.py", Origin.FRAMEWORK),
        ("/x/dist-packages/jaxtyping/mine.py", Origin.LIBRARY),
        ("torch/nn/mine.py", Origin.FRAMEWORK),
        ("/usr/lib/python3.11/mine.py", Origin.LIBRARY),
        ("/usr/lib64/python3/mine.py", Origin.LIBRARY),
        ("/x/lib/pythonic/mine.py", Origin.USER),
    ],
)
def test_the_file_of_a_frame_gives_its_origin(file: str, origin: Origin) -> None:
    assert origin_of(Frame("f", file, 3)) == origin


def test_origins_are_distinct_and_frames_are_the_last_of_them() -> None:
    frames = [Origin.USER, Origin.BUILTIN, Origin.LIBRARY, Origin.FRAMEWORK, Origin.COMMON]
    assert list(Origin) == [Origin.RUNTIME, Origin.ANNOTATION, *frames]
    assert [int(one) for one in Origin] == list(range(7))


def test_every_number_of_a_cause_is_its_place() -> None:
    assert CAUSES[0] is None
    assert list(CAUSES[1:]) == list(Cause)


def test_names_of_a_trace() -> None:
    """By metadata row: three frames, an annotation, a loader's annotation, a call of the runtime, an
    operation, a wait.
    """
    trace = drawing(
        """
        main   [$mine.py:4 f    ][$pxla.py:3 g    ][$time sleep  ][anneal   ][load_batch   ]
        main   [PjitFunction(f) ][dot.3        ][np.asarray(jax.Array)]
        /device:GPU:0:
        stream [gemm  ]
        """,
        {"dot.3": {"hlo_op": "dot.3"}},
    )
    table = names(trace)
    by_name = {trace.strings[name]: row for row, name in enumerate(trace.metadata["name"].tolist())}
    origins = {name: Origin(table.origin[row]) for name, row in by_name.items()}
    assert origins == {
        "$mine.py:4 f": Origin.USER,
        "$pxla.py:3 g": Origin.FRAMEWORK,
        "$time sleep": Origin.BUILTIN,
        "anneal": Origin.ANNOTATION,
        "load_batch": Origin.ANNOTATION,
        "PjitFunction(f)": Origin.RUNTIME,
        "dot.3": Origin.RUNTIME,
        "np.asarray(jax.Array)": Origin.RUNTIME,
        "gemm": Origin.RUNTIME,
    }
    assert [name for name, row in by_name.items() if table.is_op[row]] == ["dot.3"]
    claims = {
        name: (CAUSES[table.claim[row]], table.strength[row])
        for name, row in by_name.items()
        if table.claim[row]
    }
    assert claims == {"np.asarray(jax.Array)": (Cause.SYNCHRONIZATION, 2)}


CLAIMS = [
    ("$array.py:301 __float__", (Cause.SYNCHRONIZATION, 2)),
    ("$api.py:3020 block_until_ready", (Cause.SYNCHRONIZATION, 2)),
    ("$ops.py:387 numpy", (Cause.SYNCHRONIZATION, 2)),
    ("$context.py:1011 async_wait", (Cause.SYNCHRONIZATION, 2)),
    ("$array.py:301 block_until_ready", (Cause.SYNCHRONIZATION, 2)),
    ("TFE_TensorHandleResolve", (Cause.SYNCHRONIZATION, 2)),
    ("cudaStreamSynchronize", (Cause.SYNCHRONIZATION, 2)),
    ("aten::item", (Cause.SYNCHRONIZATION, 2)),
    ("pure_callback", (Cause.CALLBACKS, 4)),
    ("io_callback.12", (Cause.CALLBACKS, 4)),
    ("xla_ffi_python_cpu_callback.3", (Cause.CALLBACKS, 4)),
    ("debug_print.1", (Cause.CALLBACKS, 4)),
    ("EagerPyFunc:EagerPyFunc", (Cause.CALLBACKS, 4)),
    ("model/PyFunc:PyFunc", (Cause.CALLBACKS, 4)),
    ("$callback_list.py:99 set_model", (Cause.CALLBACKS, 4)),
    ("$callback.py:310 _wrapped_callback", (Cause.CALLBACKS, 4)),
    ("$script_ops.py:145 _call", (Cause.CALLBACKS, 4)),
    ("$mine.py:7 on_train_batch_begin", (Cause.CALLBACKS, 4)),
    ("$mine.py:7 on_epoch_end", (Cause.CALLBACKS, 4)),
    ("$mine.py:7 on_train_batches", None),
    ("$tracing_compilation.py:295 _create_concrete_function", (Cause.COMPILATION, 3)),
    ("$tracing_compilation.py:144 trace_function", None),
    ("$tracing_compilation.py:188 _maybe_define_function", None),
    ("$compiler.py:350 backend_compile", (Cause.COMPILATION, 3)),
    ("$pjit.py:77 _infer_params_impl", (Cause.COMPILATION, 3)),
    ("$func_graph.py:9 func_graph_from_py_func", (Cause.COMPILATION, 3)),
    ("DevicePut", (Cause.TRANSFERS, 3)),
    ("H2D Dispatch", (Cause.TRANSFERS, 3)),
    ("BufferFromHostBuffer", (Cause.TRANSFERS, 3)),
    ("PjRtClient::BufferFromHostBuffer(x)", (Cause.TRANSFERS, 3)),
    ("TransferToDeviceAsync", (Cause.TRANSFERS, 3)),
    ("$dispatch.py:5 device_put", (Cause.TRANSFERS, 2)),
    ("$mine.py:40 update", None),
    ("my_pure_callback_thing", None),
    ("$pjit.py:77 cache_miss", None),
    ("dot.3", None),
    ("", None),
]


@pytest.mark.parametrize(("name", "claim"), CLAIMS)
def test_names_claim_their_cause(name: str, claim: tuple[Cause, int] | None) -> None:
    assert claim_of(name) == claim


def test_every_claim_has_an_example() -> None:
    for rule in rules():
        for claim in rule.claims:
            examples = [name for name, told in CLAIMS if told == (rule.cause, claim.strength)]
            assert any(re.fullmatch(claim.pattern, name) for name in examples), claim
