"""A real TensorBoard on the demo runs, and a real Chromium that may talk to nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tb_tpuprof.tools import NAMES
from tests.browser.chromium import find_chromium
from tests.browser.made_runs import make_runs
from tests.free_port import free_port
from tests.golden_files import DEMO_LOGS

playwright_api = pytest.importorskip(
    "playwright.sync_api", reason="NO BROWSER TESTS WERE RUN: playwright is not installed"
)

STARTING_SECONDS = 60.0
CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--renderer-process-limit=1",
    "--enable-features=NetworkServiceInProcess2",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Nothing beyond this machine can be reached: a proxy that is not there, for all addresses but its own.
    "--proxy-server=http://127.0.0.1:9",
]
VIEWPORT = {"width": 1440, "height": 900}
# What TensorBoard's page is to ours: a bar above, and our document in a frame of the same origin. Walks open
# it instead unless they are marked `tensorboard`: TensorBoard's own page takes five times as long.
STAND_IN = """<!doctype html><title>TensorBoard</title>
<body style="margin: 0"><div style="height: 64px"></div>
<iframe src="/data/plugin_entry.html?name=profile"
  style="border: 0; width: 100vw; height: calc(100vh - 64px)"></iframe></body>"""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The first walk of each subject is one of every `make test` unless it is marked; the others are slow."""
    walked: set[str] = set()
    for item in items:
        if Path(__file__).parent in item.path.parents:
            subject = subject_of(item.path.stem.removeprefix("test_"))
            if subject in walked:
                item.add_marker(pytest.mark.slow)
            walked.add(subject)


def subject_of(name: str) -> str:
    """What a file walks through: a tool that has several, such as `trace_viewer` for `trace_viewer_marks`, or
    what it is named for.
    """
    return next((tool for tool in NAMES if name.startswith(tool)), name)


@dataclass
class Server:
    """A TensorBoard process on a log directory."""

    url: str
    logdir: Path
    process: subprocess.Popen[bytes]
    log: Path


def copied_demo_logs(target: Path) -> Path:
    """The runs and scalars of the demo logs in a folder of their own, as a log directory without scripts and
    prose.
    """
    shutil.copytree(DEMO_LOGS, target, ignore=shutil.ignore_patterns("*.py", "*.md", "__pycache__"))
    return target


def start_tensorboard(logdir: Path, scratch: Path) -> Server:
    """Start TensorBoard and wait until it answers. Fails with its log where it ends or stays silent."""
    port = free_port()
    log = scratch / f"tensorboard-{port}.log"
    environment = {**os.environ, "TPUPROF_CACHE_DIR": str(scratch / "cache")}
    command = [
        sys.executable,
        "-m",
        "tensorboard.main",
        "--logdir",
        str(logdir),
        "--port",
        str(port),
        "--host",
        "127.0.0.1",
    ]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment)
    server = Server(f"http://127.0.0.1:{port}", logdir, process, log)
    deadline = time.monotonic() + STARTING_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            urllib.request.urlopen(f"{server.url}/data/plugins_listing", timeout=5).close()
        except OSError:
            time.sleep(0.1)
        else:
            return server
    process.kill()
    raise AssertionError(f"TensorBoard did not start:\n{log.read_text('utf-8', 'replace')[-3000:]}")


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One TensorBoard for all walks of this process: the demo logs and the runs that walks made."""
    scratch = tmp_path_factory.mktemp("tensorboard")
    logs = copied_demo_logs(scratch / "logs")
    make_runs(logs)
    started = start_tensorboard(logs, scratch)
    yield started
    started.process.terminate()
    started.process.wait(20)


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """The machine's own Chromium; none is ever downloaded. Its cache stays from walk to walk: most of a fresh
    browser's work would be to compile TensorBoard's six megabytes of JavaScript.
    """
    path = find_chromium()
    if path is None:
        pytest.skip(
            "NO BROWSER TESTS WERE RUN: no Chromium was found; install chromium or set TPUPROF_CHROMIUM"
        )
    with playwright_api.sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            str(tmp_path_factory.mktemp("chromium")),
            executable_path=path,
            args=CHROMIUM_FLAGS,
            viewport=VIEWPORT,
            reduced_motion="reduce",
        )
        yield context
        context.close()


@dataclass
class Watch:
    """What a page did that it should not: requests to other origins, errors it threw or logged. `others`:
    origins that a test expects, and answers itself.
    """

    origin: str
    others: set[str] = field(default_factory=set)
    foreign: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def see(self, request: object) -> None:
        """Note requests that do not go to TensorBoard."""
        parts = urlsplit(request.url)
        is_own = f"{parts.scheme}://{parts.netloc}" in {self.origin, *self.others}
        if not is_own and parts.scheme not in ("data", "blob"):
            self.foreign.append(request.url)


@pytest.fixture
def watch(server: Server) -> Watch:
    """Filled while a test's page runs; `page` checks it at the end."""
    return Watch(server.url)


def is_start(url: str) -> bool:
    """Whether an address is TensorBoard's own page."""
    return urlsplit(url).path == "/"


@pytest.fixture
def page(chromium: object, watch: Watch, request: pytest.FixtureRequest) -> Iterator[object]:
    """A fresh page of a browser that remembers nothing but its cache. The test fails if it sent a request to
    another origin or threw an error.
    """
    before = set(chromium.pages)
    fresh = chromium.new_page()
    chromium.on("request", watch.see)
    kept = {"origin": watch.origin, "storageTypes": "cookies,local_storage,indexeddb,service_workers"}
    chromium.new_cdp_session(fresh).send("Storage.clearDataForOrigin", kept)
    if request.node.get_closest_marker("tensorboard") is None:
        fresh.route(is_start, lambda route: route.fulfill(body=STAND_IN, content_type="text/html"))
    fresh.set_default_timeout(20_000)
    fresh.on("pageerror", lambda error: watch.errors.append(str(error)))
    yield fresh
    artifacts = os.environ.get("TPUPROF_SHOTS")
    if artifacts:
        Path(artifacts).mkdir(parents=True, exist_ok=True)
        fresh.screenshot(path=str(Path(artifacts) / f"{request.node.name}.png"))
    for opened in set(chromium.pages) - before:
        opened.close()
    chromium.remove_listener("request", watch.see)
    chromium.unroute_all(behavior="ignoreErrors")
    chromium.clear_permissions()
    assert not watch.foreign, "requests to other origins"
    assert not watch.errors, "errors thrown in the page"
