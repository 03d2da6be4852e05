"""What pages declare, compared with what recorded answers contain: optional and required fields, units,
tiles, limits and defaults of parameters.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import pytest

from tb_tpuprof.errors import BadParameter
from tb_tpuprof.session import Session
from tb_tpuprof.tools import all_tools, facts, findings_tables, get_tool
from tb_tpuprof.tools.arguments import validate_params
from tb_tpuprof.tools.base import Param
from tb_tpuprof.tools.flame_graph import tables as flame_graph
from tb_tpuprof.tools.framework_op_stats import tables as framework_op_stats
from tb_tpuprof.tools.graph_viewer import declared as graph_viewer
from tb_tpuprof.tools.hlo_stats import tables as hlo_stats
from tb_tpuprof.tools.input_pipeline_analyzer import declared as input_pipeline_analyzer
from tb_tpuprof.tools.kernel_stats import tables as kernel_stats
from tb_tpuprof.tools.memory_profile import declared as memory_profile
from tb_tpuprof.tools.memory_viewer import declared as memory_viewer
from tb_tpuprof.tools.op_profile import tables as op_profile
from tb_tpuprof.tools.overview_page import scalars as overview_scalars
from tb_tpuprof.tools.overview_page import tables as overview_page
from tb_tpuprof.tools.payload import Payload, Scalar
from tb_tpuprof.tools.pod_viewer import declared as pod_viewer
from tb_tpuprof.tools.roofline_model import tables as roofline_model
from tb_tpuprof.tools.spec import ColumnSpec, ScalarSpec
from tb_tpuprof.tools.tiles import Tile, shown_tiles
from tb_tpuprof.tools.tpu_compatibility import declared as tpu_compatibility
from tb_tpuprof.tools.trace_viewer import query_tables
from tb_tpuprof.tools.trace_viewer import tables as trace_viewer
from tests.device_goldens import DEVICE_GOLDEN
from tests.golden_files import GOLDEN, demo_runs


class Answer(NamedTuple):
    """The names in an answer: scalars, and columns by table."""

    scalars: frozenset[str]
    tables: dict[str, frozenset[str]]


@cache
def answers() -> dict[tuple[str, str], list[Answer]]:
    """Answers by tool and question: the goldens, and those of a graph without times and metadata."""
    result: dict[tuple[str, str], list[Answer]] = {}
    for path in sorted(GOLDEN.glob("*/*.json")):
        page = json.loads(path.read_text("utf-8"))
        if "unavailable" not in page:
            result.setdefault((path.stem, ""), []).append(_recorded(page))
    for path in sorted(DEVICE_GOLDEN.glob("*/*.json")):
        pages = json.loads(path.read_text("utf-8"))
        for key, page in () if "unavailable" in pages else pages.items():
            if "error" not in page:
                question = "" if key == "page" else key.partition("{")[0].strip()
                result.setdefault((path.stem, question), []).append(_recorded(page))
    session, graphs = Session(str(demo_runs()["jax_predict"]), cache=False), get_tool("graph_viewer")
    without = {"times": False}
    plain = graphs.run(session, None, {**without, "metadata": False})
    searched = graphs.run(session, None, {**without, "text": "add"}, "search")
    result["graph_viewer", ""].append(_answer(plain))
    result["graph_viewer", "search"].append(_answer(searched))
    return result


def _recorded(page: dict[str, dict[str, dict[str, str]]]) -> Answer:
    columns = {
        name: frozenset(one.partition(" [")[0] for one in table["columns"].split(" | ") if one)
        for name, table in page["tables"].items()
    }
    return Answer(frozenset(page["scalars"]), columns)


def _answer(payload: Payload) -> Answer:
    tables = {name: frozenset(one.name for one in table.columns) for name, table in payload.tables.items()}
    return Answer(frozenset(payload.scalars), tables)


class Field(NamedTuple):
    """A declared table, column or number, and in how many answers it is, of those that could have it."""

    path: str
    is_optional: bool
    n_present: int
    n_answers: int


def fields() -> Iterator[Field]:
    """Everything that questions with recorded answers declare."""
    for tool in all_tools():
        for question in (tool.page, *tool.questions):
            given = answers().get((tool.name, question.name), [])
            path = f"{tool.name}/{question.name}".rstrip("/")
            for scalar in question.scalars:
                n = sum(scalar.name in one.scalars for one in given)
                yield Field(f"{path}: {scalar.name}", scalar.is_optional, n, len(given))
            for table in question.tables:
                have = [one.tables[table.name] for one in given if table.name in one.tables]
                yield Field(f"{path}: {table.name}", table.is_optional, len(have), len(given))
                for column in table.columns:
                    n = sum(column.name in columns for columns in have)
                    yield Field(f"{path}: {table.name}.{column.name}", column.is_optional, n, len(have))


def test_what_an_answer_lacks_is_optional() -> None:
    lacking = [one.path for one in fields() if not one.is_optional and one.n_present < one.n_answers]
    assert not lacking


# Optional for runs that no golden holds: requests of unknown size or without device work, steps without that
# kind of time, captures without common steps, GPUs that launched no kernel, slices whose hosts recorded no
# messages. The graph's table of hot operations as a whole is optional, and shares its columns.
IN_EVERY_RECORDED_ANSWER = {
    "communication: step_ps",
    *(
        f"overview_page: steps.{part}_ps"
        for part in (
            "compilation",
            "input",
            "output",
            "kernel_launch",
            "host_compute",
            "device_collectives",
            "device_to_device",
            "device_compute",
            "other",
        )
    ),
    "input_pipeline_analyzer: steps.device_to_device_ps",
    *(
        f"kernel_stats: {name}"
        for name in ("kernel_time_ps", "n_launches", "avg_kernel_ps", "tensor_core_fraction")
    ),
    *(f"graph_viewer: hot.{name}" for name in ("time_ps", "time_fraction", "n_occurrences")),
    "inference_profile: loads",
    "inference_profile: sizes",
    "pod_viewer: n_steps",
    "pod_viewer: cores.idle_ps",
    "pod_viewer: steps.idle_ps",
    "pod_viewer/cores: n_steps",
    "pod_viewer/cores: cores.idle_ps",
    "megascale_stats: slices",
}


def test_what_every_answer_has_is_required() -> None:
    always = {one.path for one in fields() if one.is_optional and 0 < one.n_answers == one.n_present}
    assert always == IN_EVERY_RECORDED_ANSWER


def declared_values() -> Iterator[tuple[str, ColumnSpec | ScalarSpec]]:
    for tool in all_tools():
        for question in (tool.page, *tool.questions):
            yield from ((f"{tool.name}: {one.name}", one) for one in question.scalars)
            for table in question.tables:
                yield from ((f"{tool.name}: {table.name}.{one.name}", one) for one in table.columns)


@pytest.mark.parametrize(
    ("ending", "unit"),
    [
        ("_ps", "ps"),
        ("_bytes", "bytes"),
        ("_fraction", "fraction"),
        ("_bytes_per_s", "bytes_per_s"),
        ("_flops_per_s", "flops_per_s"),
    ],
)
def test_names_end_in_their_unit(ending: str, unit: str) -> None:
    units = {path: one.unit for path, one in declared_values() if one.name.endswith(ending)}
    assert len(units) > 2
    assert {path: one for path, one in units.items() if one != unit} == {}


def test_counts_and_questions_are_named_as_such() -> None:
    other = {"op_profile: n_bytes": "bytes", "hlo_stats: ops.n_threads": ""}  # a sum of bytes, and a mean
    for path, one in declared_values():
        if one.name.startswith("n_"):
            assert one.unit == other.get(path, "count"), path
        if isinstance(one, ColumnSpec) and one.name.startswith(("is_", "has_")):
            assert one.kind == "bool", path


def test_each_name_is_declared_once() -> None:
    for tool in all_tools():
        for question in (tool.page, *tool.questions):
            for names in (
                [one.name for one in question.scalars],
                [one.name for one in question.params],
                *([one.name for one in table.columns] for table in question.tables),
            ):
                assert len(set(names)) == len(names), f"{tool.name}/{question.name}"


# Sizes, counts and times are tiles from the first byte or step on; one core is not worth a tile, and neither
# is a share that reads 0.0% or, on the overview, less than 0.5%.
LEAST = {
    "memory_snapshot": {"unattributed_bytes": 1, "n_failures": 1},
    "overview_page": {
        "n_steps": 1,
        "other_fraction": 0.005,
        "device_eager_fraction": 0.005,
        "host_eager_fraction": 0.005,
    },
    "input_pipeline_analyzer": {"n_steps": 1, "output_fraction": 0.0005, "other_fraction": 0.0005},
    "framework_op_stats": {"device_copies_ps": 1},
    "hlo_stats": {"rematerialized_fraction": 0.0005},
    "memory_profile": {"stack_bytes": 1},
    "memory_viewer": dict.fromkeys(
        (f"{name}_bytes" for name in ("temporary", "parameter", "output", "padding", "constant")), 1
    ),
    "tpu_compatibility": {"n_not_checked": 1},
    "pod_viewer": {"n_cores": 2, "n_steps": 1},
    "communication": {"wait_ps": 1},
}


@pytest.mark.parametrize("tool", all_tools(), ids=lambda tool: tool.name)
def test_small_numbers_are_no_tiles(tool) -> None:  # type: ignore[no-untyped-def]
    limits = LEAST.get(tool.name, {})
    declared: tuple[Tile, ...] = tool.tiles or ()
    assert {tile.name for tile in declared if tile.least is not None} == set(limits)
    units = {one.name: one.unit for one in tool.scalars}
    for name, least in limits.items():
        tile = tuple(one for one in declared if one.name == name)
        step = 1 if least >= 1 else 1e-6
        shown = [shown_tiles(tile, {name: Scalar(v, units[name], name)}) for v in (least - step, least)]
        assert shown == [(), (name,)]


# Whole numbers with their least, their largest and their default value.
LIMITS: dict[str, dict[str, tuple[int, int, int | None]]] = {
    "trace_viewer": {
        "width_px": (1, 20_000, 2000),
        "start_ps": (0, 2**63 - 1, None),
        "end_ps": (0, 2**63 - 1, None),
    },
    "trace_viewer/slices": {
        "limit": (1, 100_000, 1000),
        "depth_from": (0, 65_535, 0),
        "depth_to": (0, 65_535, 65_535),
        "offset": (0, 2**31, 0),
    },
    "trace_viewer/groups": {
        "limit": (1, 100_000, 1000),
        "depth_from": (0, 65_535, 0),
        "depth_to": (0, 65_535, 65_535),
    },
    "trace_viewer/hits": {"width_px": (1, 20_000, 2000)},
    "trace_viewer/minimap": {"width_px": (1, 20_000, 2000)},
    "tf_data_bottleneck_analysis": {"rank": (1, 2**53, None)},
    "op_profile": {"limit": (1, 10_000, 100)},
    "memory_profile": {"width_px": (1, 8000, 800)},
    "memory_viewer": {"width_px": (10, 20_000, 1500), "space": (0, 2**53, 0)},
    "graph_viewer": {"radius": (0, 50, 2), "most_nodes": (1, 400, 120)},
    "graph_viewer/text": {"first_line": (0, 2**53, 0), "n_lines": (1, 5000, 400)},
    "pod_viewer": {"step": (0, 2**53, None)},
}


def params_of(path: str) -> dict[str, Param]:
    tool, _, question = path.partition("/")
    return {param.name: param for param in get_tool(tool).question(question).params}


@pytest.mark.parametrize(
    ("path", "name", "least", "most", "default"),
    [(path, name, *limits) for path, declared in LIMITS.items() for name, limits in declared.items()],
)
def test_limits_of_whole_numbers(path: str, name: str, least: int, most: int, default: int | None) -> None:
    param = params_of(path)[name]
    assert param.default == default
    for value in (least, most):
        assert validate_params((param,), {name: str(value)}) == {name: value}
    for value in (least - 1, most + 1):
        with pytest.raises(BadParameter):
            validate_params((param,), {name: str(value)})


# Every choice of yes or no, with its default.
SWITCHES = {
    "trace_viewer": {"flows": False},
    "trace_viewer/slices": {"descending": False},
    "framework_op_stats": {"idle": False},
    "op_profile": {"idle": True},
    "roofline_model": {"transfers": True},
    "graph_viewer": {"times": True, "metadata": True},
    "graph_viewer/search": {"times": True},
}

REQUIRED = {
    "pod_viewer/channel": {"channel"},
    "trace_viewer/event": {"event"},
    "trace_viewer/neighbour": {"event"},
    "trace_viewer/chain": {"event"},
    "trace_viewer/dependencies": {"event"},
    "trace_viewer/places": {"events"},
    "tpu_compatibility/node": {"node"},
    "trace_viewer/compare": {"a_start_ps", "a_end_ps", "b_start_ps", "b_end_ps"},
    "flame_graph/function": {"function"},
    "op_profile/op": {"op"},
    "graph_viewer/search": {"text"},
}


def test_switches_and_required_parameters() -> None:
    switches: dict[str, dict[str, bool]] = {}
    required: dict[str, set[str]] = {}
    for tool in all_tools():
        for question in (tool.page, *tool.questions):
            path = f"{tool.name}/{question.name}".rstrip("/")
            for param in question.params:
                if param.kind == "bool":
                    switches.setdefault(path, {})[param.name] = bool(param.default)
                if param.is_required:
                    required.setdefault(path, set()).add(param.name)
                if param.kind == "choice":
                    assert param.default in param.choices, path
    assert switches == SWITCHES
    assert required == REQUIRED


# The tables that a module declares for the page of its tool.
DECLARED = {
    "flame_graph": flame_graph.TABLES,
    "framework_op_stats": framework_op_stats.TABLES,
    "graph_viewer": graph_viewer.PAGE_TABLES,
    "hlo_stats": hlo_stats.TABLES,
    "input_pipeline_analyzer": input_pipeline_analyzer.TABLES,
    "kernel_stats": kernel_stats.TABLES,
    "memory_profile": memory_profile.TABLES,
    "memory_viewer": memory_viewer.TABLES,
    "overview_page": overview_page.TABLES,
    "pod_viewer": pod_viewer.PAGE_TABLES,
    "roofline_model": roofline_model.TABLES,
    "tpu_compatibility": tpu_compatibility.PAGE_TABLES,
    "trace_viewer": trace_viewer.WINDOW_TABLES,
}


@pytest.mark.parametrize("tool", DECLARED)
def test_a_page_answers_all_tables_of_its_module(tool: str) -> None:
    assert get_tool(tool).tables == DECLARED[tool]


def test_numbers_that_pages_share_keep_their_declarations() -> None:
    assert {spec.is_optional for spec in facts.fact_specs("n_steps", "device_busy_ps")} == {False}
    assert facts.fact_specs("n_steps", is_optional=True)[0].is_optional
    assert findings_tables.FINDINGS in overview_page.TABLES
    assert findings_tables.CAUSES in overview_page.TABLES
    assert get_tool("overview_page").scalars == overview_scalars.SCALARS
    assert get_tool("op_profile").question("op").tables == op_profile.OP_TABLES


def test_as_many_arguments_as_columns() -> None:
    names = [column.name for column in query_tables.SLICES.columns if column.is_optional]
    assert names == [f"argument_{i}" for i in (1, 2, 3, 4, 5, 6, 7, 8)]


def test_every_shared_pie_of_compiled_operations_has_its_table() -> None:
    """All tables but that of operations are pies by name."""
    assert [spec.name for spec in hlo_stats.TABLES if spec.chart == "donut"] == list(hlo_stats.SHARES)
    assert len(hlo_stats.SHARES) == len(hlo_stats.TABLES) - 1
