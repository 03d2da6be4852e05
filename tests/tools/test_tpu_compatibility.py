"""The tool on runs with TensorFlow's own graphs, without any, and on a demo run."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tb_tpuprof.errors import BadParameter, ToolUnavailable
from tb_tpuprof.session import Session
from tb_tpuprof.tools.tpu_compatibility.view import TOOL
from tests.golden_files import DEMO_LOGS, demo_runs
from tests.graph_files import event_file, field, graph_def, node
from tests.payload_columns import table

DATA = Path(__file__).resolve().parent.parent / "data" / "graphs"


def run_in(folder: Path, *graphs: Path) -> Session:
    """A run whose job's folder holds graphs."""
    run = folder / "train" / "plugins" / "profile" / "run"
    shutil.copytree(demo_runs()["jax_predict"], run)
    for graph in graphs:
        (shutil.copytree if graph.is_dir() else shutil.copyfile)(graph, folder / "train" / graph.name)
    return Session(str(run), cache=False)


@pytest.fixture
def several(tmp_path: Path) -> Session:
    return run_in(tmp_path, DATA / "words", DATA / "function.tfevents.0", DATA / "version1.tfevents.0")


def test_the_largest_graph_is_shown_and_others_can_be_chosen(several: Session) -> None:
    assert TOOL.available(several)
    payload = TOOL.run(several, None, {})
    graphs = table(payload, "graphs")
    assert graphs["graph"] == ["words", "function.tfevents.0", "version1.tfevents.0"]
    assert graphs["is_shown"] == [True, False, False]
    smaller = TOOL.run(several, None, {"graph": "function.tfevents.0"})
    assert table(smaller, "graphs")["is_shown"] == [False, True, False]
    assert table(smaller, "incompatible")["name"] == ["train/python/PyFunc"]
    with pytest.raises(BadParameter, match="gone"):
        TOOL.run(several, None, {"graph": "gone"})


def test_hosts_that_cannot_be_read_are_named_and_the_graph_is_shown(several: Session) -> None:
    run = Path(several.info.path)
    (run / "a-bad.xplane.pb").write_bytes(b"\xff" * 500)
    (run / "a-empty.xplane.pb").write_bytes(b"")
    payload = TOOL.run(Session(str(run), cache=False), None, {})
    assert table(payload, "graphs")["graph"][0] == "words"
    messages = "\n".join(one.message for one in payload.diagnostics if one.severity == "error")
    assert "2 of " in messages
    assert " hosts could not be read: " in messages
    assert "a-bad.xplane.pb is " in messages
    assert "a-empty.xplane.pb is " in messages
    assert payload.hosts == several.hosts


def test_numbers_agree_with_one_another(several: Session) -> None:
    payload = TOOL.run(several, None, {})
    scalars = {name: scalar.value for name, scalar in payload.scalars.items()}
    assert scalars == {
        "valid_fraction": 0.84,
        "n_invalid": 4,
        "n_valid": 21,
        "n_not_checked": 40,
        "n_ops": 65,
    }
    scopes, by_op = table(payload, "scopes"), table(payload, "by_op")
    assert [scopes[key][0] for key in ("n_invalid", "n_valid", "n_not_checked", "valid_fraction")] == [
        4,
        21,
        40,
        0.84,
    ]
    assert sum(by_op["n_ops"]) == 65  # type: ignore[arg-type]
    assert sum(by_op["fraction"]) == pytest.approx(1)  # type: ignore[arg-type]
    assert (
        sum(n for n, status in zip(by_op["n_ops"], by_op["status"], strict=True) if status == "incompatible")
        == 4
    )  # type: ignore[misc]
    assert sum(table(payload, "not_checked")["n_ops"]) == 40  # type: ignore[arg-type]
    for status in set(by_op["status"]):  # most frequent first
        counts = [n for n, one in zip(by_op["n_ops"], by_op["status"], strict=True) if one == status]
        assert counts == sorted(counts, reverse=True), status  # type: ignore[type-var]
    assert payload.tables["scopes"].note == ""


def test_verdict_names_what_and_how(several: Session) -> None:
    verdict = TOOL.run(several, None, {}).verdict
    assert verdict
    assert (verdict.level, verdict.text) == (
        "bad",
        "4 operations of 25 in `words` cannot run on a TPU: 84.0% are compatible.",
    )
    assert any("StringLookup" in detail for detail in verdict.details)
    assert any("TPUs do not support strings" in detail for detail in verdict.details)


def test_fixes_stand_once_for_each_kind(several: Session) -> None:
    fixes = table(TOOL.run(several, None, {}), "fixes")
    assert [(fixes["kind"][i], fixes["n_ops"][i], fixes["ops"][i]) for i in range(2)] == [
        ("lookup table", 2, "HashTableV2, LookupTableFindV2"), ("string", 2, "Placeholder, StringLower"),
    ]  # fmt: skip
    assert all(str(fix).endswith(".") for fix in fixes["fix"])


def test_a_graph_without_trouble_is_good(tmp_path: Path) -> None:
    graph = tmp_path / "events.out.tfevents.1"
    graph.write_bytes(event_file(field(4, graph_def([node("Add"), node("MatMul", T=1)]))))
    verdict = TOOL.run(run_in(tmp_path / "logs", graph), None, {}).verdict
    assert verdict
    assert verdict.level == "good"
    assert "each of the 2 operations checked" in verdict.text
    graph.write_bytes(event_file(field(4, graph_def([node("PyFunc", device="/cpu:0")]))))
    only_host = TOOL.run(run_in(tmp_path / "host", graph), None, {}).verdict
    assert only_host
    assert only_host.level == "unknown"


def test_a_graph_that_appears_is_found(tmp_path: Path) -> None:
    session = run_in(tmp_path)
    assert "neither event files nor SavedModels" in TOOL.available(session).reason
    assert "tf.summary.graph" in TOOL.available(session).remedy
    with pytest.raises(ToolUnavailable):
        TOOL.run(session, None, {})
    shutil.copyfile(DATA / "function.tfevents.0", tmp_path / "train" / "function.tfevents.0")
    assert TOOL.run(session, None, {}).scalars["n_ops"].value == 48


def test_event_files_without_a_graph_are_named(tmp_path: Path) -> None:
    scalars = next((DEMO_LOGS / "keras_slow_input" / "validation").glob("events.*"))
    assert TOOL.available(run_in(tmp_path, scalars)).reason.endswith("(1 event file or SavedModel searched).")


def test_damage_reaches_the_reader(tmp_path: Path) -> None:
    graph = tmp_path / "events.out.tfevents.1"
    graph.write_bytes(event_file(field(4, graph_def([node("Add"), b"\x0a\xff\x01"]))) + bytes(40))
    messages = [notice.message for notice in TOOL.run(run_in(tmp_path / "logs", graph), None, {}).diagnostics]
    assert any("1 node of the graph could not be read" in message for message in messages)
    assert any("length is damaged" in message for message in messages)


def test_the_demo_s_loop_prints() -> None:
    session = Session(str(demo_runs()["keras_slow_input"]), cache=False)
    payload = TOOL.run(session, None, {})
    assert table(payload, "incompatible")["op"] == ["StringFormat", "PrintV2"]
    assert set(table(payload, "incompatible")["kind"]) == {"printing"}
    assert "MapDataset" in [
        op
        for op, status in zip(*(table(payload, "by_op")[key] for key in ("op", "status")), strict=True)
        if status == "not checked"
    ]


def test_the_drawing_alone(several: Session) -> None:
    payload = TOOL.run(several, None, {"graph": "words"}, "drawing")
    assert set(payload.tables) == {"items", "edges"}
    items = table(payload, "items")
    assert [
        items["name"][i] for i, n in enumerate(items["n_invalid"]) if n and items["kind"][i] == "operation"
    ][:2] == [
        "hash_table",
        "serving_default_words",
    ]
    place = items["name"].index("hash_table")
    assert "Dataset.map" in str(items["fix"][place])
    function = items["name"].index("(functions)")
    assert items["is_open"][function] is True
    row = items["scope"][function]
    closed = table(TOOL.run(several, None, {"graph": "words", "boxes": str(row)}, "drawing"), "items")
    assert closed["is_open"][closed["name"].index("(functions)")] is False
    for box in (f"{row}c", f"{row}.{row}c"):
        drawn_items = table(TOOL.run(several, None, {"graph": "words", "boxes": box}, "drawing"), "items")
        assert drawn_items == closed
    drawn_items = table(TOOL.run(several, None, {"graph": "words", "boxes": f"{row}o"}, "drawing"), "items")
    assert drawn_items["is_open"][drawn_items["name"].index("(functions)")] is True
    assert sum(closed["n_invalid"]) == 4  # type: ignore[arg-type]


def test_boxes_are_of_the_drawing_alone(several: Session) -> None:
    with pytest.raises(BadParameter, match="boxes"):
        TOOL.run(several, None, {"boxes": "1o"})


@pytest.mark.parametrize("boxes", ["x", "-1", "1.²", "1x", "o", "1oc", ".".join(["1"] * 2000), "99999999999"])
def test_boxes_are_rows(several: Session, boxes: str) -> None:
    with pytest.raises(BadParameter):
        TOOL.run(several, None, {"boxes": boxes}, "drawing")


def test_a_long_refused_text_is_cut(several: Session) -> None:
    with pytest.raises(BadParameter) as refused:
        TOOL.run(several, None, {"boxes": "7" * 500}, "drawing")
    assert "7" * 80 in str(refused.value)
    assert "7" * 81 not in str(refused.value)


def test_the_attributes_of_an_operation(several: Session) -> None:
    drawn = TOOL.run(several, None, {"graph": "version1.tfevents.0"}, "drawing")
    items = table(drawn, "items")
    assert all(
        (node >= 0) == (kind == "operation") for node, kind in zip(items["node"], items["kind"], strict=True)
    )
    asked = {"graph": "words", "node": "28"}
    payload = TOOL.run(several, None, asked, "node")
    assert {name: values[0] for name, values in table(payload, "node").items()} == {
        "name": "network/score/MatMul",
        "op": "MatMul",
        "function": "__inference___call___190",
        "device": "",
    }
    assert list(zip(*table(payload, "attributes").values(), strict=True)) == [
        ("T", "type", "float32"),
        ("_output_shapes", "list", "[[?, 4]]"),
        ("transpose_b", "boolean", "true"),
    ]
    assert table(payload, "inputs")["input"] == [
        "network/embed/Gather:output:0",
        "network/score/MatMul/ReadVariableOp:value:0",
    ]
    assert payload.tables["inputs"].note == ""


def test_the_drawing_names_the_operation_that_is_asked_about(several: Session) -> None:
    tree = table(TOOL.run(several, None, {"graph": "words"}), "scopes")
    boxes = ".".join(f"{row}o" for row in range(len(tree["name"])))
    items = table(TOOL.run(several, None, {"graph": "words", "boxes": boxes}, "drawing"), "items")
    rows = [row for row, kind in enumerate(items["kind"]) if kind == "operation"]
    assert len(rows) > 30
    for row in rows:
        node = table(
            TOOL.run(several, None, {"graph": "words", "node": str(items["node"][row])}, "node"), "node"
        )
        assert (node["name"], node["op"]) == ([items["name"][row]], [items["op"][row]])


def test_each_function_is_named_by_its_operations(several: Session) -> None:
    nodes = [TOOL.run(several, None, {"graph": "words", "node": str(i)}, "node") for i in range(65)]
    functions = [table(node, "node")["function"][0] for node in nodes]
    assert len(set(functions) - {""}) == 7
    assert "" in functions  # those of the graph itself


def test_what_is_left_out_of_an_operation_is_said(several: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tb_tpuprof.ingest.graphs.attributes.MAX_ATTRIBUTES", 2)
    monkeypatch.setattr("tb_tpuprof.ingest.graphs.attributes.MAX_INPUTS", 1)
    payload = TOOL.run(several, None, {"graph": "words", "node": "28"}, "node")
    assert payload.tables["attributes"].note == "the first 2 of 3"
    assert payload.tables["inputs"].note == "the first 1 of 2"


@pytest.mark.parametrize("number", ["-1", "65", "1000000"])
def test_an_operation_that_is_not_there(several: Session, number: str) -> None:
    with pytest.raises(BadParameter, match="node"):
        TOOL.run(several, None, {"graph": "words", "node": number}, "node")
    assert TOOL.run(several, None, {"graph": "words", "node": "64"}, "node")
