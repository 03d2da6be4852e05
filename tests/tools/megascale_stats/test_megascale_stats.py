"""Transfers between slices, drawn by hand on three unlike hosts: every number is planted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tb_tpuprof.analysis.dcn.messages import Messages
from tb_tpuprof.analysis.dcn.ops import Half, Rendezvous
from tb_tpuprof.analysis.dcn.summary import Summary, summary
from tb_tpuprof.analysis.dcn.transfers import dcn_host as transfers_of
from tb_tpuprof.errors import ToolUnavailable
from tb_tpuprof.ingest.xspace.messages import xspace_class
from tb_tpuprof.session import Session
from tb_tpuprof.tools import get_tool
from tb_tpuprof.tools.megascale_stats.sentences import verdict as verdict_of
from tb_tpuprof.tools.megascale_stats.tables import hosts_table, slices_table
from tb_tpuprof.tools.megascale_stats.view import TOOL, _scalars
from tb_tpuprof.tools.payload import Payload
from tests.payload_columns import table
from tests.synthetic import GpuJob, TpuJob, gpu_xspace, tpu_xspace, write_run
from tests.synthetic_dcn import ALL, ALONE, INTERLEAVED, dcn_host, dcn_hosts

US = 1_000_000
HOSTS = dcn_hosts()


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    return Session(str(write_run(tmp_path_factory.mktemp("dcn") / "run", HOSTS)), cache=False)


@pytest.fixture(scope="module")
def page(session: Session) -> Payload:
    return TOOL.run(session, None, {})


def row_of(page: Payload, name: str) -> dict[str, object]:
    rows = table(page, "rendezvous")
    row = rows["rendezvous"].index(name)
    return {column: cells[row] for column, cells in rows.items()}


def test_slack_is_the_time_without_any_transfer_s_operations(session: Session) -> None:
    """On one host: all-reduce.1 alone on one core, and interleaved with all-gather.7 on the other."""
    page = TOOL.run(session, ("synthetic-0",), {})
    reduce, gather = row_of(page, "all-reduce.1"), row_of(page, "all-gather.7")
    # Interleaved, all-reduce.1 has 30–100 and 200–250 µs, all-gather.7 has 30–100 µs.
    assert reduce["slack_ps"] == (280 + 120) * US / 2
    assert gather["slack_ps"] == 70 * US
    assert reduce["count"] == 2
    assert gather["count"] == 1
    assert reduce["observed_ps"] == (340 + 300) * US / 2
    assert gather["observed_ps"] == 190 * US


def test_other_pages_lead_to_the_transfers(session: Session) -> None:
    """The overview links to them; the page of communication within a slice does not say that none move."""
    verdict = get_tool("overview_page").run(session, None, {}).verdict
    assert verdict is not None
    assert [step.tool for step in verdict.next].count("megascale_stats") == 1
    communication = get_tool("communication")
    lacking = communication.availability(session)
    assert (lacking.short, "between slices" in lacking.reason) == ("only DCN", True)
    with pytest.raises(ToolUnavailable, match="only between slices") as caught:
        communication.run(session, None, {})
    assert "Megascale stats" in caught.value.remedy


def test_a_job_on_one_slice_has_no_link_to_transfers_between_slices(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", {"h": tpu_xspace(TpuJob())})
    verdict = get_tool("overview_page").run(Session(str(run), cache=False), None, {}).verdict
    assert verdict is not None
    assert "megascale_stats" not in [step.tool for step in verdict.next]


def test_stall_is_split_by_operation(session: Session) -> None:
    page = TOOL.run(session, ("synthetic-0",), {})
    reduce, gather = row_of(page, "all-reduce.1"), row_of(page, "all-gather.7")
    halves = ("send_ps", "send_done_ps", "recv_ps", "recv_done_ps")
    assert [reduce[half] for half in halves] == [7.5 * US, 12.5 * US, 7.5 * US, 45 * US]
    assert [gather[half] for half in halves] == [20 * US, 5 * US, 10 * US, 60 * US]
    assert reduce["stall_ps"] == 72.5 * US
    assert reduce["total_stall_ps"] == 145 * US
    # The cores' first operations begin at 0, their last end at 340 and 300 µs.
    assert reduce["stall_fraction"] == pytest.approx(145 / 640)
    assert page.scalars["stall_fraction"].value == pytest.approx((145 + 95) / 640)


@pytest.mark.parametrize(
    ("name", "kind", "network_bytes"),
    [
        ("all-reduce.1", "ALL_REDUCE", 4_000_000 * 2 * 3 / 4),
        ("permute.3", "ONE_TO_ONE", 1_000_000),
        ("scatter.9", "REDUCE_SCATTER", 400_000 * 2),
        ("shuffle.5", "ALL_TO_ALL", 200_000 * 4 / 5),
        ("all-gather.7", "ALL_GATHER", 2_000_000 / 2),
    ],
)
def test_data_is_what_one_participant_sends(
    page: Payload, name: str, kind: str, network_bytes: float
) -> None:
    row = row_of(page, name)
    assert (row["transfer_type"], row["network_bytes"]) == (kind, network_bytes)


def test_a_kind_without_a_formula_has_unknown_data(page: Payload) -> None:
    row = row_of(page, "ragged.6")
    assert row["transfer_type"] == "RAGGED_ALL_TO_ALL"
    for name in ("network_bytes", "required_bytes_per_s", "host_bytes_per_s", "observed_bytes_per_s"):
        assert np.isnan(float(str(row[name])))
    assert row["slack_ps"] == US


def test_bandwidths_are_data_over_slack_and_duration(page: Payload) -> None:
    row = row_of(page, "all-reduce.1")
    # Four transfers: 280 and 120 µs of slack on host 0, 30 and 160 µs on host 2.
    slack_s, observed_s = (280 + 120 + 30 + 160) / 4 * 1e-6, (340 + 300 + 70 + 220) / 4 * 1e-6
    assert row["count"] == 4
    assert row["slack_ps"] == pytest.approx(slack_s * 1e12)
    assert row["required_bytes_per_s"] == pytest.approx(6e6 / slack_s)
    assert row["host_bytes_per_s"] == pytest.approx(2 * 6e6 / slack_s)
    assert row["observed_bytes_per_s"] == pytest.approx(6e6 / observed_s)
    assert (row["n_hosts"], row["n_cores"]) == (2, 3)
    assert (row["send_op"], row["recv_op"]) == ("send.1", "recv-done.1")


def test_without_slack_no_bandwidth_is_enough(page: Payload) -> None:
    row = row_of(page, "permute.3")
    assert row["slack_ps"] == 0
    assert np.isnan(float(str(row["required_bytes_per_s"])))
    assert row["observed_bytes_per_s"] == pytest.approx(1e6 / 800e-6)


def test_only_whole_transfers_count(page: Payload) -> None:
    """A recv-done before its send and a send without its recv-done are parts of others."""
    shuffle, scatter = row_of(page, "shuffle.5"), row_of(page, "scatter.9")
    assert (shuffle["count"], shuffle["stall_ps"], shuffle["slack_ps"]) == (1, 35 * US, 10 * US)
    assert (scatter["count"], scatter["stall_ps"], scatter["slack_ps"]) == (1, 40 * US, 50 * US)
    assert [notice.message for notice in page.diagnostics if "cut off" in notice.message] == [
        "1 transfer was cut off by the capture's end and left out."
    ]


def test_rows_are_sorted_by_what_they_cost(page: Payload) -> None:
    rows = table(page, "rendezvous")
    assert rows["rendezvous"][:2] == ["permute.3", "all-reduce.1"]
    assert rows["total_stall_ps"] == sorted(rows["total_stall_ps"], reverse=True)  # type: ignore[type-var]


def test_each_host_has_its_own_stall(page: Payload) -> None:
    rows = table(page, "hosts")
    assert rows["host"] == ["synthetic-0", "synthetic-1", "synthetic-2"]
    assert rows["send_ps"] == [pytest.approx(v * US) for v in ((5 + 30) / 2, 100, (20 + 10 + 11) / 3)]
    assert rows["recv_done_ps"] == [pytest.approx(v * US) for v in ((40 + 110) / 2, 400, (30 + 10 + 6) / 3)]
    assert rows["stall_fraction"] == [
        pytest.approx(value) for value in (240 / 640, 1.0, (40 + 60 + 40 + 35 + 4) / (340 + 90 + 100))
    ]
    assert rows["count"] == [3, 1, 5]
    assert rows["worst"] == ["all-reduce.1", "permute.3", "all-reduce.1"]
    # Host 0 sent two all-reduces and an all-gather, in 320 µs of a core.
    assert rows["network_bytes"][0] == 2 * 6e6 + 1e6
    assert rows["bytes_per_s"][0] == pytest.approx(13e6 / 320e-6)


def test_messages_are_counted_by_pair_of_slices(page: Payload) -> None:
    rows = table(page, "slices")
    assert (rows["source"], rows["target"]) == ([2, 0], [1, 1])
    assert rows["size_bytes"] == [9000, 4500]
    assert (rows["count"], rows["n_untimed"]) == ([1, 3], [0, 1])
    assert rows["latency_ps"] == [20 * US, 40 * US]
    assert rows["longest_ps"] == [20 * US, 50 * US]


def test_the_verdict_names_the_costliest_transfer_and_the_host_that_waits_longest(page: Payload) -> None:
    assert page.verdict
    stall = 240 + 800 + 179
    span = 640 + 800 + 530
    assert page.scalars["stall_fraction"].value == pytest.approx(stall / span)
    assert page.verdict.level == "bad"
    assert page.verdict.text == (
        "Transfers between slices stall the TPUs for 61.9% of their time, 65.6% of it in `permute.3`."
    )
    assert page.verdict.details == (
        (
            "`permute.3` (ONE_TO_ONE) stalls a core for 800 µs each time, 50.0% of it waiting for the "
            "data (recv-done)."
        ),
        "It has no slack: its recv-done follows its send without other work in between, so the whole "
        "transfer stalls "
        "the core. Move work that does not need the data in between.",
        "`synthetic-1` is stalled longest: 800 µs per core, the median of the others is 89.8 µs.",
    )
    assert page.verdict.next[0].params == {
        "hosts": "synthetic-1",
        "start_ps": str(800 * US),
        "end_ps": str(2000 * US),
    }


def test_the_verdict_says_what_bandwidth_is_needed(session: Session) -> None:
    page = TOOL.run(session, ("synthetic-0",), {})
    assert page.verdict
    assert page.verdict.details[1] == (
        "To send 5.72 MiB within its slack of 200 µs, a core needs 30.0 GB/s, 60.0 GB/s for the 2 "
        "cores of a host. If "
        "the network delivers less, send less or schedule more work between send and recv-done."
    )


def test_numbers_of_the_page(page: Payload) -> None:
    values = {name: scalar.value for name, scalar in page.scalars.items()}
    assert (values["n_rendezvous"], values["n_transfers"]) == (6, 9)
    assert values["stall_ps"] == pytest.approx((240 + 800 + 179) * US / 6)
    sent = 4 * 6e6 + 1e6 + 1e6 + 8e5 + 1.6e5
    assert values["network_bytes"] == pytest.approx(sent / 6)
    needs = {
        "all-reduce.1": 2 * 6e6 / 147.5e-6,
        "all-gather.7": 1e6 / 70e-6,
        "scatter.9": 8e5 / 50e-6,
        "shuffle.5": 1.6e5 / 10e-6,
    }
    assert values["required_bytes_per_s"] == pytest.approx(max(needs.values()))


def test_one_slice_has_nothing_to_show_and_the_reason_says_so(tmp_path: Path) -> None:
    alone = Session(str(write_run(tmp_path / "run", {"h": tpu_xspace(TpuJob())})), cache=False)
    assert TOOL.availability(alone).reason.startswith("no operation of these TPUs sends")
    with pytest.raises(ToolUnavailable, match="the job ran on one slice"):
        TOOL.run(alone, None, {})


def test_a_run_without_tpus_says_that(tmp_path: Path) -> None:
    gpus = Session(str(write_run(tmp_path / "run", {"h": gpu_xspace(GpuJob())})), cache=False)
    availability = TOOL.availability(gpus)
    assert (availability.reason, availability.short) == (
        "only TPUs transfer between slices, and this run has none.",
        "no TPU",
    )
    with pytest.raises(ToolUnavailable, match="only TPUs transfer between slices"):
        TOOL.run(gpus, None, {})


def test_without_programs_the_reason_is_that(tmp_path: Path) -> None:
    unnamed = dcn_host(ALL, [ALONE], has_program=False)
    session = Session(str(write_run(tmp_path / "run", {"h": unnamed})), cache=False)
    assert TOOL.availability(session)
    with pytest.raises(ToolUnavailable, match="but not the programs that name them"):
        TOOL.run(session, None, {})


def test_one_host_without_programs_suffices(tmp_path: Path) -> None:
    """The others have no transfers at all."""
    hosts = {
        "a": tpu_xspace(TpuJob()),
        "b": dcn_host(ALL, [ALONE], has_program=False),
        "c": tpu_xspace(TpuJob()),
    }
    with pytest.raises(ToolUnavailable, match="but not the programs that name them"):
        TOOL.run(Session(str(write_run(tmp_path / "run", hosts)), cache=False), None, {})


def test_a_run_whose_transfers_are_all_cut_off_says_so(tmp_path: Path) -> None:
    cut = dcn_host(ALL, ["fusion:0-10 send.1:10-20 send-done.1:20-30"])
    page = TOOL.run(Session(str(write_run(tmp_path / "run", {"h": cut})), cache=False), None, {})
    assert page.verdict
    assert page.verdict.text.startswith("No transfer between slices completed")
    assert page.tables["rendezvous"].n_rows == 0
    assert page.scalars["required_bytes_per_s"].value is None


def test_the_first_receive_after_a_send_ends_the_transfer(tmp_path: Path) -> None:
    """A second recv-done has no send of its own; a second send before it begins the transfer anew."""
    runs = (
        "send.1:0-10 recv.1:10-20 fusion:20-50 recv-done.1:50-60 fusion:60-100 recv-done.1:100-130 "
        "send.2:130-140 fusion:140-200 send.2:200-205 recv.2:205-210 fusion:210-250 recv-done.2:250-300"
    )
    hosts = {"h": dcn_host(ALL, [runs])}
    page = TOOL.run(Session(str(write_run(tmp_path / "run", hosts)), cache=False), None, {})
    first, anew = row_of(page, "all-reduce.1"), row_of(page, "all-gather.7")
    assert (first["count"], first["stall_ps"], first["slack_ps"]) == (1, 30 * US, 30 * US)
    assert (anew["count"], anew["stall_ps"], anew["slack_ps"]) == (1, 60 * US, 40 * US)
    assert anew["observed_ps"] == 100 * US


def test_a_core_s_operations_may_be_on_several_lines(tmp_path: Path) -> None:
    """Every other operation on a second line, and every third on a third: the numbers are the same."""
    whole = dcn_host(ALL, [INTERLEAVED])
    expected = row_of(
        TOOL.run(Session(str(write_run(tmp_path / "one", {"h": whole})), cache=False), None, {}),
        "all-reduce.1",
    )
    for n_lines in (2, 3):
        space = xspace_class().FromString(whole)
        plane = next(one for one in space.planes if one.name == b"/device:TPU:0")
        line = next(one for one in plane.lines if one.name == b"XLA Ops")
        events = list(line.events)
        del line.events[:]
        lines = [line]
        for number in range(1, n_lines):
            lines.append(plane.lines.add(id=50 + number, name=line.name, timestamp_ns=line.timestamp_ns))
        for i, one in enumerate(events):
            lines[i % n_lines].events.append(one)
        run = write_run(tmp_path / f"{n_lines}", {"h": space.SerializeToString()})
        assert row_of(TOOL.run(Session(str(run), cache=False), None, {}), "all-reduce.1") == expected


def test_a_host_that_transfers_nothing_has_no_costliest_rendezvous(tmp_path: Path) -> None:
    hosts = {"a": dcn_host(ALL, [ALONE]), "b": tpu_xspace(TpuJob())}
    page = TOOL.run(Session(str(write_run(tmp_path / "run", hosts)), cache=False), None, {})
    rows = table(page, "hosts")
    assert (rows["host"], rows["worst"], rows["count"]) == (["a", "b"], ["all-reduce.1", None], [1, 0])
    assert rows["stall_fraction"][0] == pytest.approx(60 / 340)
    assert np.isnan(float(str(rows["stall_fraction"][1])))
    assert rows["send_ps"][1] == 0
    # Its cores make no transfers, so they do not dilute the share.
    assert page.scalars["stall_fraction"].value == pytest.approx(60 / 340)


@pytest.mark.parametrize(("stall_us", "level"), [(100, "bad"), (99, "warn"), (20, "warn"), (19, "good")])
def test_the_level_follows_the_share_of_time(tmp_path: Path, stall_us: int, level: str) -> None:
    """Of 1,000 µs; send, send-done and recv take 1 µs each."""
    end = 1000 - stall_us + 3
    runs = f"send.1:0-1 send-done.1:1-2 recv.1:2-3 fusion:3-{end} recv-done.1:{end}-1000"
    page = TOOL.run(
        Session(str(write_run(tmp_path / "run", {"h": dcn_host(ALL, [runs])})), cache=False), None, {}
    )
    assert page.scalars["stall_fraction"].value == stall_us / 1000
    assert page.verdict
    assert page.verdict.level == level


def test_two_hosts_are_compared_with_each_other(session: Session) -> None:
    verdict = TOOL.run(session, ("synthetic-0", "synthetic-1"), {}).verdict
    assert verdict
    assert verdict.details[-1] == (
        "`synthetic-1` is stalled longest: 800 µs per core, the median of the others is 120 µs."
    )


def test_operations_without_a_program_are_counted_beside_the_others(tmp_path: Path) -> None:
    hosts = {"a": dcn_host(ALL, [ALONE]), "b": dcn_host(ALL, [ALONE], has_program=False)}
    page = TOOL.run(Session(str(write_run(tmp_path / "run", hosts)), cache=False), None, {})
    assert [notice.message for notice in page.diagnostics if notice.severity == "warning"] == [
        "Transfers by 4 operations are left out: the trace lacks the programs that name them."
    ]


def test_operations_without_a_program_are_added_up_over_hosts(tmp_path: Path) -> None:
    """4 on one host, 8 on another."""
    hosts = {
        "a": dcn_host(ALL, [ALONE]),
        "b": dcn_host(ALL, [ALONE], has_program=False),
        "c": dcn_host(ALL, [INTERLEAVED], has_program=False),
    }
    (warning,) = [notice for notice in shown(tmp_path, **hosts).diagnostics if notice.severity == "warning"]
    assert warning.message.startswith("Transfers by 12 operations are left out: ")


def test_one_of_the_first_hosts_that_transfers_suffices(tmp_path: Path) -> None:
    runs = {"a": tpu_xspace(TpuJob()), "b": dcn_host(ALL, [ALONE]), "c": tpu_xspace(TpuJob())}
    available = Session(str(write_run(tmp_path / "some", runs)), cache=False)
    assert not TOOL.availability(available).reason
    mixed = {"a": gpu_xspace(GpuJob()), "b": tpu_xspace(TpuJob())}
    one_slice = TOOL.availability(Session(str(write_run(tmp_path / "none", mixed)), cache=False))
    assert one_slice.short == "one slice"


def test_shares_of_rendezvous_add_up_to_the_page_s(page: Payload) -> None:
    """Each is of the time of all hosts' cores, which is unlike on the three hosts."""
    shares = [float(str(share)) for share in table(page, "rendezvous")["stall_fraction"]]
    assert len(shares) > 2
    assert sum(shares) == pytest.approx(page.scalars["stall_fraction"].value)


def test_a_transfer_of_unknown_size_needs_no_bandwidth() -> None:
    assert "a core needs" in " ".join(verdict_of(summary_of(), {}).details)
    details = verdict_of(summary_of(size_bytes=0), {}).details
    assert not any("needs" in text or "slack" in text for text in details)
    sent = [_scalars(summary_of(size_bytes=size))["network_bytes"] for size in (1000, 0)]
    assert [number.value for number in sent] == [3000 / 6, None]
    assert sent[1].note == "1 rendezvous is of unknown size"


@pytest.mark.parametrize(
    ("stalls_us", "named"),
    [
        ((149, 100, 100), ""),
        ((150, 100, 100), "a"),
        ((100, 90, 160), "c"),
        ((0, 0, 0), ""),
        ((1, 0, 0), "a"),
        ((500,), ""),
    ],
)
def test_a_host_that_is_stalled_half_as_long_again_is_named(stalls_us: tuple[int, ...], named: str) -> None:
    details = verdict_of(summary_of(stalls_us=stalls_us), {}).details
    assert [text.partition("` is stalled longest")[0] for text in details if "stalled longest" in text] == (
        [f"`{named}"] if named else []
    )


def summary_of(size_bytes: int = 1000, stalls_us: tuple[int, ...] = (100, 100, 100)) -> Summary:
    """One transfer of all hosts, with two cores each, that stalls each core as long as given; by its
    receive.
    """
    n = len(stalls_us)
    by_half = np.zeros((n, len(Half)))
    by_half[:, Half.RECV_DONE] = np.array(stalls_us) * 2 * US
    one = Rendezvous("all-reduce.1", "ALL_REDUCE", size_bytes, 4, "send.1", "recv.1")
    each = np.array([n], np.int64)
    return Summary(
        (one,), each, each, each, np.array([2]), np.array([50.0 * US]), np.array([90.0 * US]),
        by_half.mean(axis=0, keepdims=True), tuple("abc"[:n]), np.full(n, 2), by_half,
        np.full(n, 2000.0 * US), np.full(n, 1), np.full(n, 1000.0), np.zeros(n, np.int64),
    )  # fmt: skip


def test_transfers_of_unknown_size_are_counted(session: Session, page: Payload) -> None:
    assert page.scalars["network_bytes"].note == "1 rendezvous is of unknown size"
    assert TOOL.run(session, ("synthetic-0",), {}).scalars["network_bytes"].note == ""


def shown(folder: Path, **hosts: bytes) -> Payload:
    return TOOL.run(Session(str(write_run(folder / "run", hosts)), cache=False), None, {})


def test_a_host_of_one_core_needs_no_sum_over_cores(tmp_path: Path) -> None:
    page = shown(tmp_path, a=dcn_host(ALL, [ALONE]))
    assert page.verdict
    assert page.verdict.details[1].startswith(
        "To send 5.72 MiB within its slack of 280 µs, a core needs 21.4 GB/s."
    )
    needed = page.scalars["required_bytes_per_s"]  # of the only rendezvous
    assert (needed.value, needed.note) == (pytest.approx(6e6 / 280e-6), "per host, all-reduce.1")


def test_a_host_is_compared_with_the_median_of_the_others(tmp_path: Path) -> None:
    """Stalled for 400, 100, 10 and 10 µs; send, send-done and recv take 1 µs each."""
    hosts = {}
    for name, stall in (("a", 400), ("b", 100), ("c", 10), ("d", 10)):
        runs = f"send.1:0-1 send-done.1:1-2 recv.1:2-3 fusion:3-500 recv-done.1:500-{500 + stall - 3}"
        hosts[name] = dcn_host(ALL, [runs])
    page = shown(tmp_path, **hosts)
    assert page.verdict
    assert page.verdict.details[-1] == (
        "`a` is stalled longest: 400 µs per core, the median of the others is 10.0 µs."
    )


def test_bytes_are_unknown_if_no_size_is_known(session: Session) -> None:
    total = summary(session.map(transfers_of, session.hosts))
    unsized = replace(total, rendezvous=tuple(replace(one, size_bytes=0) for one in total.rendezvous))
    for found, is_known in ((total, True), (unsized, False)):
        rows = table(Payload("t", "r", (), {"hosts": hosts_table(found)}, {}), "hosts")
        cells = [*rows["network_bytes"], *rows["bytes_per_s"]]
        known = [bool(np.isfinite(float(str(cell)))) for cell in cells]
        assert known == [is_known] * 6


def test_durations_are_unknown_if_clocks_contradict_each_other_for_all_messages() -> None:
    """From slice 0 to 1 and 2; of the latter none of two messages has a duration."""
    rows_of = ([0, 0], [1, 2], [3, 2], [90, 40], [2, 0], [50, 0], [30, 0])
    columns = [np.array(values, np.int64) for values in rows_of]
    (slices,) = slices_table([Messages(*columns, 5)]).values()
    rows = table(Payload("t", "r", (), {"slices": slices}, {}), "slices")
    assert [str(cell) for cell in rows["longest_ps"]] == ["30.0", "nan"]
    assert [str(cell) for cell in rows["latency_ps"]] == ["25.0", "nan"]
    assert rows["n_untimed"] == [1, 2]


def test_events_without_messages_on_one_host_are_said(tmp_path: Path) -> None:
    page = shown(tmp_path, a=dcn_host(ALL, [ALONE]), b=tpu_xspace(TpuJob()))
    assert any("but no message with its slices and size" in one.message for one in page.diagnostics)
