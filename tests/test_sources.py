"""Places in source code: links and folders as the user sets them, and which files a hostile trace can
reach.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tb_tpuprof.settings import (
    FOLDERS_VARIABLE,
    LINKS_VARIABLE,
    MAX_RULES,
    source_folders,
    source_links,
)
from tb_tpuprof.sources import MAX_BYTES, MAX_CHARACTERS, MAX_PATH, snippet
from tb_tpuprof.tools.source_lines import source_tables

CODE = "\n".join(f"line_{n} = {n}" for n in range(1, 21))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with source files that is allowed, next to a secret that is not."""
    root = tmp_path / "project"
    (root / "model").mkdir(parents=True)
    (root / "train.py").write_text(CODE)
    (root / "model" / "net.py").write_text("a\r\n\tb\x1b[31m\r\nc" + "x" * 500)
    (tmp_path / "secret.py").write_text(CODE)
    monkeypatch.setenv(FOLDERS_VARIABLE, f"{root};/app={root};={root / 'model'}")
    return root


def test_lines_around_the_place(project: Path) -> None:
    found = snippet(f"{project}/train.py:10")
    assert found is not None
    assert (found.first_line, found.line) == (7, 10)
    assert found.lines == tuple(f"line_{n} = {n}" for n in range(7, 14))


@pytest.mark.parametrize(
    ("line", "first", "n"), [(1, 1, 4), (3, 1, 6), (4, 1, 7), (17, 14, 7), (18, 15, 6), (20, 17, 4)]
)
def test_at_the_ends_of_the_file(project: Path, line: int, first: int, n: int) -> None:
    found = snippet(f"{project}/train.py:{line}")
    assert found is not None
    assert (found.first_line, len(found.lines)) == (first, n)
    assert found.lines[line - first] == f"line_{line} = {line}"


@pytest.mark.parametrize("line", ["0", "21", "-1", "x", "", "12345678", "1e1"])
def test_lines_that_the_file_does_not_have(project: Path, line: str) -> None:
    assert snippet(f"{project}/train.py:{line}") is None


def test_a_prefix_of_another_machine_and_relative_paths(project: Path) -> None:
    away, relative = snippet("/app/train.py:2:7"), snippet("net.py:1")
    assert away is not None
    assert away.lines[1] == "line_2 = 2"
    assert away.place == "/app/train.py:2:7"
    assert relative is not None
    assert relative.lines[0] == "a"
    assert snippet("train.py:1") is None  # relative paths are those of another folder


def test_lines_are_plain_and_short(project: Path) -> None:
    found = snippet(f"{project}/model/net.py:2")
    assert found is not None
    assert found.lines[1] == "    b [31m"
    assert found.lines[2] == ("c" + "x" * 500)[:MAX_CHARACTERS]


def test_nothing_is_read_by_default(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert snippet(f"{project}/train.py:1") is not None
    monkeypatch.delenv(FOLDERS_VARIABLE)
    assert snippet(f"{project}/train.py:1") is None


@pytest.mark.parametrize(
    "path",
    [
        "{root}/../secret.py",
        "{root}/model/../train.py",
        "{root}/./train.py",
        "{root}//train.py",
        "{root}2/train.py",
        "{root}",
        "/app/../secret.py",
        "../secret.py",
        "/etc/passwd",
        "/app//etc/passwd",
        "/app/\0.py",
        "/app/\ud800.py",
        "/app/missing.py",
        "/app/train.py/x.py",
        "/app/model",
    ],
)
def test_paths_that_lead_elsewhere(project: Path, path: str) -> None:
    (project.parent / "project2").mkdir()
    (project.parent / "project2" / "train.py").write_text(CODE)
    assert snippet(path.format(root=project) + ":1") is None


def test_links_are_not_followed(project: Path) -> None:
    (project / "link.py").symlink_to(project.parent / "secret.py")
    (project / "out").symlink_to(project.parent)
    (project / "inside.py").symlink_to(project / "train.py")
    for path in ("link.py", "out/secret.py", "inside.py"):
        assert (project / path).read_text() == CODE
        assert snippet(f"{project}/{path}:1") is None


def test_hidden_and_other_files_are_not_read(project: Path) -> None:
    for name in (".env.py", ".git/config.py", "id_rsa", "notes.txt", "py"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text(CODE)
        assert snippet(f"{project}/{name}:1") is None


def test_devices_pipes_and_binary_files_are_not_read(project: Path) -> None:
    os.mkfifo(project / "pipe.py")  # must not wait for a writer
    (project / "binary.py").write_bytes(b"a\n\0b")
    (project / "folder.py").mkdir()
    for name in ("pipe.py", "binary.py", "folder.py"):
        assert snippet(f"{project}/{name}:1") is None


def test_the_largest_file_and_the_longest_path(project: Path) -> None:
    (project / "most.py").write_bytes(b"\n" * MAX_BYTES)
    (project / "more.py").write_bytes(b"\n" * (MAX_BYTES + 1))
    assert snippet(f"{project}/most.py:1") is not None
    assert snippet(f"{project}/more.py:1") is None
    start = f"{project}/train.py:1"
    assert len(start) < MAX_PATH
    assert snippet("/app/" + "a/" * MAX_PATH + "train.py:1") is None


def test_open_files_are_closed(project: Path) -> None:
    (project / "link.py").symlink_to(project / "train.py")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        for path in ("train.py", "model/net.py", "link.py", "model/missing.py", "model", "folder/x.py"):
            snippet(f"{project}/{path}:1")
    assert len(os.listdir("/proc/self/fd")) == before


def test_the_table_shows_the_first_place_that_may_be_shown(project: Path) -> None:
    tables = source_tables(["/usr/lib/x.py:3", "/app/train.py:19", "/app/train.py:1"])
    table = tables["source_lines"]
    assert table.note == "/app/train.py:19"
    columns = {column.name: column for column in table.columns}
    assert columns["line"].values.tolist() == [16, 17, 18, 19, 20]
    assert columns["is_place"].values.tolist() == [False, False, False, True, False]
    assert source_tables(["/usr/lib/x.py:3"]) == {}
    elsewhere = [f"/usr/lib/x.py:{n}" for n in range(1, 9)]
    assert source_tables([*elsewhere[:7], "/app/train.py:1"]) != {}
    assert source_tables([*elsewhere, "/app/train.py:1"]) == {}


def links(text: str, monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, str], tuple[str, ...]]:
    """The rules of TPUPROF_SOURCE and what is wrong with the others."""
    monkeypatch.setenv(LINKS_VARIABLE, text)
    found = source_links()
    return {rule.prefix: rule.target for rule in found.rules}, found.problems


def test_several_links_longest_prefix_first(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        " /app=https://a.example/x ; /app/vendor/=http://b.example:8080/{path}?l={line};=https://c.example ;"
    )
    rules, problems = links(text, monkeypatch)
    assert list(rules.items()) == [
        ("/app/vendor", "http://b.example:8080/{path}?l={line}"),
        ("/app", "https://a.example/x"),
        ("", "https://c.example"),
    ]
    assert problems == ()


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("/app=javascript:alert(1)", "https://host/path"),
        ("/app=file:///etc/passwd", "https://host/path"),
        ("/app=//host/x", "https://host/path"),
        ("/app=https://", "https://host/path"),
        ("/app", "https://host/path"),
        ("/=https://host/x", "names no folder"),
        ("/app=https://me:secret@host/x", "user name"),
        ("/app=https://{path}.example/x", "placeholder"),
        ("/app=https://host/a b", "character"),
        ('/app=https://host/"x', "character"),
        ("/app=https://host:port/x", "ort"),
        ("/app=https://[::1/x", "IPv6"),
    ],
)
def test_links_that_do_not_apply(entry: str, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rules, problems = links(f"{entry};/other=https://host/x", monkeypatch)
    assert rules == {"/other": "https://host/x"}
    (problem,) = problems
    assert problem.startswith(f"{LINKS_VARIABLE}: the entry ")
    assert reason in problem


def test_the_most_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [f"/p{n}=https://host/{n}" for n in range(MAX_RULES + 1)]
    rules, problems = links(";".join(entries[:MAX_RULES]), monkeypatch)
    assert (len(rules), problems) == (MAX_RULES, ())
    rules, problems = links(";".join(entries), monkeypatch)
    assert len(rules) == MAX_RULES
    assert problems == (f"{LINKS_VARIABLE}: only the first {MAX_RULES} of {MAX_RULES + 1} entries apply.",)


def test_folders_that_do_not_apply(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDERS_VARIABLE, "src;/app=src;/;/x=/;/srv/code")
    found = source_folders()
    assert [rule.target for rule in found.rules] == ["/srv/code"]
    assert [problem.rpartition(": ")[2] for problem in found.problems] == [
        "write an absolute folder, or PREFIX=FOLDER.",
        "write an absolute folder, or PREFIX=FOLDER.",
        "the whole file system is too much.",
        "the whole file system is too much.",
    ]
