"""From a running job to its profile in the page: the dialog in TensorBoard, against profiler servers that
answer and that fail.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from playwright.sync_api import Locator, Page, expect

from tb_tpuprof.capture.targets import Target
from tests.browser.conftest import Server, start_tensorboard
from tests.browser.walking import expect_state, expect_tool, frame_of, link, state_of
from tests.capture.double import continuously_profiled, free_target, good, hanging, serving, status
from tests.free_port import free_port
from tests.golden_files import demo_runs
from tests.integration.jobs import python_with, running

OVERVIEW = "Overview"
XSPACE = next(demo_runs()["jax_train"].glob("*.xplane.pb")).read_bytes()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """TensorBoard on a log directory without any run."""
    scratch = tmp_path_factory.mktemp("capture")
    (scratch / "logs").mkdir()
    started = start_tensorboard(scratch / "logs", scratch)
    yield started
    started.process.terminate()
    started.process.wait(20)


JAX_JOB = """
import jax, jax.numpy as jnp
jax.profiler.start_server({port})
step = jax.jit(lambda x: jnp.tanh(x @ x) / 3)
x = jnp.ones((256, 256))
for n in range(10**9):
    with jax.profiler.StepTraceAnnotation("train", step_num=n):
        x = step(x).block_until_ready()
"""
TENSORFLOW_JOB = """
import tensorflow as tf
tf.profiler.experimental.server.start({port})
step = tf.function(lambda x: tf.tanh(x @ x) / 3)
x = tf.ones((256, 256))
for n in range(10**9):
    with tf.profiler.experimental.Trace("train", step_num=n, _r=1):
        x = step(x)
"""


def runs_of(server: Server) -> list[str]:
    """The runs below its log directory."""
    return sorted(path.name for path in server.logdir.glob("plugins/profile/*"))


def dialog(page: Page) -> Locator:
    """The dialog that is open."""
    return frame_of(page).get_by_role("dialog")


def chip(page: Page) -> Locator:
    """The button in the side bar, whatever its label."""
    return frame_of(page).get_by_role("complementary").locator(".capture-button")


def open_dialog(page: Page) -> Locator:
    """Click the side bar's button."""
    chip(page).click()
    expect(dialog(page).get_by_label("Targets")).to_be_focused()
    return dialog(page)


def fill(page: Page, *targets: Target, attempts: int = 1, duration_ms: int = 100) -> None:
    """Type the targets and quick options."""
    box = dialog(page)
    box.get_by_label("Targets").fill(", ".join(str(target) for target in targets))
    box.get_by_label("Duration").fill(str(duration_ms))
    more = box.locator("details.more")
    if more.get_attribute("open") is None:
        more.locator("summary").click()
    box.get_by_label("Attempts").fill(str(attempts))


def start(page: Page, *targets: Target, **options: int) -> None:
    """Open the dialog, fill it in, and press Enter."""
    open_dialog(page)
    fill(page, *targets, **options)
    dialog(page).get_by_label("Targets").press("Enter")


@pytest.mark.slow
@pytest.mark.tensorboard
def test_from_the_empty_page_to_the_overview_of_the_new_run(page: Page, server: Server) -> None:
    page.goto(link(server.url))
    if not runs_of(server):
        main = frame_of(page).get_by_role("main")
        expect(main).to_contain_text("jax.profiler.start_server(9012)")
        expect(main.get_by_role("button", name="Capture profile")).to_be_visible()
    with serving(good(0.2, XSPACE)) as (target, double):
        start(page, target, duration_ms=321)
        expect_tool(page, OVERVIEW)
    expect(dialog(page)).to_have_count(0)
    run = state_of(page)["run"]
    assert run in runs_of(server)
    expect(frame_of(page).get_by_label("Verdict")).to_be_visible()
    assert (double.requests[0].opts.duration_ms, double.requests[0].opts.host_tracer_level) == (321, 2)
    page.reload()
    expect_tool(page, OVERVIEW)
    expect_state(page, run=run)
    box = open_dialog(page)
    expect(box.get_by_label("Targets")).to_have_value(str(target))
    expect(box.get_by_label("Duration")).to_have_value("321")


def test_every_option_reaches_the_server_and_the_run_has_its_name(page: Page, server: Server) -> None:
    page.goto(link(server.url))
    with serving(good(0, XSPACE)) as (target, double):
        open_dialog(page)
        fill(page, target, duration_ms=50)
        box = dialog(page)
        box.get_by_text("Verbose").click()
        box.get_by_role("radiogroup", name="Device tracing").get_by_text("Off", exact=True).click()
        box.get_by_role("radiogroup", name="Python tracing").get_by_text("On", exact=True).click()
        box.get_by_label("Delay").fill("20")
        box.get_by_label("Run name").fill("my_run")
        box.get_by_role("button", name="Capture").click()
        expect_state(page, run="my_run")
    options = double.requests[0].opts
    assert (options.host_tracer_level, options.device_tracer_level, options.python_tracer_level) == (3, 0, 1)
    assert options.start_timestamp_ns > 0
    expect(open_dialog(page).get_by_label("Run name")).to_have_value("")


def test_device_settings_are_checked_and_sent(page: Page, server: Server) -> None:
    page.goto(link(server.url))
    with serving(good(0, XSPACE)) as (target, double):
        open_dialog(page)
        fill(page, target, duration_ms=50)
        box = dialog(page)
        settings = box.get_by_label("Device settings")
        settings.fill("tpu_trace_mode=TRACE_COMPUTE\nnonsense")
        box.get_by_label("Host names").fill("w0")
        box.get_by_role("button", name="Capture").click()
        expect(settings).to_have_attribute("aria-invalid", "true")
        expect(box).to_contain_text("KEY=VALUE, the key at most")
        assert not double.requests
        settings.fill("tpu_trace_mode=TRACE_COMPUTE\nn=3\nyes=true")
        box.get_by_role("button", name="Capture").click()
        expect(box).to_have_count(0)  # the page of an earlier run may have been shown behind it
        expect_tool(page, OVERVIEW)
    sent = {one.key: one.value for one in double.requests[0].opts.advanced_configuration}
    assert (sent["tpu_trace_mode"].string_value, sent["n"].int64_value, sent["yes"].bool_value) == (
        "TRACE_COMPUTE",
        3,
        True,
    )
    run = server.logdir / "plugins" / "profile" / state_of(page)["run"]
    assert [path.name for path in run.iterdir()] == ["w0.xplane.pb"]


def test_continuous_profiling_is_started_saved_and_stopped(page: Page, server: Server) -> None:
    page.goto(link(server.url))
    lost = free_target()
    with continuously_profiled(XSPACE) as (target, double):
        box = open_dialog(page)
        box.get_by_text("Continuously", exact=True).click()
        expect(box.get_by_label("Duration")).to_have_count(0)
        box.get_by_label("Targets").fill(f"{target}, {lost}")
        box.get_by_text("Critical").click()
        box.get_by_role("button", name="Start on 2 targets").click()
        running = box.get_by_role("list", name="Profiled continuously").get_by_role("listitem")
        expect(running).to_contain_text(f"{target}since ")
        expect(box.get_by_role("alert")).to_contain_text(f"{lost} refused the connection.")
        box.get_by_role("button", name="Save a snapshot of 1 target").click()
        expect_tool(page, OVERVIEW)
        expect(dialog(page)).to_have_count(0)
        run = state_of(page)["run"]
        assert run in runs_of(server)
        page.reload()
        expect_tool(page, OVERVIEW)
        box = open_dialog(page)
        box.get_by_label("Targets").fill(str(target))
        expect(box.get_by_role("button", name="Save a snapshot", exact=True)).to_be_visible()
        box.get_by_role("button", name="Stop", exact=True).click()
        expect(box.get_by_role("button", name="Start", exact=True)).to_be_visible()
        expect(box.get_by_role("list", name="Profiled continuously")).to_have_count(0)
    assert [type(request).__name__ for request in double.requests] == [
        "ProfileRequest",
        "SnapshotRequest",
        "StopRequest",
    ]
    assert double.requests[0].opts.host_tracer_level == 1


def test_one_of_two_targets_fails_and_the_other_is_opened(page: Page, server: Server) -> None:
    page.goto(link(server.url))
    lost = free_target()
    with serving(good(0, XSPACE)) as (target, _):
        start(page, target, lost)
        box = dialog(page)
        expect(box.get_by_role("heading", name="Profile saved, but 1 of 2 targets failed")).to_be_visible()
    rows = box.get_by_role("list", name="Targets").get_by_role("listitem")
    expect(rows.filter(has_text=str(target))).to_contain_text("Saved")
    expect(rows.filter(has_text=str(lost))).to_contain_text("Failed")
    expect(rows.filter(has_text=str(lost))).to_contain_text("start_server")
    page.wait_for_function("() => new URLSearchParams(location.hash.slice(1)).get('p.profile.run')")
    assert state_of(page)["run"] in runs_of(server)
    box.get_by_role("button", name="Capture the failed one again").click()
    expect(box.get_by_label("Targets")).to_have_value(str(lost))


def test_a_refused_connection_is_reported_with_a_remedy_and_the_fields_stay(
    page: Page, server: Server
) -> None:
    page.goto(link(server.url))
    lost = free_target()
    before = runs_of(server)
    start(page, lost)
    box = dialog(page)
    expect(box.get_by_role("heading", name="Nothing was captured")).to_be_visible()
    expect(box).to_contain_text("refused")
    box.get_by_role("button", name="Change the settings").click()
    expect(box.get_by_label("Targets")).to_have_value(str(lost))
    expect(box.get_by_label("Duration")).to_have_value("100")
    assert runs_of(server) == before
    with serving(good(0, XSPACE)) as (target, _):
        box.get_by_label("Targets").fill(str(target))
        box.get_by_label("Targets").press("Enter")
        expect(dialog(page)).to_have_count(0)
        assert len(runs_of(server)) == len(before) + 1


def test_a_busy_server_is_tried_again(page: Page, server: Server) -> None:
    page.goto(link(server.url))
    busy = status(grpc.StatusCode.ALREADY_EXISTS, "Another profiler is active")
    with serving(busy, good(0, XSPACE)) as (target, double):
        start(page, target, attempts=2)
        expect(dialog(page)).to_contain_text("attempt 2 of 2")
        expect(dialog(page)).to_have_count(0)
    assert len(double.requests) == 2


def test_cancelling_ends_the_call_and_leaves_no_run(page: Page, server: Server) -> None:
    page.goto(link(server.url))
    before, ended = runs_of(server), threading.Event()
    with serving(hanging(ended)) as (target, _):
        start(page, target)
        box = dialog(page)
        expect(box.get_by_role("heading", name="Capturing")).to_be_visible()
        expect(box.get_by_role("listitem").filter(has_text=str(target))).to_be_visible()
        box.get_by_role("button", name="Cancel").click()
        expect(box.get_by_role("heading", name="Capture cancelled")).to_be_visible()
        assert ended.wait(10)
    assert runs_of(server) == before


def test_a_hidden_capture_goes_on_and_a_reloaded_page_finds_it(page: Page, server: Server) -> None:
    page.goto(link(server.url))
    ended = threading.Event()
    with serving(hanging(ended)) as (target, _):
        start(page, target)
        expect(dialog(page).get_by_role("heading", name="Capturing")).to_be_visible()
        page.keyboard.press("Escape")
        expect(dialog(page)).to_have_count(0)
        expect(chip(page)).to_contain_text("Capturing")
        expect(chip(page)).to_be_focused()
        page.reload()
        expect(chip(page)).to_contain_text("Capturing")
        chip(page).click()
        expect(dialog(page)).to_contain_text(str(target))
        dialog(page).get_by_role("button", name="Cancel").click()
        expect(dialog(page).get_by_role("heading", name="Capture cancelled")).to_be_visible()


def test_while_one_runs_another_is_refused_in_words(page: Page, server: Server) -> None:
    page.goto(link(server.url))
    ended = threading.Event()
    with serving(hanging(ended)) as (target, _), serving(good(0, XSPACE)) as (other, double):
        open_dialog(page)
        state = page.request.get(f"{server.url}/data/plugin/profile/capture").json()
        body: dict[str, Any] = {"targets": str(target), "options": {"num_tracing_attempts": 1}}
        headers = {"X-Tpuprof-Token": state["token"]}
        page.request.post(f"{server.url}/data/plugin/profile/capture", data=body, headers=headers)
        fill(page, other)
        dialog(page).get_by_label("Targets").press("Enter")
        alert = dialog(page).get_by_role("alert")
        expect(alert).to_contain_text(f"Another capture is running: {target}")
        assert not double.requests
        alert.get_by_role("button", name="Show the running capture").click()
        expect(dialog(page).get_by_role("listitem")).to_contain_text(str(target))
        dialog(page).get_by_role("button", name="Cancel").click()
        expect(dialog(page).get_by_role("heading", name="Capture cancelled")).to_be_visible()


def test_errors_are_shown_at_their_fields(page: Page, server: Server) -> None:
    page.goto(link(server.url))
    box = open_dialog(page)
    targets, duration = box.get_by_label("Targets"), box.get_by_label("Duration")
    targets.fill("worker")
    duration.fill("0")
    duration.press("Enter")
    expect(targets).to_be_focused()
    expect(targets).to_have_attribute("aria-invalid", "true")
    expect(targets).to_have_accessible_description(re.compile("needs a port"))
    expect(duration).to_have_accessible_description(re.compile(r"1 to 600,000\sms"))
    targets.fill("worker:1")
    expect(targets).not_to_have_attribute("aria-invalid", "true")
    duration.fill("10")
    box.locator("details.more summary").click()
    box.get_by_label("Run name").fill("../elsewhere")
    box.get_by_label("Run name").press("Enter")
    expect(box.get_by_label("Run name")).to_have_accessible_description(re.compile("run_name"))
    expect(box.get_by_label("Run name")).to_be_focused()


def test_the_focus_stays_in_the_dialog_and_comes_back(page: Page, server: Server) -> None:
    page.goto(link(server.url))
    box = open_dialog(page)
    last = box.get_by_role("button", name="Capture", exact=True)
    last.focus()
    page.keyboard.press("Tab")
    expect(box.get_by_role("button", name="Close")).to_be_focused()
    page.keyboard.press("Shift+Tab")
    expect(last).to_be_focused()
    page.keyboard.press("Escape")
    expect(dialog(page)).to_have_count(0)
    expect(chip(page)).to_be_focused()


def test_where_the_owner_switched_it_off_the_page_says_so(
    page: Page, watch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TPUPROF_CAPTURE", "off")
    (tmp_path / "logs").mkdir()
    off = start_tensorboard(tmp_path / "logs", tmp_path)
    watch.origin = off.url
    try:
        page.goto(link(off.url))
        expect(frame_of(page).get_by_role("main")).to_contain_text("switched capturing off")
        expect(chip(page)).to_have_attribute("aria-disabled", "true")
        chip(page).dispatch_event("click")
        expect(dialog(page)).to_have_count(0)
        page.goto(link(off.url, tool="monitor"))
        expect(frame_of(page).get_by_role("main")).to_contain_text("switched capturing off")
    finally:
        off.process.terminate()
        off.process.wait(20)


@pytest.mark.parametrize(("package", "job"), [("jax", JAX_JOB), ("tensorflow", TENSORFLOW_JOB)])
def test_a_real_job_is_profiled_and_its_steps_are_shown(
    page: Page, server: Server, tmp_path: Path, package: str, job: str
) -> None:
    port = free_port()
    with running(python_with(package), job.format(port=port), tmp_path, port):
        page.goto(link(server.url))
        start(page, Target("localhost", port), attempts=3, duration_ms=500)
        expect(dialog(page)).to_have_count(0, timeout=60_000)
    expect_tool(page, OVERVIEW)
    tile = (
        frame_of(page)
        .get_by_label("Key numbers")
        .locator(".tile")
        .filter(has=page.locator("dt", has_text=re.compile("^Steps$")))
    )
    assert int(tile.locator("dd").first.inner_text().replace(",", "")) >= 2
