"""The trace viewer's payload on a demo run: no event is lost, zooming makes boxes exact, details agree with
the boxes.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from tb_tpuprof.errors import BadParameter, EventNotFound, ToolUnavailable
from tb_tpuprof.session import Session
from tb_tpuprof.tools import get_tool
from tb_tpuprof.tools.payload import Payload
from tb_tpuprof.tools.trace_viewer.view import TOOL
from tests.golden_files import demo_runs


@pytest.fixture(scope="module")
def session() -> Session:
    return Session(str(demo_runs()["keras_slow_input"]), cache=False)


def column(payload: Payload, table: str, name: str) -> npt.NDArray[np.generic]:
    """A column's values."""
    (values,) = (c.values for c in payload.tables[table].columns if c.name == name)
    return values


def window(session: Session, **params: object) -> Payload:
    return TOOL.run(session, None, params)


def event(session: Session, event: int, hosts: list[str] | None = None) -> Payload:
    """The details of an event."""
    return TOOL.run(session, hosts, {"event": event}, "event")


@pytest.mark.parametrize("width_px", [1, 100, 2000, 20_000])
def test_no_event_is_lost_at_any_width(session: Session, width_px: int) -> None:
    payload = window(session, width_px=width_px)
    n_events, is_derived = payload.scalars["n_events"].value, column(payload, "tracks", "is_derived")
    merged, of_track = column(payload, "boxes", "n_merged"), column(payload, "tracks", "n_events")
    track = column(payload, "boxes", "track")
    recorded = column(payload, "tracks", "track")[is_derived == 0]
    assert merged[np.isin(track, recorded)].sum() == n_events
    assert of_track[is_derived == 0].sum() == n_events
    assert merged.sum() == of_track.sum() == payload.scalars["n_events_in_window"].value
    assert of_track.sum() > merged[np.isin(track, recorded)].sum()


def test_a_wider_screen_merges_less(session: Session) -> None:
    rows = [window(session, width_px=width_px).tables["boxes"].n_rows for width_px in (100, 1000, 10_000)]
    assert rows == sorted(rows)


def test_boxes_lie_in_the_window_and_in_drawing_order(session: Session) -> None:
    start, end = 200_000_000_000, 210_000_000_000
    payload = window(session, start_ps=start, end_ps=end)
    starts, durations = column(payload, "boxes", "start_ps"), column(payload, "boxes", "duration_ps")
    assert (starts < end).all()
    assert (starts + np.maximum(durations, 1) > start).all()
    tracks, depths = column(payload, "boxes", "track"), column(payload, "boxes", "depth")
    same_row = (tracks[1:] == tracks[:-1]) & (depths[1:] == depths[:-1])
    # Merged boxes are widened to whole pixels, exact ones never overlap.
    merged = column(payload, "boxes", "n_merged") > 1
    pixel_ps = (end - start) // 2000
    room = np.where(merged[1:] | merged[:-1], 2 * pixel_ps, 0)
    assert (starts[1:] + room >= (starts + durations)[:-1])[same_row].all()
    assert payload.tables["boxes"].n_rows < session.trace("worker-0").n_events


def test_asked_for_one_track_it_sends_one(session: Session) -> None:
    track = int(column(window(session), "tracks", "track")[0])
    assert set(column(window(session, tracks=str(track)), "boxes", "track").tolist()) == {track}


def test_details_of_an_event_agree_with_its_box_and_its_ancestors_contain_it(session: Session) -> None:
    payload = window(session)
    exact = np.flatnonzero(
        (column(payload, "boxes", "n_merged") == 1) & (column(payload, "boxes", "depth") >= 2)
    )
    box = int(exact[len(exact) // 2])
    details = event(session, int(column(payload, "boxes", "event")[box]))
    for name in ("start_ps", "duration_ps", "track", "depth"):
        assert details.scalars[name].value == column(payload, "boxes", name)[box]
    start, duration = (details.scalars[name].value for name in ("start_ps", "duration_ps"))
    assert start is not None
    assert duration is not None
    above, lengths = column(details, "ancestors", "start_ps"), column(details, "ancestors", "duration_ps")
    assert len(above) > 0
    assert (above <= start).all()
    assert (above + lengths >= start + duration).all()
    assert 0 <= (details.scalars["self_time_ps"].value or 0) <= duration


@pytest.mark.parametrize(
    "params", [{"start_ps": 5, "end_ps": 5}, {"width_px": 0}, {"tracks": "a"}, {"start_ps": "soon"}]
)
def test_bad_parameters_are_refused(session: Session, params: dict[str, object]) -> None:
    with pytest.raises(BadParameter):
        window(session, **params)


@pytest.mark.parametrize(
    ("question", "params"),
    [("event", {"event": 10**9}), ("neighbour", {"event": 10**9}), ("", {"tracks": "987654"})],
)
def test_unknown_ids_are_not_found(session: Session, question: str, params: dict[str, object]) -> None:
    with pytest.raises(EventNotFound):
        TOOL.run(session, None, params, question)


def test_a_step_is_called_by_its_number() -> None:
    payload = TOOL.run(Session(str(demo_runs()["jax_train"]), cache=False), None, {})
    (names,) = (c.strings for c in payload.tables["boxes"].columns if c.name == "name")
    assert names is not None
    assert {f"train {number}" for number in range(20)} <= set(names)


def test_links_of_an_operation_lead_to_tools_that_know_it() -> None:
    session = Session(str(demo_runs()["jax_train"]), cache=False)
    payload = TOOL.run(session, None, {})
    kinds = next(c for c in payload.tables["tracks"].columns if c.name == "kind")
    line = next(i for i, code in enumerate(kinds.values.tolist()) if (kinds.strings or [])[code] == "hlo_ops")
    track = column(payload, "tracks", "track")[line]
    box = int(np.flatnonzero(column(payload, "boxes", "track") == track)[0])
    details = event(session, int(column(payload, "boxes", "event")[box]))
    tool, params = (c for c in details.tables["links"].columns if c.name != "text")
    texts = [[(c.strings or [])[code] for code in c.values.tolist()] for c in (tool, params)]
    assert texts[0][:5] == ["op_profile", "hlo_stats", "roofline_model", "graph_viewer", "memory_viewer"]
    for name, params_text in zip(*texts, strict=True):
        link_params = json.loads(params_text)
        assert_leads_somewhere(session, name, link_params)


def assert_leads_somewhere(session: Session, tool: str, params: dict[str, str]) -> None:
    """The tool answers, and its table of operations has a row that the link's filters leave."""
    filters = {
        name.removeprefix("f."): value.removeprefix("=")
        for name, value in params.items()
        if name.startswith("f.")
    }
    tool_params = {
        name: value for name, value in params.items() if not name.startswith("f.") and name != "hosts"
    }
    # The op profile's page requests the chosen operation's details separately from the tree.
    question = "op" if tool == "op_profile" and "op" in tool_params else ""
    payload = get_tool(tool).run(session, [params["hosts"]], tool_params, question)
    assert payload.tool == tool
    if filters:
        table = next(
            table for table in payload.tables.values() if set(filters) <= {c.name for c in table.columns}
        )
        columns = [
            [(c.strings or [])[code] for code in c.values.tolist()]
            for c in table.columns
            if c.name in filters
        ]
        target = tuple(filters[c.name] for c in table.columns if c.name in filters)
        assert target in set(zip(*columns, strict=True)), (tool, filters)


CORPUS = os.environ.get("TPUPROF_CORPUS", "")


@pytest.mark.skipif(not CORPUS, reason="TPUPROF_CORPUS does not name the corpus of real traces")
@pytest.mark.parametrize(
    ("run", "name", "source"),
    [
        # JAX tells lines by stack frames of the program; XLA on GPUs with the instruction; libtpu with the
        # event.
        ("own_jax_cpu/plugins/profile/mlp", "broadcast_maximum_fusion", ".py:8"),
        ("tracelens_mi300_jax/plugins/profile/jax08_gemm", "wrapped_broadcast", "generate_gemm_trace.py:34"),
        ("xprof_tpu_inference_2_old/plugins/profile/run", "broadcast.2", "host_offload_stress_test.py:37"),
    ],
)
def test_the_source_line_of_a_real_operation_is_told(run: str, name: str, source: str) -> None:
    session = Session(str(Path(CORPUS) / run), cache=False)
    matches = TOOL.run(session, None, {"query": f'"{name}"', "limit": 5}, "slices")
    about: set[str] = set()
    for match in column(matches, "slices", "event").tolist():
        details = event(session, match).tables["about"]
        names, values = ([(c.strings or [])[code] for code in c.values.tolist()] for c in details.columns)
        about.add(dict(zip(names, values, strict=True)).get("source", ""))
    assert any(source in text for text in about), about


@pytest.mark.skipif(not CORPUS, reason="TPUPROF_CORPUS does not name the corpus of real traces")
@pytest.mark.parametrize(
    ("run", "kinds"),
    [
        ("tracelens_mi300_jax/plugins/profile/jax08_gemm", ("hlo_ops", "ops", "stream", "modules")),
        ("xprof_tpu_inference_2_old/plugins/profile/run", ("hlo_ops", "ops", "modules", "async")),
        ("own_jax_cpu/plugins/profile/mlp", ("hlo_ops", "ops")),
        ("xprof_gpu_multi_worker/plugins/profile/GPU-multi-worker", ("ops", "stream")),
    ],
)
def test_links_of_real_events_lead_to_what_they_name(run: str, kinds: tuple[str, ...]) -> None:
    session = Session(str(Path(CORPUS) / run), cache=False)
    host = session.hosts[0]
    payload = TOOL.run(session, [host], {})
    kind_column = next(c for c in payload.tables["tracks"].columns if c.name == "kind")
    kind_of = [(kind_column.strings or [])[code] for code in kind_column.values.tolist()]
    for kind in kinds:
        lines = [
            track
            for track, track_kind in zip(column(payload, "tracks", "track").tolist(), kind_of, strict=True)
            if track_kind == kind
        ]
        boxes = np.flatnonzero(column(payload, "boxes", "track") == lines[-1 if kind == "stream" else 0])
        details = event(session, int(column(payload, "boxes", "event")[boxes[len(boxes) // 2]]), [host])
        tool, params = (c for c in details.tables["links"].columns if c.name != "text")
        links = list(
            zip(
                *([(c.strings or [])[code] for code in c.values.tolist()] for c in (tool, params)),
                strict=True,
            )
        )
        assert links, kind
        for name, link_params in links:
            with contextlib.suppress(
                ToolUnavailable
            ):  # the page does not show a link to a tool that has nothing to show
                assert_leads_somewhere(session, name, json.loads(link_params))
