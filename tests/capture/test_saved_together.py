"""Workers that capture themselves into one log directory at the same moment lose no profile."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tb_tpuprof.capture.messages import message_class
from tb_tpuprof.capture.reply import read_reply
from tb_tpuprof.ingest.storage import writing
from tb_tpuprof.ingest.storage.runs import find_runs
from tb_tpuprof.ingest.storage.writing import RunFolder, new_run
from tb_tpuprof.ingest.xspace.messages import xspace_class
from tests.capture.double import good, serving, trickling
from tests.capture.test_job import QUICK, states
from tests.ingest.xspaces import small_xspace

ROUNDS = 100
_SAVE = """
import sys, time
from tb_tpuprof.ingest.storage.writing import RunFolder
logdir, worker, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
print("ready", flush=True)
sys.stdin.readline()
for number in range(rounds):
    saved = RunFolder(logdir, f"run_{number}").save("localhost_9012", [worker.encode() * (number + 1)])
    assert saved.size_bytes == number + 1, saved
"""


def named(host: bytes) -> bytes:
    """A profile that names its host."""
    space = xspace_class()()
    space.planes.add(name=b"/host:CPU").lines.add().events.add(duration_ps=5)
    space.hostnames.append(host)
    data: bytes = space.SerializeToString()
    return data


@pytest.mark.parametrize("has_links", [True, False])
def test_two_processes_that_save_together_keep_both_files(tmp_path: Path, has_links: bool) -> None:
    """A hundred runs, into each of which two processes save a file of the same name at the same moment."""
    code = (
        _SAVE
        if has_links
        else f"import os\ndef refuse(*_): raise OSError(95, 'no')\nos.link = refuse\n{_SAVE}"
    )
    (tmp_path / "plugins" / "profile").mkdir(parents=True)
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path), name, str(ROUNDS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in "ab"
    ]
    for worker in workers:
        assert worker.stdout
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin
        worker.stdin.write("go\n")
        worker.stdin.flush()
    assert [worker.wait(60) for worker in workers] == [0, 0]
    for number in range(ROUNDS):
        folder = tmp_path / "plugins" / "profile" / f"run_{number}"
        files = {path.name: path.read_text() for path in folder.iterdir()}
        assert sorted(files) == ["localhost_9012.xplane.pb", "localhost_9012_2.xplane.pb"]
        assert sorted(files.values()) == ["a" * (number + 1), "b" * (number + 1)]
    assert not list((tmp_path / "plugins" / "profile").glob(".*"))


def test_a_second_file_of_a_name_gets_a_suffix_and_says_so(tmp_path: Path) -> None:
    folder = new_run(str(tmp_path), "podx")
    with serving(good()) as (target, _):
        _, first = states(folder, target)
        _, second = states(folder, target)
    assert (first.host, first.message) == (f"127.0.0.1_{target.port}", "")
    assert second.host == f"127.0.0.1_{target.port}_2"
    assert f"127.0.0.1_{target.port}_2" in second.message
    (run,) = find_runs(str(tmp_path))
    assert [file.host for file in run.files] == [first.host, second.host]


def test_the_file_is_named_after_the_host_in_the_profile(tmp_path: Path) -> None:
    """Both workers captured `localhost`: their profiles name worker-0 and worker-7."""
    folder = new_run(str(tmp_path), "podx")
    for host in (b"worker-0", b"worker-7"):
        with serving(good(xspace=named(host))) as (target, _):
            _, ended = states(folder, target, QUICK)
            assert ended.host == f"{host.decode()}_{target.port}"


@pytest.mark.parametrize("host", [b"", b"x" * 300])
def test_a_profile_without_a_usable_host_is_named_after_the_address(host: bytes) -> None:
    response = message_class("ProfileResponse")(xspace=named(host))
    assert read_reply(response.SerializeToString()).host == ""


@pytest.mark.parametrize(
    ("host", "stem"),
    [
        ("../../etc/passwd", "etc_passwd_9012"),
        ("a/b\\c\0d", "a_b_c_d_9012"),
        ("wörker", "w_rker_9012"),
        ("...", "9012"),
    ],
)
def test_no_host_leads_out_of_the_run(tmp_path: Path, host: str, stem: str) -> None:
    from tb_tpuprof.capture.targets import file_stem

    name = file_stem(host, 9012)
    assert name.strip("_") == stem
    saved = new_run(str(tmp_path), "run").save(name, [b"x"])
    assert os.listdir(tmp_path / "plugins" / "profile" / "run") == [f"{saved.host}.xplane.pb"]


def test_unfinished_files_of_killed_captures_are_removed_after_a_day(tmp_path: Path) -> None:
    repository = tmp_path / "plugins" / "profile"
    repository.mkdir(parents=True)
    old, young, other = (repository / name for name in (".run.h.1.part", ".run.h.2.part", "kept.part"))
    for path in (old, young, other):
        path.write_bytes(b"x")
    for path in (old, other):
        os.utime(path, (1, 1))
    RunFolder(str(tmp_path), "run").save("h", [b"x"])
    assert (old.exists(), young.exists(), other.exists()) == (False, True, True)
    assert [run.name for run in find_runs(str(tmp_path))] == ["run"]


@pytest.mark.slow
def test_a_capture_that_is_killed_while_it_writes_leaves_no_run(tmp_path: Path) -> None:
    """SIGKILL after each of several pieces: no partial run is ever listed."""
    code = (
        "import os, signal, sys\n"
        "from tb_tpuprof.ingest.storage.writing import new_run\n"
        "def pieces():\n"
        "    for number in range(5):\n"
        "        if number == int(sys.argv[2]): os.kill(os.getpid(), signal.SIGKILL)\n"
        "        yield b'x' * 1000\n"
        "new_run(sys.argv[1], 'run').save('h', pieces())\n"
    )
    for number in range(5):
        killed = subprocess.run([sys.executable, "-c", code, str(tmp_path), str(number)], check=False)
        assert killed.returncode == -9
        assert find_runs(str(tmp_path)) == []
    assert writing._ABANDONED_AFTER_S > 3600


def test_a_capture_that_is_killed_while_it_receives_leaves_nothing(tmp_path: Path) -> None:
    """SIGKILL when a part of the reply has arrived."""
    content = small_xspace() * (300_000 // len(small_xspace()))
    command = [sys.executable, "-m", "tb_tpuprof", "capture", "--logdir", str(tmp_path), "--service_addr"]
    with (
        serving(good(xspace=content)) as (quick, _),
        trickling(quick, after=50_000, bytes_per_s=20_000) as slow,
    ):
        process = subprocess.Popen([*command, str(slow)], stderr=subprocess.PIPE, text=True)
        assert process.stderr
        assert any("receiving" in line for line in process.stderr)
        process.kill()
        process.communicate(timeout=20)
    assert process.returncode == -9
    assert find_runs(str(tmp_path)) == []
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
