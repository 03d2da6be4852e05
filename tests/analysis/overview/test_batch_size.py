"""The batch size, where shapes reveal it, and the doubts that leave it unknown: drawn programs, calls of
PyTorch and pipelines; and recorded runs whose scripts state it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from tb_tpuprof.analysis.overview.batch_size import UNKNOWN, BatchSize, batch_size
from tb_tpuprof.ingest.xspace.messages import xspace_class
from tb_tpuprof.session import Session
from tb_tpuprof.trace.trace import Trace
from tests.builders import drawing
from tests.ingest.chrome_files import loaded, opened
from tests.ingest.hlo_protos import TUPLE, array, computation, instruction, proto
from tests.kineto_jobs import x
from tests.synthetic import PlaneWriter, write_run

US = 10**6
DEMO = Path(__file__).resolve().parents[3] / "demo_logs"
Dims = tuple[int, ...]
CORPUS = os.environ.get("TPUPROF_CORPUS", "")


def program(
    name: str,
    inputs: dict[str, Dims],
    results: list[Dims],
    shardings: dict[str, Any] | None = None,
    devices: tuple[int, int] = (1, 1),
    codes: dict[str, int] | None = None,
) -> bytes:
    """A program by its parameters' names and dimensions, and its results' dimensions."""
    shapes = {key: array(*dims, code=(codes or {}).get(key, 11)) for key, dims in inputs.items()}
    body = [
        instruction(
            i, "parameter", shapes[key], f9=i, f7={2: key}, **({"f40": shardings[key]} if shardings else {})
        )
        for i, key in enumerate(inputs, 1)
    ]
    made = [array(*dims) for dims in results]
    root = made[0] if len(made) == 1 else {2: TUPLE, 4: made}
    body.append(instruction(99, "fusion", root, [1]))
    module = {"f4": {1: list(shapes.values()), 2: root}, "f15": {1: devices[0], 2: devices[1]}}
    return proto([computation(1, "main", body, 99)], f1=name, **module)


def run_of(
    folder: Path, *programs: tuple[bytes, int], stages: tuple[tuple[str, int, int], ...] = ()
) -> Trace:
    """A TPU that runs programs, each for some µs, and a host with pipelines: (stage, its root iterator, its
    batch size, 0 for a stage that makes none).
    """
    space = xspace_class()()
    host = PlaneWriter(space, "/host:CPU")
    thread = host.line("main", 1, 0)
    depth: dict[int, int] = {}
    for i, (stage, root, size) in enumerate(stages):
        level = depth[root] = depth.get(root, -1) + 1
        stats: dict[str, Any] = {"id": 100 * root + i, "parent_id": 0 if not level else 100 * root + i - 1}
        stats |= {"batch_size": str(size)} if size else {}
        host.event(thread, stage, (1000 * root + 10 * level) * US, (500 - 20 * level) * US, stats)
    plane = PlaneWriter(space, "/device:TPU:0")
    line = plane.line("XLA Ops", 1, 0)
    for number, (_, time_us) in enumerate(programs, 7):
        name = f"%fusion.99 = {number}"
        plane.metadata(
            name, {"program_id": number, "symbol_id": 3, "hlo_category": "loop fusion"}, "fusion.99"
        )
        plane.event(line, name, 1000 * number * US, time_us * US)
    metadata = PlaneWriter(space, "/host:metadata")
    for number, (data, _) in enumerate(programs, 7):
        metadata.metadata(f"jit_p{number}({number})", {"Hlo Proto": data})
    run = write_run(folder / "run", {"tpu": bytes(space.SerializeToString())})
    return Session(str(run), cache=False).trace("tpu")


TRAIN = {"p['w']": (256, 512), "p['b']": (512,), "images": (384, 256), "labels": (384,)}
STATE = [(256, 512), (512,), ()]


def of_program(folder: Path, *args: Any, **more: Any) -> BatchSize:
    return batch_size(run_of(folder, (program("jit_f", *args, **more), 10)))


def test_training_by_the_parameters_that_are_no_results(tmp_path: Path) -> None:
    found = of_program(tmp_path, TRAIN, STATE)
    assert (found.value, found.per) == (384, "")
    assert found.how == "the first dimension of `images` and `labels` in `jit_f`"


def test_keys_and_scalars_are_no_batch(tmp_path: Path) -> None:
    inputs = {**TRAIN, "key": (2,), "rate": (), "weights": (384, 1)}
    found = of_program(tmp_path, inputs, STATE, codes={"key": 8})
    assert found.value == 384
    assert "and others" in found.how
    numbers = of_program(tmp_path / "numbers", inputs, STATE)  # two numbers that are no key
    assert numbers.value == 0


def test_prediction_by_the_results(tmp_path: Path) -> None:
    inputs = {"params['head']": (64, 10), "params['conv']": (3, 3, 3, 64), "images": (16, 32, 32, 3)}
    assert of_program(tmp_path, inputs, [(16, 10)]).value == 16
    assert of_program(tmp_path / "two", inputs, [(16, 10), (16,)]).value == 16


@pytest.mark.parametrize(
    ("inputs", "results", "reason"),
    [
        ({**TRAIN, "labels": (383,)}, STATE, "different dimensions"),
        ({**TRAIN, "mask": (256,)}, STATE, "different dimensions"),
        ({"p['w']": (256, 512), "tokens": (32, 128)}, [(256, 512)], "only one input"),
        ({"w": (5, 5), "v": (7,)}, [(7,), (5, 5)], "none is a batch"),
        # Gradients have the shapes of what they update.
        ({"p": (512, 4), "q": (512,), "dp": (512, 4), "dq": (512,)}, [(512, 4), (512,)], "none is a batch"),
        ({"params['w']": (64, 10), "x": (1, 64)}, [(1, 10)], "do not show"),
        ({"w": (64, 10), "x": (16, 64)}, [(16, 10)], "do not show"),  # the weights are in no container
        ({"x[0]": (64, 10), "x[1]": (16, 64)}, [(16, 10)], "do not show"),  # all in one
        ({"p['a']": (64, 10), "q['b']": (10,), "x": (16, 64)}, [(16, 10)], "do not show"),
        ({"params['w']": (64, 10), "x": (16, 64)}, [(16, 10), (3,)], "do not show"),
        ({"params['w']": (64, 10), "x": (64, 16)}, [(16, 10)], "do not show"),
        ({"a": (4, 8, 8), "b": (4, 8, 2)}, [(4, 8, 2)], "only one input"),
    ],
)
def test_doubts_leave_it_unknown(
    tmp_path: Path, inputs: dict[str, Dims], results: list[Dims], reason: str
) -> None:
    found = of_program(tmp_path, inputs, results)
    assert found.value == 0
    assert reason in found.how


def test_a_damaged_program_is_unknown(tmp_path: Path) -> None:
    found = batch_size(run_of(tmp_path, (proto([]), 10)))
    assert found.value == 0
    assert "do not show" in found.how


TILED, REPLICATED = {1: 3, 3: (4, 1), 4: (0, 1, 2, 3)}, {1: 0}
SHARDINGS = {
    "p['w']": REPLICATED,
    "p['b']": REPLICATED,
    "images": TILED,
    "labels": {1: 3, 3: (4,), 4: (0, 1, 2, 3)},
}


@pytest.mark.parametrize(
    ("devices", "shardings", "size", "per"),
    [
        ((1, 4), SHARDINGS, 4 * 384, ""),
        ((1, 4), dict.fromkeys(TRAIN, REPLICATED), 384, ""),
        ((1, 4), {**SHARDINGS, "labels": REPLICATED}, 384, "device"),
        ((1, 4), None, 384, "device"),
        ((2, 4), SHARDINGS, 8 * 384, ""),
        ((3, 1), None, 3 * 384, ""),
    ],
)
def test_devices(
    tmp_path: Path, devices: tuple[int, int], shardings: dict[str, Any] | None, size: int, per: str
) -> None:
    found = of_program(tmp_path, TRAIN, STATE, shardings, devices)
    assert (found.value, found.per) == (size, per)


def test_programs_of_the_step_count_and_must_agree(tmp_path: Path) -> None:
    other = program("jit_g", {**TRAIN, "images": (8, 256), "labels": (8,)}, STATE)
    none = program("jit_h", {"w": (5,)}, [(5,)])
    main = program("jit_f", TRAIN, STATE)
    assert batch_size(run_of(tmp_path / "a", (main, 96), (other, 4))).value == 384
    differs = batch_size(run_of(tmp_path / "b", (main, 95), (other, 5)))
    assert differs.value == 0
    assert "8, 384" in differs.how
    assert batch_size(run_of(tmp_path / "c", (none, 60), (main, 40))).value == 384


ROOT = "Iterator::Root"
ONE = ((ROOT, 1, 0), (f"{ROOT}::Prefetch", 1, 0), (f"{ROOT}::Prefetch::BatchV2", 1, 96))


def test_the_outermost_batch_of_tf_data(tmp_path: Path) -> None:
    nested = (*ONE, (f"{ROOT}::Prefetch::BatchV2::ParallelBatchV2", 1, 7))
    found = batch_size(run_of(tmp_path / "a", stages=nested))
    assert found == BatchSize(96, "host", "the stage `BatchV2` of tf.data")
    other = ((ROOT, 2, 0), (f"{ROOT}::MapAndBatch", 2, 12))
    differs = batch_size(run_of(tmp_path / "b", stages=(*ONE, *other)))
    assert differs.value == 0
    assert "12, 96" in differs.how
    divided = batch_size(run_of(tmp_path / "c", stages=(*ONE, (f"{ROOT}::RebatchV2", 3, 0))))
    assert divided.value == 0
    assert "Rebatch" in divided.how
    none = ((ROOT, 1, 0), (f"{ROOT}::Shuffle", 1, 0))
    assert batch_size(run_of(tmp_path / "d", stages=none)) == UNKNOWN


@pytest.mark.parametrize(("size", "expected"), [(96, 384), (384, 384), (100, 0), (768, 0)])
def test_a_program_that_tf_data_contradicts(tmp_path: Path, size: int, expected: int) -> None:
    stages = (*ONE[:2], (f"{ROOT}::Prefetch::BatchV2", 1, size))
    found = batch_size(run_of(tmp_path, (program("jit_f", TRAIN, STATE), 10), stages=stages))
    assert found.value == expected
    assert expected or (f"{size}" in found.how and "384" in found.how)


def test_tf_data_where_the_program_does_not_show_it(tmp_path: Path) -> None:
    unclear = program("jit_f", {"w": (5,)}, [(5,)])
    assert batch_size(run_of(tmp_path, (unclear, 10), stages=ONE)).value == 96


CONV, LINEAR = [[32, 3, 8, 8], [4, 3, 1, 1]], [[7, 16], [16, 16]]


def torch(folder: Path, *calls: tuple[str, Any]) -> BatchSize:
    where = {"pid": 1, "tid": 1}
    events = [
        x("cpu_op", name, 10.0 * i, 5, where, **({"Input Dims": dims} if dims is not None else {}))
        for i, (name, dims) in enumerate(calls)
    ]
    return batch_size(opened(folder, {"traceEvents": events, "schemaVersion": 1}))


def test_pytorch_by_the_inputs_of_its_operations(tmp_path: Path) -> None:
    embedding, attention = [[1000, 16], [32, 9]], [[32, 4, 9, 8], [32, 4, 9, 8], [32, 4, 9, 8]]
    found = torch(
        tmp_path,
        ("aten::conv2d", CONV),
        ("aten::linear", LINEAR),
        ("aten::embedding", embedding),
        ("aten::scaled_dot_product_attention", attention),
    )
    assert (found.value, found.per) == (32, "process")
    assert "`aten::conv2d` and `aten::embedding` and" in found.how


@pytest.mark.parametrize(
    "calls",
    [
        [("aten::linear", LINEAR)],
        [("aten::conv2d", None), ("aten::conv2d", CONV)],  # shapes were not recorded
        [("aten::conv2d", [[3, 8, 8], [4, 3, 1, 1]])],  # one example, without a batch
        [("aten::conv2d", [])],
        [("aten::conv2d", "[" * 100_000)],
        [("aten::conv2d", [["a", 1, 2, 3]])],
        [("aten::conv2d", [[0, 1, 2, 3]])],
        [("aten::embedding", [[1000, 16], [32]])],
    ],
)
def test_pytorch_without_shapes_that_show_it(tmp_path: Path, calls: list[tuple[str, Any]]) -> None:
    assert torch(tmp_path, *calls) == UNKNOWN


def test_pytorch_with_different_sizes(tmp_path: Path) -> None:
    found = torch(tmp_path, ("aten::conv2d", CONV), ("aten::embedding", [[9, 9], [31, 9]]))
    assert found.value == 0
    assert "31, 32" in found.how


def test_a_trace_without_any_shapes() -> None:
    assert batch_size(drawing("main [x ]")) == UNKNOWN


def stated(script: str) -> int:
    """The batch size that a capture script sets."""
    text = (DEMO / script).read_text()
    match = re.search(r"(?:BATCH_SIZE|BATCH) = (\d+)|\.batch\((\d+)", text)
    assert match
    return int(match[1] or match[2])


@pytest.mark.parametrize(
    ("run", "script"),
    [("jax_train", "capture_jax_train.py"), ("keras_slow_input/train", "capture_keras.py")],
)
def test_recorded_runs_by_their_scripts(run: str, script: str) -> None:
    (path,) = (DEMO / run / "plugins" / "profile").iterdir()
    session = Session(str(path), cache=False)
    assert batch_size(session.trace(session.hosts[0])).value == stated(script)


def test_two_sizes_of_a_prediction_loop_are_told() -> None:
    (path,) = (DEMO / "jax_predict" / "plugins" / "profile").iterdir()
    session = Session(str(path), cache=False)
    found = batch_size(session.trace(session.hosts[0]))
    assert found.value == 0
    assert "4, 16" in found.how


@pytest.mark.slow
@pytest.mark.skipif(not CORPUS, reason="TPUPROF_CORPUS is not set")
def test_recorded_pytorch_runs_read_plainly() -> None:
    """Image models: the first dimension of each convolution in the file."""
    for name in (
        "kineto_samples/resnet50_num_workers_0/worker0.1623143089861.pt.trace.json.gz",
        "tracelens_torch/traces/mi300/resnet_act_checkpoint.json.gz",
    ):
        path = Path(CORPUS) / name
        events, _ = loaded(path)
        sizes = {each["args"]["Input Dims"][0][0] for each in events if each.get("name") == "aten::conv2d"}
        session = Session(str(path), cache=False)
        assert {batch_size(session.trace(session.hosts[0])).value} == sizes


RANKS = {
    "aten::conv1d": (0, 3),
    "aten::conv2d": (0, 4),
    "aten::conv3d": (0, 5),
    "aten::embedding": (1, 2),
    "aten::scaled_dot_product_attention": (0, 4),
}


@pytest.mark.parametrize("name", RANKS)
def test_the_batch_is_the_first_dimension_of_an_input_of_its_rank(tmp_path: Path, name: str) -> None:
    """With one dimension more or fewer the first one is another."""
    position, rank = RANKS[name]
    for n_dims in (rank - 1, rank, rank + 1):
        dims = [[9] * 7, [9] * 7]
        dims[position] = [24, *[3] * (n_dims - 1)]
        found = torch(tmp_path, (name, dims))
        assert (found.value == 24) is (n_dims == rank)
