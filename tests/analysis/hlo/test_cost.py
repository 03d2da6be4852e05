"""The cost model against XLA's own analysis of programs that XLA compiled, and on hand-made ones with an
obvious answer.
"""

from __future__ import annotations

import gc
import subprocess
import weakref
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tb_tpuprof.analysis.hlo import work as hlo_work
from tb_tpuprof.analysis.hlo.cost import module_costs
from tb_tpuprof.analysis.hlo.flops import valid_positions
from tb_tpuprof.ingest.hlo.module import decode_hlo
from tb_tpuprof.session import Session
from tb_tpuprof.trace.hlo_attributes import WindowDim
from tests.analysis.hlo.programs import Recorded, recorded
from tests.golden_files import demo_runs
from tests.ingest.hlo_protos import array, computation, instruction, proto
from tests.integration.jobs import environment, python_with

CALL = "XLA gives up on custom calls (-1, which spoils its sum); this project knows some by name"
PARTS = (
    "of a table that a fusion gathers from XLA counts the whole; this project what is gathered, as XLA "
    "does outside of fusions"
)
DONE = "XLA counts the data once more when an asynchronous operation is done; nothing is moved then"
# (program, quantity) → why this project says something else.
DIFFERENT = {
    ("top_k", "flops"): CALL,
    ("top_k", "bytes_accessed"): CALL,
    ("cholesky", "flops"): CALL,
    ("cholesky", "bytes_accessed"): CALL,
    ("triangular_solve", "flops"): CALL,
    ("triangular_solve", "bytes_accessed"): CALL,
    ("gather", "bytes_accessed"): PARTS,
    ("embedding_grad", "bytes_accessed"): PARTS,
    ("op async-ag", "bytes_accessed"): DONE,
    ("op async-ar", "bytes_accessed"): DONE,
    ("op async-cp", "bytes_accessed"): DONE,
    ("op copy-start", "bytes_accessed"): DONE,
    ("op send-recv", "bytes_accessed"): DONE,
    ("op async-start", "bytes_accessed"): DONE,
    ("op opt-barrier", "bytes_accessed"): "a barrier for the compiler moves nothing",
    ("op topk", "flops"): "XLA has no formula; one comparison for each element",
    ("op ragged-dot", "flops"): "XLA leaves out the rows; each row meets one group",
    ("op fused-broadcast-twice", "bytes_accessed"): "XLA counts a parameter that is broadcast once more; it "
    "is read once",
}
MAKE_PROGRAMS = Path(__file__).resolve().parents[2] / "data" / "hlo" / "make_programs.py"
QUANTITIES = ("flops", "transcendentals", "bytes_accessed")


def differences(program: Recorded) -> list[str]:
    """What of a program this project says otherwise than XLA beyond the tolerance and the list, or equally
    against the list.
    """
    module = program.module()
    assert module.info.n_damaged == 0
    costs = module_costs(module, loops="once")
    tolerance = 0.01 if program.kind in ("matmul", "conv") else 0.1
    found = []
    for quantity, mine in zip(
        QUANTITIES, (costs.total_flops, costs.total_transcendentals, costs.total_bytes), strict=True
    ):
        theirs = getattr(program, quantity)
        if (program.name, quantity) in DIFFERENT:
            found += (
                [f"{quantity} of {program.name} is equal: take it from the list"] if mine == theirs else []
            )
        elif mine != pytest.approx(theirs, rel=tolerance, abs=0.5):
            found.append(f"{quantity} of {program.name}: {mine:g} for XLA's {theirs:g}")
    return found


@pytest.mark.parametrize("name", list(recorded()))
def test_equals_xla(name: str) -> None:
    assert differences(recorded()[name]) == []


@pytest.mark.slow
def test_equals_what_xla_says_now(tmp_path: Path) -> None:
    """The same of programs that JAX compiles here and now."""
    output = tmp_path / "programs.json.gz"
    command = [python_with("jax"), str(MAKE_PROGRAMS), str(output)]
    done = subprocess.run(
        command, env=environment(), capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    compiled = recorded(output)
    kinds = [program.kind for program in compiled.values()]
    assert kinds.count("matmul") + kinds.count("conv") >= 20
    assert kinds.count("other") >= 30
    assert [text for program in compiled.values() for text in differences(program)] == []


def test_a_cost_that_differs_is_told() -> None:
    program = recorded()["matmul"]
    wrong = replace(program, flops=program.flops * 1.02)
    assert differences(wrong) == [f"flops of matmul: {program.flops:g} for XLA's {wrong.flops:g}"]
    listed = replace(
        recorded()["op ragged-dot"],
        flops=module_costs(recorded()["op ragged-dot"].module(), loops="once").total_flops,
    )
    assert differences(listed) == ["flops of op ragged-dot is equal: take it from the list"]


def test_enough_programs_are_compared() -> None:
    kinds = [program.kind for program in recorded().values()]
    assert (
        kinds.count("matmul") + kinds.count("conv") >= 20,
        kinds.count("other") >= 30,
        kinds.count("op") >= 80,
    ) == (True, True, True)
    different = [name for name, _ in DIFFERENT if not name.startswith("op ")]
    assert len(set(different)) <= 5


def test_nothing_is_negative_and_parts_sum_to_the_whole() -> None:
    for program in recorded().values():
        module = program.module()
        costs = module_costs(module)
        entry = module.rows_of(module.info.entry)
        for column, total in (
            (costs.flops, costs.total_flops),
            (costs.transcendentals, costs.total_transcendentals),
            (costs.bytes_accessed, costs.total_bytes),
        ):
            assert (column >= 0).all()
            assert column[entry.start : entry.stop].sum() == pytest.approx(total)


def test_loops_count_all_their_trips() -> None:
    module = recorded()["while_known"].module()
    once, all_trips = module_costs(module, loops="once"), module_costs(module)
    assert list(all_trips.trips.values()) == [10]
    assert all_trips.total_flops == pytest.approx(10 * 2 * 64**3, rel=0.001)
    assert once.total_flops == pytest.approx(2 * 64**3, rel=0.001)
    assert all_trips.is_known.all()
    unknown = recorded()["while_unknown"].module()
    assert (
        not module_costs(unknown)
        .is_known[unknown.info.entry and list(unknown.rows_of(unknown.info.entry))]
        .all()
    )


@pytest.mark.parametrize("seed", range(300))
def test_positions_of_a_window(seed: int) -> None:
    draw = np.random.default_rng(seed)
    size, stride, dilation, base, n_in = (int(n) for n in draw.integers(1, 6, 5))
    low, high = (int(n) for n in draw.integers(-4, 8, 2))
    n_out = int(draw.integers(0, 12))
    dim = WindowDim(size, stride, low, high, dilation, base, False)
    places = (o * stride - low + k * dilation for o in range(n_out) for k in range(size))
    expected = sum(place % base == 0 and 0 <= place // base < n_in for place in places)
    assert valid_positions(dim, n_in, n_out) == expected


def test_positions_that_never_move_and_windows_too_large_to_walk() -> None:
    for low, base, expected in ((0, 1, 3 * 7), (1, 1, 2 * 7), (0, 2, 2 * 7), (-4, 1, 0), (-3, 1, 1 * 7)):
        standing = WindowDim(3, 0, low, 0, 1, base, False)  # 7 outputs at the same place, an input of 4
        assert valid_positions(standing, 4, 7) == expected
    huge = 2**27
    assert valid_positions(WindowDim(huge, 1, 0, 0, 1, 1, False), huge, 3 * huge) == 3 * huge * huge


def call(target: str, shapes: list[object], result: object, config: str = "", **more: object) -> bytes:
    """A program of one custom call."""
    entry = [instruction(i + 1, "parameter", shape, f9=i) for i, shape in enumerate(shapes)]
    entry.append(
        instruction(99, "custom-call", result, range(1, len(shapes) + 1), f28=target, f43=config, **more)
    )
    return proto([computation(1, "main", entry, 99)])


def pair(first: object, second: object) -> dict[int, object]:
    return {2: 13, 4: [first, second]}


GEMM = '{"gemm_backend_config":{"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["0"]}}}'
FMHA = '{"cudnn_fmha_backend_config":{"intermediate_tensor_shape":{"dimensions":["2","4","16","32"]}}}'
MOSAIC = '{"custom_call_config":{"body":"x","cost_estimate":{"flops":"123","transcendentals":7,"bytes_accessed":"456"}}}'
WORKSPACE = array(1024, code=3)


@pytest.mark.parametrize(
    ("data", "flops"),
    [
        (
            call("__cublas$gemm", [array(8, 32), array(32, 16)], pair(array(8, 16), WORKSPACE), GEMM),
            2 * 8 * 32 * 16,
        ),
        (
            call("__cublas$lt$matmul", [array(8, 32), array(32, 16), array(16)], array(8, 16), GEMM),
            2 * 8 * 32 * 16,
        ),
        (call("__onednn$matmul", [array(3, 8, 32), array(3, 32, 16)], array(3, 8, 16)), 3 * 2 * 8 * 32 * 16),
        (
            call("__cudnn$fmhaSoftmax", [array(2, 16, 4, 64)] * 3, array(2, 16, 4, 64), FMHA),
            4 * 2 * 4 * 16 * 32 * 64,
        ),
        (
            call("__cudnn$fmhaSoftmaxBackward", [array(2, 16, 4, 64)] * 3, array(2, 16, 4, 64), FMHA),
            10 * 2 * 4 * 16 * 32 * 64,
        ),
        (call("tpu_custom_call", [array(8)], array(8), MOSAIC), 123),
        (call("lapack_spotrf_ffi", [array(2, 30, 30)], array(2, 30, 30)), 2 * 30**3 / 3),
        (call("TopK", [array(4, 100)], pair(array(4, 5), array(4, 5, code=4))), 400),
        (call("Sharding", [array(8)], array(8)), 0),
    ],
)
def test_custom_calls_known_by_name(data: bytes, flops: float) -> None:
    module = decode_hlo(data, "call")
    costs = module_costs(module)
    row = module.find("custom-call.99")
    assert costs.flops[row] == pytest.approx(flops)
    assert costs.is_known.all()


def test_a_kernel_may_state_its_own_cost() -> None:
    costs = module_costs(decode_hlo(call("tpu_custom_call", [array(8)], array(8), MOSAIC), "call"))
    assert (costs.total_flops, costs.total_transcendentals, costs.total_bytes) == (123, 7, 456)


@pytest.mark.parametrize(
    "config",
    [
        "",
        "{",
        "[1]",
        '{"gemm_backend_config":7}',
        '{"cost_estimate":{"flops":"x"}}',
        "{" * 100_000,
        b"\xff\xfe",
    ],
)
def test_strange_configurations(config: str) -> None:
    costs = module_costs(decode_hlo(call("anything", [array(8)], array(8), config), "call"))
    assert costs.total_flops == 0
    assert costs.is_known.all() == ("cost_estimate" in str(config))


CONVOLUTION = {7: 0, 8: 1, 11: (2, 3), 3: 1, 4: 0, 6: (2, 3), 9: 0, 10: 1, 12: (2, 3)}
WINDOW = {1: [{1: 3, 2: 1, 3: 1, 4: 1, 5: 1, 6: 1}] * 2}


def test_convolutions_of_a_library_and_their_gradients() -> None:
    image, kernel, out = array(2, 4, 8, 8), array(16, 4, 3, 3), array(2, 16, 8, 8)
    expected = 2 * 4 * 16 * 2 * (3 * 8 - 2) ** 2
    for target, operands, result in (
        ("__cudnn$convForward", [image, kernel], out),
        ("__cudnn$convBackwardInput", [out, kernel], image),
        ("__cudnn$convBackwardFilter", [image, out], kernel),
    ):
        data = call(target, operands, pair(result, WORKSPACE), f16=CONVOLUTION, f15=WINDOW)
        assert module_costs(decode_hlo(data, "conv")).total_flops == expected


def test_calls_that_lead_back_are_cut() -> None:
    shape = array(4)
    bodies = [
        computation(
            2, "a", [instruction(5, "call", shape, f38=(3,)), instruction(6, "add", shape, [5, 5])], 6
        ),
        computation(3, "b", [instruction(7, "fusion", shape, f38=(2,), f11="kLoop")], 7),
        computation(
            1,
            "main",
            [instruction(8, "while", shape, f38=(2, 3)), instruction(9, "map", shape, [8, 9], f38=(1,))],
            9,
        ),
    ]
    costs = module_costs(decode_hlo(proto(bodies), "cyclic"))
    assert np.isfinite(costs.total_flops)
    assert not costs.is_known.all()


def test_ten_thousand_calls_within_each_other() -> None:
    shape, n = array(4), 10_000
    bodies = [computation(k, f"c{k}", [instruction(k, "call", shape, f38=(k + 1,))], k) for k in range(1, n)]
    bodies.append(computation(n, "last", [instruction(n, "add", shape)], n))
    assert module_costs(decode_hlo(proto(bodies), "deep")).total_flops == 4


def test_sizes_beyond_all_bounds() -> None:
    huge, negative = array(2**62, 2**62), array(-4, 8)
    entry = [
        instruction(1, "parameter", huge),
        instruction(2, "add", huge, [1, 1]),
        instruction(3, "exponential", negative, [2]),
    ]
    costs = module_costs(decode_hlo(proto([computation(1, "main", entry, 3)]), "huge"))
    assert np.isfinite(costs.total_flops)
    assert (costs.bytes_accessed >= 0).all()


def test_costs_of_a_program_are_computed_once_and_go_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(
        hlo_work, "module_costs", lambda module: asked.append(module.info.name) or module_costs(module)
    )
    session = Session(str(demo_runs()["jax_train"]), cache=False)
    trace = session.trace(session.hosts[0])
    number = trace.programs[0].program_id
    first, again = (hlo_work.ProgramCosts(trace).costs(number) for _ in range(2))
    assert first is again
    assert len(asked) == 1
    gone = weakref.ref(first)
    del first, again, trace, session
    gc.collect()
    assert gone() is None
