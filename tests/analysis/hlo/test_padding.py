"""Padding by dimension and filling of the matrix unit, on modules made by hand."""

from __future__ import annotations

import pytest

from tb_tpuprof.analysis.hlo.padding import PaddedDim, Product, padded_dims, unit_side
from tb_tpuprof.trace.hlo_shape import Layout, Shape

F32, TUPLE = 11, 13
TILED = Layout((1, 0), ((8, 128),))


def test_a_batch_of_16_on_128_lanes_wastes_seven_of_eight() -> None:
    shape = Shape(F32, (1024, 16), layout=TILED)
    assert padded_dims("result", shape) == [PaddedDim("result", 1, 16, 128)]
    assert padded_dims("result", shape)[0].waste == 0.875


def test_arrays_of_a_tuple_are_numbered_and_untiled_ones_have_no_padding() -> None:
    inner = Shape(F32, (3, 128), layout=TILED)
    assert padded_dims("x", Shape(TUPLE, elements=(inner, Shape(F32, (5,))))) == [PaddedDim("x[0]", 0, 3, 8)]


@pytest.mark.parametrize(
    ("device", "side"), [("TPU v5 lite", 128), ("TPU v4", 128), ("TPU v6 lite", 256), ("TPU7x", 256)]
)
def test_sides_of_matrix_units(device: str, side: int) -> None:
    assert unit_side(device, "TPU") == side
    assert unit_side(device, "GPU") == 0


def test_fill_is_the_share_of_multiplications_asked_for() -> None:
    product = Product("dot.1", 1, 16, 64, 100, (16, 128, 128))
    assert product.fill == pytest.approx(0.5 * 100 / 128)
    assert product.text == "contracted 64 padded to 128, columns 100 padded to 128"
    assert Product("dot.2", 1, 8, 128, 128, (8, 128, 128)).text == "no padding"


def test_waste_is_the_padding_s_share_and_none_of_a_dimension_without_elements() -> None:
    assert PaddedDim("lhs", 1, 96, 128).waste == 0.25
    assert PaddedDim("rhs", 0, 8, 8).waste == 0
    assert PaddedDim("out", 2, 0, 0).waste == 0
