"""The pod viewer of slices of TPUs: places, links, channels by step, the host that sends late; all
planted.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tb_tpuprof.errors import BadParameter
from tb_tpuprof.session import Session
from tb_tpuprof.tools.payload import Payload
from tb_tpuprof.tools.pod_viewer.topology_tables import topology_table
from tb_tpuprof.tools.pod_viewer.view import TOOL
from tests.analysis.pod.test_topology import placed, pod
from tests.payload_columns import table
from tests.pod_drawing import drawn_pod
from tests.synthetic import GpuJob, field, gpu_xspace, write_run
from tests.synthetic_torus import (
    AXIS_US,
    BLOCK_BYTES,
    LATE_US,
    LATENCY_US,
    Slice,
    times_us,
    torus_hosts,
)
from tests.tools.pod_viewer.test_exchange import BLOCK_BYTES as DRAWN_BYTES
from tests.tools.pod_viewer.test_exchange import SENDING, sends

US = 1_000_000
CUBE = Slice(late_host=9, late_from=2)


def session(folder: Path, hosts: dict[str, bytes]) -> Session:
    return Session(str(write_run(folder / "run", hosts)), cache=False)


@pytest.fixture(scope="module")
def cube(tmp_path_factory: pytest.TempPathFactory) -> Session:
    return session(tmp_path_factory.mktemp("cube"), torus_hosts(CUBE))


@pytest.fixture(scope="module")
def page(cube: Session) -> Payload:
    return TOOL.run(cube, None, {})


def test_each_chip_has_its_place_and_its_host_s_chips_are_a_block(page: Payload) -> None:
    cores = table(page, "cores")
    places = {
        int(chip): (x, y, z)
        for chip, x, y, z in zip(*(cores[key] for key in ("chip_id", "x", "y", "z")), strict=True)
    }
    assert len(places) == 64
    assert (places[0], places[3], places[4], places[39]) == ((0, 0, 0), (3, 0, 0), (0, 1, 0), (3, 1, 2))
    of_host = [
        chip for chip, host in zip(cores["chip_id"], cores["host"], strict=True) if host == "synthetic-9"
    ]
    assert of_host == [34, 35, 38, 39]


def test_the_slice_is_named_with_its_rings(page: Payload) -> None:
    row = {name: cells[0] for name, cells in table(page, "topology").items()}
    assert row == {
        "shape": "4 × 4 × 4 torus",
        "generation": "TPU v4",
        "n_x": 4,
        "n_y": 4,
        "n_z": 4,
        "wraps_x": True,
        "wraps_y": True,
        "wraps_z": True,
        "placed_by": "the chips' numbers in the trace",
        "n_missing": 0,
        "link_bytes_per_s": 50e9,
    }
    assert page.tables["topology"].note == "places from the chips' numbers in the trace"


def channel(page: Payload, source: int, target: int) -> tuple[int, dict[str, object]]:
    """Row and cells of the channel between two chips."""
    channels, chips = table(page, "channels"), table(page, "cores")["chip_id"]
    ends = [
        (chips[int(a)], chips[int(b)])  # type: ignore[call-overload]
        for a, b in zip(channels["source_row"], channels["target_row"], strict=True)
    ]
    row = ends.index((source, target))
    return row, {name: cells[row] for name, cells in channels.items()}


def test_channels_have_their_links_and_compare_with_one_link_s_rate(page: Payload) -> None:
    channels = table(page, "channels")
    assert len(channels["link"]) == 3 * 64
    links = {str(link) for link in channels["link"]}
    assert links == {"x", "x wrap", "y", "y wrap", "z", "z wrap"}
    # One of four chips along each axis sends over the wrap link.
    assert [channels["link"].count(f"{axis} wrap") for axis in "xyz"] == [16, 16, 16]
    assert set(channels["hops"]) == {1}
    _, wrap = channel(page, 39, 36)
    assert (wrap["link"], wrap["channel_id"]) == ("x wrap", 1)
    assert (wrap["send_op"], wrap["receive_op"]) == (
        "collective-permute-start.10",
        "collective-permute-done.11",
    )
    latency_us = LATENCY_US + 39 % 7
    assert wrap["latency_ps"] == latency_us * US
    assert wrap["link_fraction"] == pytest.approx(BLOCK_BYTES / (latency_us * 1e-6) / 50e9)
    _, along_z = channel(page, 60, 12)
    assert (along_z["link"], along_z["latency_ps"]) == ("z wrap", (LATENCY_US + 2 * AXIS_US + 60 % 7) * US)
    # Chip 35 is late in 4 of 6 steps; its receiver 32 of host 8 is not.
    assert channel(page, 35, 32)[1]["send_delay_ps"] == pytest.approx(LATE_US * US * 4 / 6)
    assert channel(page, 32, 33)[1]["send_delay_ps"] == 0


def test_a_channel_by_step_is_as_planted(cube: Session, page: Payload) -> None:
    row, _ = channel(page, 35, 32)
    by_step = table(TOOL.run(cube, None, {"channel": row}, question="channel"), "channel_steps")
    assert by_step["step"] == ["0", "1", "2", "3", "4", "5"]
    assert by_step["latency_ps"] == [(LATENCY_US + 35 % 7) * US] * 6
    assert by_step["send_delay_ps"] == [0, 0, *[LATE_US * US] * 4]
    # Along y chip 39 waits for what it gets along x, from the late chip 38 of its own host.
    row, _ = channel(page, 39, 43)
    by_step = table(TOOL.run(cube, None, {"channel": row}, question="channel"), "channel_steps")
    expected = [
        max(0, int(transfers[1][0][39]) - int(transfers[1][0][43])) * US
        for _, transfers, _ in (times_us(CUBE, step) for step in range(6))
    ]
    assert by_step["send_delay_ps"] == expected
    assert expected[0] != expected[2]


def test_a_channel_that_is_not_in_the_table_is_refused(cube: Session, page: Payload) -> None:
    last = page.tables["channels"].n_rows - 1
    assert TOOL.run(cube, None, {"channel": last}, question="channel").tables["channel_steps"].n_rows == 6
    with pytest.raises(BadParameter, match="channel cannot be '192'") as raised:
        TOOL.run(cube, None, {"channel": last + 1}, question="channel")
    assert "less than the number of channels, 192" in raised.value.remedy


def test_a_step_in_which_an_end_did_not_run_is_unknown(tmp_path: Path) -> None:
    """The sender's program runs in all steps, the receiver's host has marked only them: only the sends that
    have a receive count.
    """
    hosts = [
        ["fusion.9:0-300 send.3:300-310 send-done.4:310-350"],
        ["fusion.9:0-100 recv.5:100-101 recv-done.6:101-400"],
    ]
    opened = session(tmp_path, drawn_pod(hosts, SENDING, sends("{{0,1}}")))
    by_step = table(TOOL.run(opened, None, {"channel": 0}, question="channel"), "channel_steps")
    assert by_step["latency_ps"] == [100 * US] * len(by_step["step"])
    assert by_step["send_delay_ps"] == [200 * US] * len(by_step["step"])
    channels = table(TOOL.run(opened, None, {}), "channels")
    assert (channels["send_op"], channels["receive_op"]) == (["send.3"], ["recv-done.6"])
    assert channels["size_bytes"] == [DRAWN_BYTES]


def test_a_channel_of_which_an_end_never_ran_has_no_times(tmp_path: Path) -> None:
    """Core 0 sends to 1, which receives; 1 and 2 never send, and 2 never receives."""
    hosts = [
        ["fusion.9:0-300 send.3:300-310 send-done.4:310-350"],
        ["fusion.9:0-100 recv.5:100-101 recv-done.6:101-400"],
        ["fusion.9:0-500"],
    ]
    opened = session(tmp_path, drawn_pod(hosts, SENDING, sends("{{0,1},{0,2},{2,1}}")))
    for answer in (TOOL.run(opened, None, {}), TOOL.run(opened, None, {"step": 2}, question="channels")):
        rows = table(answer, "channels")
        places = dict(zip(zip(rows["source"], rows["target"], strict=True), range(3), strict=True))
        one, unheard, unsent = (
            places[f"h{source} TPU:0", f"h{target} TPU:0"] for source, target in ((0, 1), (0, 2), (2, 1))
        )
        assert (rows["latency_ps"][one], rows["send_delay_ps"][one]) == (100 * US, 200 * US)
        for row in (unheard, unsent):
            assert all(np.isnan(rows[name][row]) for name in ("latency_ps", "send_delay_ps", "bytes_per_s"))
        assert [rows["n_per_step"][row] for row in (one, unheard, unsent)] == [1, 1, 0]


def test_the_host_that_sends_late_is_named(page: Payload) -> None:
    assert page.verdict
    texts = [text for text in page.verdict.details if "sends late" in text]
    delays: dict[bool, list[float]] = {True: [], False: []}
    longest = (0.0, 0, 0)
    begins = [[times[0] for times in times_us(CUBE, step)[1]] for step in range(6)]
    for host, chips in enumerate(CUBE.hosts()):
        for chip in chips:
            for axis in CUBE.axes:
                to = int(CUBE.next_along(axis)[chip])
                # Means over the steps first, as the table has them.
                sent, ready = (float(np.mean([begin[axis][one] for begin in begins])) for one in (chip, to))
                delay = max(0.0, sent - ready)
                delays[host == 9].append(delay)
                longest = max(longest, (delay, chip, to)) if host == 9 else longest
    late_us, others_us = (float(np.mean(delays[is_late])) for is_late in (True, False))
    delay_us, chip, to = longest
    named = {
        chip: f"`synthetic-{h} TPU:{i}`"
        for h, chips in enumerate(CUBE.hosts())
        for i, chip in enumerate(chips)
    }
    assert texts == [
        f"`synthetic-9` sends late: {late_us:.1f} µs after its receivers are ready, against "
        f"{others_us:.2f} µs elsewhere. Its longest delay is {delay_us:.0f} µs, from {named[chip]} to "
        f"{named[to]}."
    ]
    assert (f"{late_us:.1f}", f"{others_us:.2f}", f"{delay_us:.0f}") == ("67.8", "4.15", "106")


def test_equal_hosts_have_no_late_sender(tmp_path: Path) -> None:
    verdict = TOOL.run(session(tmp_path, torus_hosts(Slice((4, 4, 1), device="TPU v5e"))), None, {}).verdict
    assert verdict
    assert not [text for text in verdict.details if "sends late" in text]


def test_a_mesh_sends_around_through_its_chips(tmp_path: Path) -> None:
    """v5e closes no axis of 4: the last chip's way to the first leads through two others."""
    mesh = TOOL.run(session(tmp_path, torus_hosts(Slice((4, 4, 1), device="TPU v5 lite"))), None, {})
    _, around = channel(mesh, 3, 0)
    assert (around["link"], around["hops"]) == ("3 x", 3)
    assert np.isnan(float(str(around["link_fraction"])))
    assert channel(mesh, 0, 1)[1]["hops"] == 1
    assert table(mesh, "topology")["shape"] == ["4 × 4 mesh"]


def test_an_assumed_order_and_an_unknown_one_are_said(tmp_path: Path) -> None:
    assumed = TOOL.run(
        session(tmp_path / "a", torus_hosts(Slice((4, 4, 1), device="TPU v6 lite", has_numbers=False))),
        None,
        {},
    )
    assert assumed.tables["topology"].note == "places from assumed order: hosts and chips as they are listed"
    odd = TOOL.run(session(tmp_path / "b", torus_hosts(Slice((4, 3, 1), (2, 1, 1), "TPU v4"))), None, {})
    assert odd.tables["topology"].n_rows == 0
    assert odd.tables["topology"].note == (
        "places unknown: no slice of TPU v4 has 12 chips in which each host's chips are a block"
    )
    assert "x" not in table(odd, "cores")
    assert "link" not in table(odd, "channels")


def test_a_part_of_a_slice_says_what_is_missing(cube: Session) -> None:
    part = TOOL.run(cube, ("synthetic-8", "synthetic-9"), {})
    assert table(part, "topology")["n_missing"] == [56]
    assert "56 chips of the slice were not captured" in part.tables["topology"].note
    assert table(part, "topology")["wraps_x"] == [False]
    device, chips = "TPU v6e", [[4, 5, 6, 7]]
    for n, words in (
        (1, "1 chip of the slice was not captured"),
        (2, "2 chips of the slice were not captured"),
        (4, "4 chips of the slice were not captured"),
    ):
        half = replace(placed(device, chips), n_missing=n)
        assert words in topology_table(replace(pod(device, chips), kind="TPU"), half)["topology"].note


@pytest.mark.parametrize("number", [2**32, 2**63, 2**64 - 1])
def test_numbers_that_are_no_uint32_count_as_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """A damaged `core_details` neither fails nor places the chips anywhere far."""
    monkeypatch.setattr(
        "tests.synthetic_torus.field", lambda key, value: field(key, number if key == 5 else value)
    )
    payload = TOOL.run(session(tmp_path, torus_hosts(Slice((2, 2, 1)))), None, {})
    assert payload.tables["topology"].note == "places from assumed order: hosts and chips as they are listed"
    assert [str(cell) for cell in table(payload, "cores")["chip_id"]] == ["nan"] * 4


def test_the_largest_uint32_is_a_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "tests.synthetic_torus.field", lambda key, value: field(key, 2**32 - 1 if key == 5 else value)
    )
    payload = TOOL.run(session(tmp_path, torus_hosts(Slice((2, 2, 1)))), None, {})
    assert table(payload, "cores")["chip_id"] == [2.0**32 - 1] * 4
    assert "no slice of TPU v4 has 4,294,967,296 chips" in payload.tables["topology"].note


@pytest.mark.skipif("TPUPROF_CORPUS" not in os.environ, reason="TPUPROF_CORPUS does not name the corpus")
def test_four_chips_of_a_real_v6e_host_are_half_of_its_eight() -> None:
    """The file's own bytes: `core_details` of the four planes have 4, 5, 6 and 7 in field 5."""
    run = Path(os.environ["TPUPROF_CORPUS"]) / "xprof_tpu_inference_2_old" / "plugins" / "profile" / "run"
    payload = TOOL.run(Session(str(run), cache=False), None, {})
    cores = table(payload, "cores")
    assert cores["chip_id"] == [4, 5, 6, 7]
    assert list(zip(cores["x"], cores["y"], cores["z"], strict=True)) == [
        (0, 2, 0),
        (1, 2, 0),
        (0, 3, 0),
        (1, 3, 0),
    ]
    assert (table(payload, "topology")["shape"], table(payload, "topology")["n_missing"]) == (
        ["2 × 4 mesh"],
        [4],
    )


def test_gpus_have_no_topology(tmp_path: Path) -> None:
    assert "topology" not in TOOL.run(session(tmp_path, {"g": gpu_xspace(GpuJob())}), None, {}).tables
