"""Monitoring a running job in TensorBoard: numbers of its Monitor call, of short profiles, and a job that
does not answer.
"""

from __future__ import annotations

import re
import time
from pathlib import Path

import grpc
import pytest
from playwright.sync_api import Locator, Page, expect

from tb_tpuprof.capture.messages import MONITOR
from tests.browser.conftest import Server
from tests.browser.walking import expect_state, expect_tool, frame_of, heading, link, open_tool, state_of
from tests.capture.double import free_target, good, raw, serving, status
from tests.capture.monitor_double import LEVEL_2, monitor_reply
from tests.free_port import free_port
from tests.golden_files import demo_runs
from tests.integration.jobs import python_with, running

XSPACE = next(demo_runs()["jax_train"].glob("*.xplane.pb")).read_bytes()
JAX_JOB = """
import jax, jax.numpy as jnp
jax.profiler.start_server({port})
step = jax.jit(lambda x: jnp.tanh(x @ x) / 3)
x = jnp.ones((256, 256))
for n in range(10**9):
    with jax.profiler.StepTraceAnnotation("train", step_num=n):
        x = step(x).block_until_ready()
"""


def main(page: Page) -> Locator:
    """The page next to the side bar."""
    return frame_of(page).get_by_role("main")


def tile(page: Page, title: str) -> Locator:
    """A key number by its title."""
    return (
        main(page)
        .locator(".tile")
        .filter(has=page.locator("dt", has_text=re.compile(f"^{re.escape(title)}$")))
    )


def watch_job(page: Page, server: Server, targets: str, interval_ms: int = 100) -> None:
    """Open the page and start."""
    page.goto(link(server.url, tool="monitor"))
    expect(heading(page)).to_have_text("Monitor")
    main(page).get_by_label("Targets").fill(targets)
    main(page).get_by_label("Interval").fill(str(interval_ms))
    main(page).get_by_label("Interval").press("Enter")


def stop(page: Page) -> None:
    """Press the button, and wait for the form to come back."""
    main(page).get_by_role("button", name="Stop").click()
    expect(main(page).get_by_role("button", name="Start")).to_be_visible()


def test_a_job_that_reports_its_own_numbers(page: Page, server: Server) -> None:
    with serving(methods={MONITOR: [raw(monitor_reply(LEVEL_2))]}) as (target, double):
        watch_job(page, server, f"grpc://{target}")
        expect(tile(page, "Step time")).to_contain_text("90.8")
        expect(tile(page, "Device idle")).to_contain_text("36.9")
        expect(tile(page, "Matrix unit")).to_contain_text("10.7")
        expect(tile(page, "Waiting for input")).to_contain_text("1.50")
        expect(main(page).get_by_label("Verdict")).to_contain_text("The job reports these numbers itself")
        expect(frame_of(page).get_by_role("navigation", name="Live")).to_contain_text("on")
        expect(main(page).get_by_role("region", name="Step time").locator("canvas")).to_be_visible()
        expect_state(page, tool="monitor", targets=str(target), interval_ms="100")
        stop(page)
    n = len(double.requests)
    assert n >= 1
    page.wait_for_timeout(500)
    assert len(double.requests) == n
    expect(tile(page, "Step time")).to_contain_text("90.8")


def test_the_samples_as_csv(page: Page, server: Server) -> None:
    with serving(methods={MONITOR: [raw(monitor_reply(LEVEL_2))]}) as (target, _):
        watch_job(page, server, str(target))
        expect(tile(page, "Step time")).to_contain_text("90.8")
        stop(page)
    with page.expect_download() as download:
        main(page).get_by_role("button", name="CSV").click()
    head, first = Path(download.value.path()).read_text("utf-8").splitlines()[:2]
    row = dict(zip(head.split(","), first.split(","), strict=True))
    assert (row["target"], float(row["step_time_avg_ps"])) == (str(target), pytest.approx(90.8e9))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", row["time_utc"])


def test_the_numbers_of_short_profiles_are_called_that(page: Page, server: Server) -> None:
    with serving(good(0.05, XSPACE)) as (target, _):
        watch_job(page, server, str(target))
        expect(main(page).get_by_label("Verdict")).to_contain_text("short profiles")
        expect(main(page).get_by_label("Verdict")).to_contain_text("Current step time: ")
        stop(page)


def test_a_page_that_is_closed_leaves_the_job_alone(page: Page, server: Server) -> None:
    """Within seconds: until then everybody else's profile of the job is refused."""
    with serving(good(xspace=XSPACE)) as (target, profiler):
        watch_job(page, server, str(target))
        expect(main(page)).to_contain_text("samples", timeout=20_000)
        page.close()
        time.sleep(6)
        n_requests = len(profiler.requests)
        time.sleep(1)
        assert n_requests
        assert len(profiler.requests) == n_requests


def test_a_busy_job_is_distinguished_from_one_that_is_gone(page: Page, server: Server) -> None:
    with serving(status(grpc.StatusCode.ALREADY_EXISTS, "Another profiling session active.")) as (target, _):
        watch_job(page, server, str(target))
        expect(main(page)).to_contain_text(
            f"No numbers just now. Another profile is running on {target}.", timeout=20_000
        )
        expect(main(page)).not_to_contain_text("does not answer")
        stop(page)


def test_it_goes_on_while_a_tool_is_shown_and_after_a_reload(page: Page, server: Server) -> None:
    with serving(methods={MONITOR: [raw(monitor_reply(LEVEL_2))]}) as (target, double):
        watch_job(page, server, str(target))
        expect(tile(page, "Step time")).to_contain_text("90.8")
        open_tool(page, "Overview")
        expect_tool(page, "Overview")
        n = len(double.requests)
        page.wait_for_timeout(600)
        assert len(double.requests) > n
        page.go_back()
        expect(tile(page, "Step time")).to_contain_text("90.8")
        page.reload()
        expect(main(page)).to_contain_text(f"Watching {target}")
        expect(tile(page, "Step time")).to_contain_text("90.8")
        stop(page)


def test_an_unreachable_job_is_reported_with_a_remedy(page: Page, server: Server) -> None:
    lost = free_target()
    watch_job(page, server, str(lost))
    expect(main(page)).to_contain_text(re.compile(f"{re.escape(str(lost))}.*refused"))
    expect(main(page)).to_contain_text("start_server")
    expect(main(page).get_by_role("button", name="Start")).to_be_visible()
    expect(main(page).get_by_label("Targets")).to_have_value(str(lost))


def test_one_of_two_who_does_not_answer_keeps_the_other(page: Page, server: Server) -> None:
    lost = free_target()
    with serving(methods={MONITOR: [raw(monitor_reply(LEVEL_2))]}) as (target, _):
        watch_job(page, server, f"{target}, {lost}")
        expect(tile(page, "Step time")).to_contain_text("90.8")
        expect(main(page).get_by_label("Verdict")).to_contain_text("1 target of 2 could not be reached")
        stop(page)


def test_a_link_fills_the_form_and_starts_nothing(page: Page, server: Server) -> None:
    requests: list[str] = []
    page.on("request", lambda request: requests.append(f"{request.method} {request.url.rpartition('/')[2]}"))
    page.goto(link(server.url, tool="monitor", targets="worker:9012", interval_ms="250"))
    expect(main(page).get_by_label("Targets")).to_have_value("worker:9012")
    expect(main(page).get_by_label("Interval")).to_have_value("250")
    assert "GET capture" in requests
    assert "POST monitor" not in requests
    assert "Monitor" in page.title()
    assert state_of(page)["tool"] == "monitor"


def test_errors_are_shown_at_their_fields(page: Page, server: Server) -> None:
    watch_job(page, server, "worker", interval_ms=1)
    expect(main(page).get_by_label("Targets")).to_have_accessible_description(re.compile("needs a port"))
    expect(main(page).get_by_label("Interval")).to_have_accessible_description(re.compile("A whole number"))


def test_a_real_job_is_watched(page: Page, server: Server, tmp_path: Path) -> None:
    port = free_port()
    with running(python_with("jax"), JAX_JOB.format(port=port), tmp_path, port):
        watch_job(page, server, f"localhost:{port}", interval_ms=500)
        expect(main(page).get_by_label("Verdict")).to_contain_text("Current step time: ", timeout=60_000)
        expect(main(page).get_by_label("Verdict")).to_contain_text("short profiles")
        stop(page)
