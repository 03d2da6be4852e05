"""The text of HLO modules against XLA's own, line by line, and constants, shardings and groups of
every kind.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from tb_tpuprof.analysis.hlo.text.attributes import escaped, replica_groups_text, sharding_text, window_text
from tb_tpuprof.analysis.hlo.text.literals import literal_text, small_float
from tb_tpuprof.analysis.hlo.text.printer import (
    LONG,
    SHORT,
    expression_text,
    instruction_text,
    module_text,
    printed_order,
)
from tb_tpuprof.ingest.hlo.module import decode_hlo
from tb_tpuprof.trace.hlo_attributes import Iota, Literal, ReplicaGroups, Sharding, WindowDim
from tb_tpuprof.trace.hlo_shape import Shape
from tests.analysis.hlo.programs import recorded
from tests.ingest.hlo_protos import array, computation, instruction, proto, small_proto


def comparable(text: str) -> list[str]:
    """Lines without what differs on purpose.

    XLA numbers source stacks anew when it reads a module; this project keeps the file's numbers. How many
    devices a program runs on XLA takes from its configuration, which a serialized module lacks; this project
    from the device assignment.
    """
    text = re.sub(r"(?ms)^FileNames.*?^StackFrames\n.*?\n\n", "", text)
    text = re.sub(r", (num_partitions|replica_count)=\d+", "", text)
    text = re.sub(r" ?stack_frame_id=\d+", "", text).replace(", metadata={}", "")
    return [line for line in text.splitlines() if line.strip()]


@pytest.mark.parametrize("name", list(recorded()))
def test_equals_xla(name: str) -> None:
    program = recorded()[name]
    module = program.module()
    assert comparable("\n".join(module_text(module, LONG))) == comparable(program.long_text)
    assert comparable("\n".join(module_text(module, SHORT))) == comparable(program.short_text)


@pytest.mark.parametrize("name", list(recorded()))
def test_operands_may_have_their_shapes(name: str) -> None:
    """Each as its own line states it, and nothing else changes."""
    module = recorded()[name].module()
    plain = replace(LONG, operand_numbers=False, metadata=False)
    for row in range(module.n_instructions):
        with_shapes = instruction_text(module, row, replace(plain, operand_shapes=True))
        operands = (
            [int(i) for i in module.operands[row]]
            if module.opcode(row) not in ("parameter", "constant")
            else []
        )
        for operand in operands:
            text = f"{module.shape(operand).text()} %{module.name(operand)}"
            assert (
                instruction_text(module, operand, plain)
                .partition(" = ")[2]
                .startswith(f"{module.shape(operand).text()} ")
            )
            assert text in with_shapes
            with_shapes = with_shapes.replace(text, f"%{module.name(operand)}", 1)
        assert with_shapes == instruction_text(module, row, plain)


def test_source_stacks_are_those_of_xla_but_for_their_numbers() -> None:
    """The same places, in whatever order."""
    for program in recorded().values():
        ours, theirs = (
            sorted(re.findall(r'^\d+ "(.*)"$', text, re.M))
            for text in ("\n".join(module_text(program.module())), program.long_text)
        )
        assert ours == theirs, program.name


def test_lines_of_the_small_program() -> None:
    module = decode_hlo(small_proto(), "small")
    assert instruction_text(module, module.find("dot.3")) == (
        "%dot.3 = f32[8,16]{1,0} dot(%parameter.1, %parameter.2), lhs_contracting_dims={1}, "
        "rhs_contracting_dims={0}, "
        'metadata={op_type="dot_general" op_name="jit(f)/dot" source_file="a.py" source_line=3 stack_frame_id=2}'
    )
    assert expression_text(module, module.find("fusion.4"), SHORT) == (
        'f32[8,16]{1,0} fusion(dot.3), kind=kLoop, calls=body, backend_config={"a":"1"}'
    )
    text = "\n".join(module_text(module))
    assert "input_output_alias={ {}: (1, {}, must-alias) }" in text
    assert "replica_count=2, num_partitions=4" in text
    assert "ENTRY %main (parameter.1: f32[8,4], parameter.2: f32[4,16]) -> f32[8,16] {" in text


def test_groups_shardings_windows() -> None:
    assert replica_groups_text(ReplicaGroups(((0, 1), (2, 3)))) == "{{0,1},{2,3}}"
    assert replica_groups_text(ReplicaGroups(iota=Iota((2, 4), (4, 2), (1, 0)))) == "[2,4]<=[4,2]T(1,0)"
    assert replica_groups_text(ReplicaGroups(iota=Iota((1, 8), (8,), (0,)))) == "[1,8]<=[8]"
    assert sharding_text(Sharding(0)) == "{replicated}"
    assert sharding_text(Sharding(1, devices=(3,))) == "{maximal device=3}"
    assert sharding_text(Sharding(2, elements=(Sharding(0), Sharding(4)))) == "{{replicated}, {manual}}"
    tiled = Sharding(3, (2, 1, 2), is_last_dim_replicated=True, iota_reshape=(4,), iota_permutation=(0,))
    assert sharding_text(tiled) == "{devices=[2,1,2]<=[4] last_tile_dim_replicate}"
    assert sharding_text(Sharding(3, (2,), (1, 0))) == "{devices=[2]1,0}"
    assert window_text([WindowDim(3, 1, 1, 1, 1, 1, False), WindowDim(5, 2, 0, 0, 1, 3, True)]) == (
        "size=3x5 stride=1x2 pad=1_1x0_0 lhs_dilate=1x3 rhs_reversal=0x1"
    )
    assert escaped('a"b\n\x01é') == 'a\\"b\\n\\001\\303\\251'


def test_constants() -> None:
    floats = np.array([[1.0, 0.1], [float("inf"), -1e-5]], np.float32)
    assert literal_text(Literal(Shape(11, (2, 2)), floats), 10) == "{ { 1, 0.1 }, { inf, -1e-05 } }"
    assert literal_text(Literal(Shape(11, (2, 2)), floats), 3) == "{...}"
    assert literal_text(Literal(Shape(1, (2,)), np.array([True, False])), 10) == "{1, 0}"
    assert literal_text(Literal(Shape(1), np.array(True)), 10) == "true"
    assert literal_text(Literal(Shape(16, (1,)), np.array([0x3F80], np.uint16)), 10) == "{1}"
    doubles = np.array([1 / 3, 0.1, -1e300])
    assert literal_text(Literal(Shape(12, (3,)), doubles), 10) == "{0.33333333333333331, 0.1, -1e+300}"
    thirds = np.array([1 / 3, 0.25], np.float32)
    assert literal_text(Literal(Shape(11, (2,)), thirds), 10) == "{0.333333343, 0.25}"
    assert literal_text(Literal(Shape(15), np.array(1 + 2j, np.complex64)), 10) == "(1, 2)"


@pytest.mark.parametrize(
    ("code", "bits", "value"),
    [
        (19, 0x3C, 1.0),
        (20, 0x38, 1.0),
        (20, 0x7E, 448.0),
        (28, 0x77, 240.0),
        (29, 0x30, 1.0),
        (25, 0x40, 1.0),
        (24, 0x40, 1.0),
        (23, 0x58, 1.0),
        (32, 0x2, 1.0),
        (32, 0x7, 6.0),
        (32, 0x1, 0.5),
        (33, 127, 1.0),
        (19, 0x01, 2.0**-16),
    ],
)
def test_small_floats(code: int, bits: int, value: float) -> None:
    assert small_float(bits, code) == value


@pytest.mark.slow
def test_hostile_modules_are_written_all_the_same() -> None:
    shape = array(2)
    bodies = [
        computation(
            2, "a", [instruction(5, "call", shape, f38=(3,)), instruction(6, "async-done", shape, [6])], 6
        ),
        computation(3, "b", [instruction(7, "unheard-of", shape, [77], f38=(2, 99))], 7),
    ]
    module = decode_hlo(proto(bodies), "cyclic")
    assert sorted(printed_order(module)) == [0, 1]
    text = "\n".join(module_text(module))
    assert "unheard-of(?), called_computations={%a, ?}" in text
    chain = [
        computation(k, f"c{k}", [instruction(k, "call", shape, f38=(k + 1,))], k) for k in range(1, 20_000)
    ]
    assert sum(1 for _ in module_text(decode_hlo(proto(chain), "deep"))) > 20_000
