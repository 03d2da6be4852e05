"""Lines of source code in the answers about an operation, an event and a function: of places that the trace
names, and of no path that a request names.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tb_tpuprof.errors import BadParameter, EventNotFound
from tb_tpuprof.session import Session
from tb_tpuprof.settings import FOLDERS_VARIABLE
from tb_tpuprof.tools import get_tool
from tb_tpuprof.tools.payload import Payload
from tests.builders import drawing
from tests.golden_files import demo_runs
from tests.tools.drawn_session import session_of

FRAME = "/app/job.py(6): train_step"


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of source code; the machine that ran the job called it /app or /tmp/demo."""
    (tmp_path / "job.py").write_text("\n".join(f"job {n}" for n in range(1, 11)))
    (tmp_path / "capture_jax_train.py").write_text("\n".join(f"jax {n}" for n in range(1, 101)))
    monkeypatch.setenv(FOLDERS_VARIABLE, f"/app={tmp_path};/tmp/demo={tmp_path}")
    return tmp_path


def lines(payload: Payload) -> tuple[str, list[int], list[str], list[int]]:
    """Place, numbers, texts, and the numbers of marked lines."""
    table = payload.tables["source_lines"]
    number, text, mark = table.columns
    assert text.strings is not None
    texts = [text.strings[code] for code in text.values.tolist()]
    marked = [n for n, is_place in zip(number.values.tolist(), mark.values.tolist(), strict=True) if is_place]
    return table.note, number.values.tolist(), texts, marked


@pytest.fixture
def torch() -> Session:
    return session_of(drawing(f"main [{FRAME}      ] [other]"))


def test_of_an_event(code: Path, torch: Session) -> None:
    payload = get_tool("trace_viewer").run(torch, None, {"event": "0"}, "event")
    assert lines(payload) == ("/app/job.py:6", list(range(3, 10)), [f"job {n}" for n in range(3, 10)], [6])
    other = get_tool("trace_viewer").run(torch, None, {"event": "1"}, "event")
    assert "source_lines" not in other.tables


def test_of_a_function(code: Path, torch: Session) -> None:
    payload = get_tool("flame_graph").run(torch, None, {"function": FRAME}, "function")
    assert lines(payload)[0] == "/app/job.py:6"
    other = get_tool("flame_graph").run(torch, None, {"function": "other"}, "function")
    assert "source_lines" not in other.tables


def test_of_an_operation_by_its_stack(code: Path) -> None:
    session = Session(str(demo_runs()["jax_train"]), cache=False)
    payload = get_tool("op_profile").run(session, None, {"op": "dot.1"}, "op")
    assert lines(payload) == (
        "/tmp/demo/capture_jax_train.py:41",
        list(range(38, 45)),
        [f"jax {n}" for n in range(38, 45)],
        [41],
    )


def test_without_an_allowed_folder_there_are_none(
    code: Path, torch: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(FOLDERS_VARIABLE)
    payload = get_tool("trace_viewer").run(torch, None, {"event": "0"}, "event")
    assert "source_lines" not in payload.tables


def test_requests_cannot_name_a_path(code: Path, torch: Session) -> None:
    """A file that the trace does not name is not shown, though it is in an allowed folder."""
    with pytest.raises(BadParameter):
        get_tool("flame_graph").run(torch, None, {"function": "/app/job.py(7): train_step"}, "function")
    with pytest.raises(BadParameter):
        get_tool("op_profile").run(
            Session(str(demo_runs()["jax_train"]), cache=False), None, {"op": "/app/job.py:7"}, "op"
        )
    with pytest.raises(EventNotFound):
        get_tool("trace_viewer").run(torch, None, {"event": "2"}, "event")
