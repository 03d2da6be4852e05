"""Matrix products, kinds of programs, classes, precision and search on modules written by hand."""

from __future__ import annotations

from typing import Any

import pytest

from tb_tpuprof.analysis.hlo.classes import class_of
from tb_tpuprof.analysis.hlo.padding import MAX_PRODUCTS, Product, dim_roles, padded_dims, products
from tb_tpuprof.analysis.hlo.program_kind import kind_of_programs, program_kind
from tb_tpuprof.analysis.hlo.search import matching_rows
from tb_tpuprof.analysis.steps.kernel_precision import FULL, HALF, _instruction_precision
from tb_tpuprof.ingest.hlo.module import decode_hlo
from tb_tpuprof.trace.hlo import HloModule
from tb_tpuprof.trace.hlo_shape import Layout, Shape
from tests.ingest.hlo_protos import array, computation, instruction, proto, small_proto

F32, BF16 = 11, 16


def module_of(instructions: list[Any], *others: Any) -> HloModule:
    main = computation(1, "main", instructions, instructions[-1][35])
    return decode_hlo(proto([main, *others]), "f", 7)


def parameters(*shapes: Any) -> list[Any]:
    return [instruction(i, "parameter", shape, f9=i - 1) for i, shape in enumerate(shapes, 1)]


def test_a_dot_in_batches_is_padded_in_three_dimensions() -> None:
    """[2, 5, 100, 30] · [2, 30, 5, 200] with the batches 2 and 5: 10 × [100 × 30] · [30 × 200]."""
    dims = {1: (3,), 2: (1,), 3: (0, 1), 4: (0, 2)}
    dot = instruction(3, "dot", array(2, 5, 100, 200), [1, 2], f30=dims)
    module = module_of([*parameters(array(2, 5, 100, 30), array(2, 30, 5, 200)), dot])
    assert products(module, 2, 128) == [Product("dot.3", 10, 100, 30, 200, (104, 128, 256))]
    assert products(module, 2, 256)[0].padded == (104, 256, 256)
    assert products(module, 2, 0)[0].padded == (100, 30, 200)
    assert products(module, 0, 128) == []
    assert dim_roles(module, 2) == [
        {0: "batch", 1: "batch", 2: "rows", 3: "columns"},
        {0: "batch", 1: "batch", 2: "rows", 3: "contracted"},
        {0: "batch", 1: "contracted", 2: "batch", 3: "columns"},
    ]
    assert dim_roles(module, 1) == []
    assert Product("x", 1, 0, 0, 0, (0, 0, 0)).fill == 0
    assert Product("x", 3, 7, 128, 129, (8, 128, 256)).fill == pytest.approx(7 * 129 / (8 * 256))


def test_operands_that_are_missing_make_no_product() -> None:
    for operands in ([1], [1, 77], [77, 1], []):
        module = module_of([*parameters(array(4, 4)), instruction(3, "dot", array(4, 4), operands)])
        assert products(module, 1, 128) == []
        assert dim_roles(module, 1) == []


def test_a_convolution_is_a_product_of_patches() -> None:
    """4 images of 8 × 8 with 6 features in 2 groups, kernel 3 × 5, 10 output features."""
    dims = {7: 0, 8: 1, 11: (2, 3), 3: 1, 4: 0, 6: (2, 3), 9: 0, 10: 1, 12: (2, 3)}
    window = {1: [{1: size, 2: 1, 3: size // 2, 4: size // 2, 5: 1, 6: 1} for size in (3, 5)]}
    more: dict[str, Any] = {"f16": dims, "f15": window, "f50": 2}
    operands = parameters(array(4, 6, 8, 8), array(10, 3, 3, 5))
    module = module_of([*operands, instruction(3, "convolution", array(4, 10, 8, 8), [1, 2], **more)])
    (product,) = products(module, 2, 128)
    assert (product.batch, product.rows, product.contracted, product.columns) == (2, 4 * 8 * 8, 3 * 15, 5)
    assert product.padded == (256, 128, 128)


def nested(depth: int, n_dots: int = 1) -> HloModule:
    """A fusion in a call in a fusion … around dots, so deep."""
    shape = array(4, 4)
    bodies = []
    for level in range(1, depth + 1):
        key, last = 100 * (level + 1), level == depth
        inner = [
            instruction(key + i, "dot", shape, [key + 90, key + 90], f30={1: (1,), 2: (0,)})
            for i in range(n_dots)
        ]
        opcode = ("fusion", "call")[level % 2]
        own = inner if last else [instruction(key, opcode, shape, [key + 90], f38=(level + 2,))]
        bodies.append(
            computation(
                level + 1, f"body{level}", [instruction(key + 90, "parameter", shape, f9=0), *own], key
            )
        )
    main = [*parameters(shape), instruction(2, "fusion", shape, [1], f38=(2,))]
    return module_of(main, *bodies)


def test_products_inside_fusions_and_calls() -> None:
    for depth, n in ((1, 1), (2, 1), (8, 1), (9, 0)):
        module = nested(depth)
        assert len(products(module, module.find("fusion.2"), 128)) == n, depth
    for n_dots, n in ((31, 31), (32, 32), (40, MAX_PRODUCTS)):
        module = nested(1, n_dots)
        assert len(products(module, module.find("fusion.2"), 128)) == n


def test_a_computation_that_is_called_twice_counts_once_and_missing_ones_not() -> None:
    module = nested(2)
    twice = module_of(
        [*parameters(array(2)), instruction(2, "fusion", array(2), [1], f38=(2, 9, 2))],
        computation(
            2, "body", [instruction(5, "parameter", array(2)), instruction(6, "dot", array(), [5, 5])], 6
        ),
    )
    assert [len(products(one, one.find("fusion.2"), 0)) for one in (module, twice)] == [1, 1]
    elsewhere = module_of(
        [
            *parameters(array(2)),
            instruction(2, "while", array(2), [1], f38=(2,)),
            instruction(3, "fusion", array(2), [1], f38=(9,)),
        ],
        computation(
            2, "body", [instruction(5, "parameter", array(2)), instruction(6, "dot", array(), [5, 5])], 6
        ),
    )
    assert products(elsewhere, elsewhere.find("while.2"), 0) == []
    assert products(elsewhere, elsewhere.find("fusion.3"), 0) == []


def test_every_array_of_a_value_has_its_number() -> None:
    tiled = Layout((1, 0), ((8, 128),))
    parts = tuple(Shape(F32, dims, layout=tiled) for dims in ((8, 128), (3, 130), (8, 100)))
    found = [
        (one.value, one.dim, one.size, one.padded) for one in padded_dims("v", Shape(13, elements=parts))
    ]
    assert found == [("v[1]", 0, 3, 8), ("v[1]", 1, 130, 256), ("v[2]", 1, 100, 128)]


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (instruction(2, "custom-call", array(2), [1], f28="__cublas$gemm"), "GPU"),
        (instruction(2, "custom-call", array(2), [1], f28="tpu_custom_call"), "TPU"),
        (instruction(2, "custom-call", array(2), [1], f28="__onednn$matmul"), "CPU"),
        (instruction(2, "custom-call", array(2), [1], f28="my__cublas$gemm"), ""),
        (instruction(2, "add", array(2), [1], f28="__cublas$gemm"), ""),
        (instruction(2, "dot", array(2), [1], f28="__cublas$gemm"), ""),
        (instruction(2, "fusion", array(2), [1], f43=b'{"fusion_backend_config":{}}'), "GPU"),
        (instruction(2, "dot", array(2), [1], f43=b'{"window_config":{}}'), "TPU"),
        (instruction(2, "while", array(2), [1], f43=b'{"outer_dimension_partitions":["2"]}'), "CPU"),
        (instruction(2, "while", array(2), [1], f43=b'{"known_trip_count":{"n":"2"}}'), ""),
        (instruction(2, "add", {2: F32, 3: (4, 5), 5: {1: (1, 0), 6: [{1: (8, 128)}]}}, [1]), "TPU"),
    ],
)
def test_what_only_one_compiler_writes_reveals_the_device(made: Any, kind: str) -> None:
    module = module_of([*parameters(array(2)), made])
    assert program_kind(module) == kind


def test_the_first_of_twenty_programs_that_reveals_it_decides() -> None:
    silent = module_of([instruction(2, "add", array(2))])
    tpu, gpu = (
        module_of([instruction(2, "custom-call", array(2), f28=target)])
        for target in ("tpu_custom_call", "__cudnn$conv")
    )
    assert kind_of_programs([]) == ""
    assert kind_of_programs([silent, gpu, tpu]) == "GPU"
    assert kind_of_programs([*[silent] * 19, tpu]) == "TPU"
    assert kind_of_programs([*[silent] * 20, tpu]) == ""


def test_classes_of_opcodes() -> None:
    opcodes = {
        "convolution": "matrix",
        "fft": "matrix",
        "sort": "reduction",
        "scan": "reduction",
        "pad": "data movement",
        "outfeed": "data movement",
        "all-to-all": "collective",
        "ragged-all-to-all": "collective",
        "recv-done": "collective",
        "while": "control",
        "domain": "control",
        "iota": "input",
        "replica-id": "input",
        "custom-call": "custom call",
        "fusion": "fusion",
        "tanh": "elementwise",
        "no-such-opcode": "elementwise",
    }
    module = module_of([instruction(i, opcode, array(2)) for i, opcode in enumerate(opcodes, 1)])
    assert {module.opcode(row): class_of(module, row) for row in range(len(opcodes))} == opcodes


def test_matrix_work_in_a_fusion_counts_among_its_first_two_thousand_instructions() -> None:
    for position, name in (
        (0, "matrix"),
        (1500, "matrix"),
        (1999, "matrix"),
        (2000, "fusion"),
        (2500, "fusion"),
    ):
        body = [instruction(10 + i, "dot" if i == position else "add", array(2)) for i in range(2600)]
        module = module_of([instruction(2, "fusion", array(2), f38=(2,))], computation(2, "body", body, 10))
        assert class_of(module, module.find("fusion.2")) == name
    dots = computation(2, "dots", [instruction(11, "dot", array(2))], 11)
    module = module_of(
        [
            instruction(2, "fusion", array(2), f38=(77,)),
            instruction(3, "fusion", array(2), f38=(3, 2)),
            instruction(4, "call", array(2), f38=(2,)),
            instruction(5, "add", array(2), f28="__cublas$gemm"),
            instruction(6, "custom-call", array(2), f28="my_softmax"),
        ],
        computation(3, "adds", [instruction(12, "add", array(2))], 12),
        dots,
    )
    assert [class_of(module, row) for row in range(5)] == [
        "fusion",
        "matrix",
        "control",
        "elementwise",
        "custom call",
    ]


def narrow(code: int) -> dict[int, Any]:
    return array(2, code=code)


def test_products_count_by_their_operands_and_other_work_by_its_result() -> None:
    wide, half = narrow(F32), narrow(BF16)
    body = [
        instruction(20, "parameter", half),
        instruction(21, "parameter", wide),
        instruction(22, "dot", wide, [20, 21]),
    ]
    inner = [instruction(30, "fusion", wide, f38=(2,))]
    elementwise = [instruction(40, "add", half)]
    deepest = [instruction(50, "fusion", wide, f38=(3,))]
    made = [
        (instruction(1, "parameter", wide), FULL),
        (instruction(2, "parameter", half), HALF),
        (instruction(3, "dot", wide, [2, 2]), HALF),
        (instruction(4, "dot", half, [1, 1]), FULL),
        (instruction(5, "dot", wide, [1, 2]), HALF),
        (instruction(6, "dot", half, [1, 1, 2]), FULL),  # a third operand is no factor
        (instruction(7, "dot", half, []), FULL),
        (instruction(8, "custom-call", {2: 13, 4: [wide, half]}, [2]), HALF),
        (instruction(9, "add", {2: 13, 4: [half, wide]}), HALF),
        (instruction(10, "add", {2: 13, 4: [wide, half]}), FULL),
        (instruction(11, "fusion", wide, f38=(2,)), HALF),
        (instruction(12, "fusion", wide, f38=(3,)), HALF),
        (instruction(13, "fusion", wide, f38=(4,)), FULL),
        (instruction(14, "fusion", half, f38=(4,)), HALF),
        (instruction(15, "fusion", wide, f38=(5,)), FULL),  # only one level of fusions
        (instruction(16, "fusion", wide, f38=(99,)), FULL),
        (instruction(17, "call", wide, f38=(2,)), FULL),
        (instruction(18, "scaled-dot", wide, [77, 2]), HALF),
    ]
    module = module_of(
        [one for one, _ in made],
        computation(3, "inner", inner, 30),
        computation(4, "elementwise", elementwise, 40),
        computation(5, "deepest", deepest, 50),
        computation(2, "body", body, 22),
    )
    assert [_instruction_precision(module, row) for row in range(len(made))] == [code for _, code in made]


@pytest.mark.parametrize(
    "text", ["", " ", "%Dot", "dot", "add", "a", "f", "x", "jit(f)", "ADD.4", "zz", "jit_f", "loss", ".1"]
)
def test_search_is_a_loop_over_all_rows(text: str) -> None:
    names = ["zz.last", "add.4", "dot.adder", "x", "Loss.1"]
    odd = [
        {**instruction(i, opcode, array(2)), 1: name, **({7: {2: op_name}} if op_name else {})}
        for i, (name, opcode, op_name) in enumerate(
            zip(
                names,
                ("add", "dot", "add", "fusion", "dot"),
                ("", "jit(F)/loss", "jit_f", "x/add", "zz.last"),
                strict=True,
            ),
            1,
        )
    ]
    for module in (
        decode_hlo(small_proto(), "f", 7),
        module_of(odd),
        module_of([*odd, instruction(9, "zz", array(2))]),
    ):
        needle = text.strip().removeprefix("%").lower()
        matches = [
            row
            for row in range(module.n_instructions)
            if any(
                needle in part.lower()
                for part in (module.name(row), module.opcode(row), module.text("op_name", row))
            )
        ]
        first = [row for row in matches if module.name(row).lower().startswith(needle)]
        assert matching_rows(module, text).tolist() == [*first, *(row for row in matches if row not in first)]
