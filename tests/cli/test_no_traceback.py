"""No command prints a traceback: not at its end, not with a full output, not when it is cancelled."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tb_tpuprof.cli.failing import INTERNAL, exit_code_of
from tb_tpuprof.ingest.storage import column_cache
from tb_tpuprof.ingest.xspace.messages import xspace_class
from tb_tpuprof.native import IS_COMPILED
from tb_tpuprof.tools import all_tools
from tests.synthetic import PlaneWriter, TpuJob, tpu_hosts, write_run

needs_compiled = pytest.mark.skipif(not IS_COMPILED, reason="only decoded columns are cached")
COMMANDS = [
    ["runs", "{logdir}"],
    ["tools", "{run}"],
    ["why", "{run}"],
    ["query", "{run}", "dur>1us", "--group", "name"],
    ["schema"],
    *(["show", tool.name, "{run}"] for tool in all_tools()),
]
# What `sitecustomize` of a command's process does: cache files take long to create, write and rename.
SLOW_DISK = """
import os, tempfile, time

create, replace = tempfile.NamedTemporaryFile, os.replace


def slow_create(*arguments, **options):
    time.sleep({step_s})
    file = create(*arguments, **options)
    write = file.write

    def slow_write(content):
        time.sleep({write_s})
        return write(content)

    file.write = slow_write
    return file


def slow_replace(*arguments, **options):
    time.sleep({step_s})
    return replace(*arguments, **options)


tempfile.NamedTemporaryFile, os.replace = slow_create, slow_replace
"""

# The same for a disk that holds one operation of a cache file until the command has printed its answer, and
# goes on slowly. What was held is written to the file of that name.
HELD_DISK = """
import os, pathlib, sys, tempfile, threading, time

create, replace = tempfile.NamedTemporaryFile, os.replace
n_done = {{"create": 0, "write": 0, "replace": 0}}


def is_answering():
    frame = sys._current_frames().get(threading.main_thread().ident)
    while frame is not None and frame.f_code.co_name != "_outcome":
        frame = frame.f_back
    return frame is not None


def reached(kind):
    if threading.current_thread() is threading.main_thread():
        return
    n_done[kind] += 1
    if (kind, n_done[kind]) == ({kind!r}, {number}):
        ends_at = time.monotonic() + 60
        while is_answering() and time.monotonic() < ends_at:
            time.sleep(0.005)
        pathlib.Path({note!r}).write_text(f"{{kind}} {{n_done[kind]}}")
        time.sleep(0.05)
    elif pathlib.Path({note!r}).exists():
        time.sleep(0.005)


def held_create(*arguments, **options):
    reached("create")
    file = create(*arguments, **options)
    write = file.write

    def held_write(content):
        reached("write")
        return write(content)

    file.write = held_write
    return file


def held_replace(*arguments, **options):
    reached("replace")
    return replace(*arguments, **options)


tempfile.NamedTemporaryFile, os.replace = held_create, held_replace
"""
# A process that has imported what commands use and runs each command of its input, a line of JSON, in a fork
# of itself: a short command spends most of its time on imports. The fork ends as any command does.
FORKING = """
import importlib, json, os, signal, sys
from tb_tpuprof.__main__ import main
from tb_tpuprof.tools import all_tools

for name in sys.argv[1:]:
    importlib.import_module(f"tb_tpuprof.cli.{name}")
all_tools()
for line in sys.stdin:
    code, arguments, environment, errors = json.loads(line)
    child = os.fork()
    if child == 0:
        signal.alarm(120)  # a command that hangs is killed
        os.dup2(os.open(os.devnull, os.O_RDWR), 0)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT), 2)
        os.environ.update(environment)
        exec(code, {})
        sys.argv = ["tpuprof", *arguments]
        sys.exit(main())
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
# Where in the writing of its columns a command ends: at its begin, in it, and at its end.
PLACES = (("create", 1), ("write", 1), ("write", 2), ("write", 9), ("replace", 1))
AS_IT_IS = 2  # times with a disk as it is


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One host whose columns are worth caching: most of its bytes are a plane that nobody asks for."""
    ((host, data),) = tpu_hosts(TpuJob(n_steps=2000), (1.0,)).items()
    padding = xspace_class()()
    plane = PlaneWriter(padding, "/host:padding")
    plane.stats(plane.plane, {"padding": b"\0" * column_cache.MIN_TRACE_BYTES})
    folder = tmp_path_factory.mktemp("logs") / "plugins" / "profile" / "large"
    write_run(folder, {host: data + padding.SerializeToString()})
    (file,) = folder.iterdir()
    assert file.stat().st_size > column_cache.MIN_TRACE_BYTES
    return folder


@pytest.fixture
def slow_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[float, float], None]:
    """Makes the disk of processes that are started afterwards slow: seconds for each write, and for creating
    and renaming a file.
    """

    def make(write_s: float, step_s: float) -> None:
        folder = tmp_path / "slow_disk"
        folder.mkdir()
        (folder / "sitecustomize.py").write_text(SLOW_DISK.format(write_s=write_s, step_s=step_s))
        monkeypatch.setenv("PYTHONPATH", str(folder))

    return make


def started(command: list[str], run: Path, cache: Path, **options: object) -> subprocess.Popen[str]:
    filled = [part.format(run=run, logdir=run.parents[2]) for part in command]
    environment = {**os.environ, "TPUPROF_CACHE_DIR": str(cache)}
    arguments = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, **options}
    return subprocess.Popen(
        [sys.executable, "-m", "tb_tpuprof", *filled],
        env=environment,
        text=True,
        **arguments,  # type: ignore[call-overload]
    )


def check(process: subprocess.Popen[str]) -> str:
    _, errors = process.communicate(timeout=120)
    check_errors(errors)
    return errors


def check_errors(errors: str) -> None:
    assert "Traceback" not in errors, errors
    assert "Exception" not in errors, errors


@pytest.fixture(scope="module")
def forking() -> Iterator[subprocess.Popen[str]]:
    """The process that forks for each command."""
    if not hasattr(os, "fork"):
        pytest.skip("this system has no forks")
    modules = dict.fromkeys(command[0] for command in COMMANDS)
    with subprocess.Popen(
        [sys.executable, "-c", FORKING, *modules],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # a thread would be missing in the fork
        text=True,
    ) as process:
        yield process


def forked(
    process: subprocess.Popen[str], code: str, command: list[str], run: Path, cache: Path
) -> tuple[int, str]:
    """The exit code and the errors of a command that ran after `code` in a fork."""
    assert process.stdin
    assert process.stdout
    arguments = [part.format(run=run, logdir=run.parents[2]) for part in command]
    errors = cache.parent / "errors"
    job = (code, arguments, {"TPUPROF_CACHE_DIR": str(cache)}, str(errors))
    process.stdin.write(json.dumps(job) + "\n")
    process.stdin.flush()
    exit_code = int(process.stdout.readline())
    return exit_code, errors.read_text("utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_command_prints_a_traceback_while_it_caches(command: list[str], run: Path, tmp_path: Path) -> None:
    """With an empty cache, so that each run ends while its columns are being written."""
    for number in range(AS_IT_IS):
        check(started(command, run, tmp_path / str(number)))


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_command_prints_a_traceback_wherever_in_the_writing_it_ends(
    command: list[str], run: Path, tmp_path: Path, forking: subprocess.Popen[str]
) -> None:
    """Each place of the writing waits for the end of the command, which must wait for the writing."""
    exit_codes = set()
    for kind, number in PLACES:
        folder = tmp_path / f"{kind}_{number}"
        folder.mkdir()
        note, columns = folder / "held", folder / "cache" / "columns"
        code = HELD_DISK.format(kind=kind, number=number, note=str(note))
        exit_code, errors = forked(forking, code, command, run, folder / "cache")
        check_errors(errors)
        assert exit_code >= 0, "killed by a signal"
        exit_codes.add(exit_code)
        assert len(exit_codes) == 1
        if not columns.exists():  # what opens no trace writes nothing, wherever it would be held
            assert not IS_COMPILED or command[0] not in ("tools", "why", "query")
            assert not note.exists()
            return
        assert note.read_text() == f"{kind} {number}"
        assert [file.suffix for file in columns.iterdir()] == [".tpc"]


@pytest.mark.slow
@needs_compiled
def test_columns_are_written_to_a_slow_disk_though_nobody_reads_the_answer(
    run: Path, tmp_path: Path, slow_disk: Callable[[float, float], None]
) -> None:
    """The reader of the output ends before the command does."""
    slow_disk(0.01, 0.01)
    process = started(["show", "framework_op_stats", "{run}"], run, tmp_path / "c", stdout=subprocess.PIPE)
    assert process.stdout
    process.stdout.close()
    assert process.stderr
    errors = process.stderr.read()
    assert (process.wait(60), errors) == (0, "")
    (file,) = (tmp_path / "c" / "columns").iterdir()
    assert file.suffix == ".tpc"


def started_writing(run: Path, cache: Path) -> subprocess.Popen[str]:
    """A command that has begun to write its columns."""
    process = started(["show", "framework_op_stats", "{run}"], run, cache, start_new_session=True)
    ends_at = time.monotonic() + 60
    while not list(cache.glob("columns/*.part")):
        assert process.poll() is None, process.stderr and process.stderr.read()
        assert time.monotonic() < ends_at
        time.sleep(0.02)
    return process


@pytest.mark.slow
@needs_compiled
@pytest.mark.parametrize("delay_s", [0.0, 1.0, 2.5])
def test_ctrl_c_abandons_a_slow_write(
    delay_s: float, run: Path, tmp_path: Path, slow_disk: Callable[[float, float], None]
) -> None:
    """While the answer is computed or after it was printed; the whole write would take over 10 s."""
    slow_disk(0.2, 0.0)
    process = started_writing(run, tmp_path / "c")
    time.sleep(delay_s)
    pressed_at = time.monotonic()
    process.send_signal(signal.SIGINT)
    errors = check(process)
    assert errors.strip() == "tpuprof: cancelled."
    assert process.returncode == 130
    assert time.monotonic() - pressed_at < 5
    assert not list((tmp_path / "c" / "columns").iterdir())


@needs_compiled
def test_a_second_ctrl_c_does_not_wait_for_a_disk_that_hangs(
    run: Path, tmp_path: Path, slow_disk: Callable[[float, float], None]
) -> None:
    slow_disk(60.0, 0.0)
    process = started_writing(run, tmp_path / "c")
    process.send_signal(signal.SIGINT)
    assert process.stderr
    assert [process.stderr.readline() for _ in range(2)] == ["\n", "tpuprof: cancelled.\n"]
    pressed_at = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert check(process) == ""
    assert process.returncode == -signal.SIGINT
    assert time.monotonic() - pressed_at < 5


@pytest.mark.slow
@needs_compiled
def test_columns_are_cached_although_the_command_ends(run: Path, tmp_path: Path) -> None:
    """The write finishes, and the next command maps the columns."""
    for _ in range(2):
        check(started(["show", "framework_op_stats", "{run}"], run, tmp_path))
    (file,) = (tmp_path / "columns").iterdir()
    assert file.suffix == ".tpc"


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("command", [["runs", "{logdir}"], ["why", "{run}"], ["schema"]], ids=" ".join)
def test_a_full_output_is_one_line(command: list[str], run: Path, tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        process = started(command, run, tmp_path, stdout=full)
        errors = check(process)
    assert process.returncode == 4
    assert errors == "tpuprof: cannot write the output: No space left on device.\n"


# A command that says when it listens to Ctrl-C: before that, Python itself may still be starting.
LISTENING = """
import signal, sys
from tb_tpuprof import __main__

set_handler = signal.signal


def noted(number, handler):
    before = set_handler(number, handler)
    if handler is __main__._interrupt:
        print("listening", flush=True)
    return before


signal.signal = noted
sys.argv[0] = "tpuprof"
sys.exit(__main__.main())
"""


@pytest.mark.slow
@pytest.mark.parametrize("delay_s", [0.0, 0.03, 0.1, 0.2, 0.35, 0.6])
def test_ctrl_c_at_any_time_ends_quietly(delay_s: float, run: Path, tmp_path: Path) -> None:
    """During imports, decoding and printing."""
    with subprocess.Popen(
        [sys.executable, "-c", LISTENING, "show", "overview_page", str(run)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "TPUPROF_CACHE_DIR": str(tmp_path)},
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "listening\n"
        time.sleep(delay_s)
        process.send_signal(signal.SIGINT)
        check(process)
    assert process.returncode in (130, -signal.SIGINT, 0)  # the last two: its answer was printed


INTERRUPTED_IMPORT = """
import builtins, sys
from tb_tpuprof import __main__

imported = builtins.__import__


def interrupted(name, *arguments, **options):
    if name.startswith("tb_tpuprof.cli"):
        raise KeyboardInterrupt
    return imported(name, *arguments, **options)


builtins.__import__ = interrupted
sys.exit(getattr(__main__, sys.argv[1])())
"""


@pytest.mark.parametrize(
    ("function", "name"), [("main", "tpuprof"), ("capture_tpu_profile", "capture_tpu_profile")]
)
def test_ctrl_c_during_imports(function: str, name: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_IMPORT, function], capture_output=True, text=True
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", f"\n{name}: cancelled.\n")


INTERRUPTED_CLASS = """
import signal


class Name:
    def __set_name__(self, owner, name):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        print("goes on")


class Owner:
    name = Name()
"""
IMPORTING_COMMAND = """
import sys, time
from tb_tpuprof.__main__ import _ended


def run():
    import interrupted_class

    print("imported")
    time.sleep(50)


sys.exit(_ended("tpuprof", run))
"""


@pytest.mark.parametrize("is_itself_imported", [False, True])
def test_ctrl_c_during_an_import_waits_for_its_end(is_itself_imported: bool, tmp_path: Path) -> None:
    """Python wraps an exception of `__set_name__` into a RuntimeError (up to 3.11), or ignores it."""
    (tmp_path / "interrupted_class.py").write_text(INTERRUPTED_CLASS)
    (tmp_path / "importing_command.py").write_text(IMPORTING_COMMAND)
    script = "import importing_command" if is_itself_imported else IMPORTING_COMMAND
    started_at = time.monotonic()
    ended = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert (ended.returncode, ended.stderr) == (130, "\ntpuprof: cancelled.\n")
    assert ended.stdout == "goes on\nimported\n"
    assert time.monotonic() - started_at < 40


def test_an_internal_error_is_one_line_unless_details_are_wanted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def command() -> int:
        raise ValueError("odd\x1b[31m")

    assert exit_code_of("tpuprof", command) == INTERNAL
    errors = capsys.readouterr().err
    assert errors.startswith("tpuprof: internal error: ValueError: odd")
    assert "\x1b" not in errors
    assert "TPUPROF_DEBUG=1" in errors
    monkeypatch.setenv("TPUPROF_DEBUG", "1")
    with pytest.raises(ValueError, match="odd"):
        exit_code_of("tpuprof", command)
