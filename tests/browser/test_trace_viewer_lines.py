"""Counters, launches and arrows in a real browser: what the page says of them is what the file was written
with.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tb_tpuprof.ingest.xspace.messages import xspace_class
from tests.browser.conftest import Server, start_tensorboard
from tests.browser.test_trace_viewer_hands import stage_of
from tests.browser.walking import expect_state, frame_of, heading, link
from tests.synthetic import PS_PER_US, PlaneWriter

RUN = "gpu"
LOW, HIGH = 20.0, 62.5


def xspace() -> bytes:
    """Two steps of 1 ms with a kernel each; a counter that is LOW in the first and HIGH in the second,
    another below zero.
    """
    space = xspace_class()()
    gpu, host = PlaneWriter(space, "/device:GPU:0"), PlaneWriter(space, "/host:CPU")
    stream, samples = gpu.line("Stream #7(Compute)", 7, 1000), gpu.line("_counters_", 8, 1000)
    main = host.line("python", 1, 1000)
    for step in range(2):
        start = step * 1000 * PS_PER_US
        host.event(main, "train", start, 1000 * PS_PER_US, {"_r": 1, "step_num": step})
        host.event(
            main, "cudaLaunchKernel", start + 100 * PS_PER_US, 50 * PS_PER_US, {"correlation_id": step + 1}
        )
        gpu.event(stream, "gemm", start + 400 * PS_PER_US, 500 * PS_PER_US, {"correlation_id": step + 1})
        gpu.event(samples, "SM Active (%)", start, 0, {"sm": (LOW, HIGH)[step]})
        gpu.event(samples, "Balance", start, 0, {"value": (-4, 3)[step]})
    data: bytes = space.SerializeToString()
    return data


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """TensorBoard on a log directory with that one run."""
    scratch = tmp_path_factory.mktemp("lines")
    run = scratch / "logs" / "plugins" / "profile" / RUN
    run.mkdir(parents=True)
    (run / "host.xplane.pb").write_bytes(xspace())
    started = start_tensorboard(scratch / "logs", scratch)
    yield started
    started.process.terminate()
    started.process.wait(20)


def test_counters_tell_their_scale_and_their_value_under_the_pointer(page: Page, server: Server) -> None:
    page.goto(link(server.url, run=RUN, tool="trace_viewer"))
    frame = frame_of(page)
    expect(heading(page)).to_have_text("Trace viewer")
    active = frame.locator(".tv-track", has=frame.locator('[title^="SM Active (%) · 2 samples"]'))
    expect(active.locator(".tv-scale small")).to_have_text(["62.5\u00a0%", "0"])
    balance = frame.locator(".tv-track", has=frame.locator('[title^="Balance · 2 samples"]'))
    expect(balance.locator(".tv-scale small")).to_have_text(["3", "-4"])
    expect(frame.locator(".tv-section-head").first).to_contain_text("4 samples")
    stage, row = stage_of(frame).bounding_box(), active.bounding_box()
    assert stage is not None
    assert row is not None
    for share, value in ((0.25, "20.0"), (0.75, "62.5")):
        page.mouse.move(stage["x"] + share * stage["width"], row["y"] + row["height"] / 2)
        tip = frame.locator(".tv-tip")
        expect(tip).to_contain_text("SM Active (%)")
        expect(tip).to_contain_text(re.compile(rf"{value}\s%"))
        expect(tip).to_contain_text(re.compile(r"20.0\s% to 62.5\s% in the whole trace"))


def test_launch_and_kernel_lead_to_each_other(page: Page, server: Server) -> None:
    page.goto(link(server.url, run=RUN, tool="trace_viewer", event="0"))  # the first kernel
    details = frame_of(page).locator(".tv-details")
    expect(details.locator("h2")).to_have_text("gemm")
    launch = details.locator(".tv-flow").get_by_role("button", name="← cudaLaunchKernel")
    expect(details.locator(".tv-flow")).to_contain_text(
        re.compile(r"kernel launch · python · 300\sµs before")
    )
    launch.click()
    expect(details.locator("h2")).to_have_text("cudaLaunchKernel")
    details.locator(".tv-flow").get_by_role("button", name="→ gemm").click()
    expect(details.locator("h2")).to_have_text("gemm")
    expect_state(page, event="0")


def test_launches_of_a_step_are_told(page: Page, server: Server) -> None:
    page.goto(link(server.url, run=RUN, tool="trace_viewer", q="Launch Stats for train 1"))
    frame = frame_of(page)
    names = frame.locator(".tv-section").first.locator(".tv-track .tv-name")
    expect(names).to_have_text(["Steps", "Launch Stats", "Stream #7(Compute)", "SM Active (%)", "Balance"])
    frame.get_by_role("searchbox").press("Enter")
    details = frame.locator(".tv-details")
    expect(details.locator("h2")).to_have_text("Launch Stats for train 1")
    expect(details).to_contain_text(re.compile(r"num_launches\s*1"))
    expect(details).to_contain_text(re.compile(r"avg_launch_time_us\s*50.000"))
    expect(details).to_contain_text(re.compile(r"avg_launch_latency_us\s*250.000"))
