"""Products of operands with 8 bits: which they are, and that they compare with the peak at 8 bits."""

from __future__ import annotations

from typing import Any

import pytest

from tb_tpuprof.analysis.device.precisions import FP8, INT8
from tb_tpuprof.analysis.hlo.product_precisions import PRECISIONS, product_precisions
from tb_tpuprof.analysis.ops.hlo import hlo_ops, merge_hlo_ops
from tb_tpuprof.analysis.ops.roofline import rates, roofs
from tb_tpuprof.analysis.ops.stats import op_stats
from tb_tpuprof.trace.trace import Trace
from tests.builders import DrawnEvent, DrawnPlane, build, event
from tests.ingest.hlo_protos import array, computation, instruction, proto

S8, U8, S32, BF16, F8E5M2, F8E4M3 = 2, 6, 4, 16, 19, 20
N = 1024  # a product of two N × N matrices takes 2 N³ FLOPs
DOTS = {1: (1,), 2: (0,)}


def square(code: int) -> dict[int, Any]:
    return array(N, N, code=code)


def body(key: int, *pairs: tuple[int, int]) -> dict[int, Any]:
    """A computation with a product of each pair of types."""
    rows = []
    for i, pair in enumerate(pairs):
        first = key + 3 * i + 1
        rows += [instruction(first + side, "parameter", square(code)) for side, code in enumerate(pair)]
        rows.append(instruction(first + 2, "dot", square(BF16), [first, first + 1], f30=DOTS))
    return computation(key, f"body{key}", rows, key + 3)


def program() -> bytes:
    types = {1: S8, 2: U8, 3: BF16, 4: F8E5M2, 5: F8E4M3}
    entry = [instruction(key, "parameter", square(code)) for key, code in types.items()]
    entry += [
        instruction(11, "dot", square(S32), [1, 2], f30=DOTS),
        instruction(12, "dot", square(BF16), [1, 3], f30=DOTS),
        instruction(13, "dot", square(BF16), [3, 3], f30=DOTS),
        instruction(14, "add", square(S8), [1, 1]),
        instruction(15, "fusion", square(BF16), [4, 5], f38=(100,)),
        instruction(16, "fusion", square(BF16), [4, 5, 3], f38=(200,)),
        instruction(17, "fusion", square(BF16), [1], f38=(300,)),
        instruction(18, "custom-call", square(BF16), [5, 4], f28="__cublas$lt$matmul$f8"),
        instruction(19, "custom-call", square(BF16), [5, 4], f28="sort"),
    ]
    bodies = [
        body(100, (F8E5M2, F8E4M3), (F8E4M3, F8E4M3)),
        body(200, (F8E5M2, F8E4M3), (BF16, BF16)),
        computation(300, "body300", [instruction(301, "parameter", square(S8))], 301),
    ]
    return proto([*bodies, computation(1, "main", entry, 19)])


def trace(lengths: dict[str, int], device: str = "NVIDIA H100 80GB HBM3") -> Trace:
    """Kernels of these instructions, lengths in µs."""
    metadata = DrawnPlane(
        "/host:metadata",
        {"x": [DrawnEvent("module(7)", 0, 0)]},
        metadata_stats={"module(7)": {"Hlo Proto": program()}},
    )
    kernels = [
        event(f"kernel{i}", 100 * i, length, correlation_id=i + 1, hlo_op=name, program_id=7)
        for i, (name, length) in enumerate(lengths.items())
    ]
    stats = {"gpu_device_name": device}
    return build([metadata, DrawnPlane("/device:GPU:0", {"Stream #1": kernels}, stats)])


def test_all_products_of_an_instruction_count() -> None:
    module = trace({}).programs.module(7)
    assert module is not None
    found = product_precisions(module)
    by_name = {module.name(row): PRECISIONS[code] for row, code in enumerate(found.tolist())}
    assert {name: precision for name, precision in by_name.items() if precision} == {
        "dot.11": INT8,
        "fusion.15": FP8,
        "custom-call.18": FP8,
        **{f"dot.{key}": FP8 for key in (103, 106, 203)},
    }


# µs that a product takes on an H100 at its peak of 989.5 TFLOP/s at 16 bits, and less.
AT_PEAK = 2 * N**3 / 989.5e6


@pytest.mark.parametrize(("device", "factor"), [("NVIDIA H100 80GB HBM3", 2), ("Tesla V100-SXM2-16GB", 1)])
def test_eight_bits_compare_with_the_peak_at_eight_bits(device: str, factor: int) -> None:
    """A V100 has no units for 8 bits: the peak is that of 16 bits. Lengths are 16 products' each."""
    made = trace({"dot.11": 30, "fusion.15": 40, "dot.13": 50, "dot.12": 60}, device)
    ops = hlo_ops(made)
    n_products = {"dot.11": 1, "fusion.15": 2, "dot.13": 1, "dot.12": 1}
    for row in range(len(ops)):
        flops = n_products[ops.name[row]] * 2 * N**3
        narrow = factor if ops.name[row] in ("dot.11", "fusion.15") else 1
        assert ops.work.flops[row] == flops
        assert ops.work.roof_flops[row] == flops / narrow
    compiled = op_stats(made).compiled
    assert compiled.amounts("roof_flops").sum() == ops.work.roof_flops.sum()
    merged = merge_hlo_ops([ops, ops])
    assert merged.work.roof_flops.sum() == 2 * ops.work.roof_flops.sum()


def test_faster_than_at_sixteen_bits_is_possible() -> None:
    """2.17 µs are the least at 16 bits, 1.09 µs at 8; picoseconds are whole µs here, so in 2 µs."""
    made = trace({"dot.11": 2, "fusion.15": 3, "dot.13": 2})
    ops, peaks = hlo_ops(made), roofs(made)
    shares = dict(
        zip(
            [ops.name[row] for row in range(len(ops))],
            rates(ops.work, ops.work_ps, peaks).flops_fraction.tolist(),
            strict=True,
        )
    )
    assert shares["dot.11"] == pytest.approx(AT_PEAK / 2 / 2)
    assert shares["fusion.15"] == pytest.approx(2 * AT_PEAK / 2 / 3)
    assert shares["dot.13"] != shares["dot.13"]  # unknown: more than possible
