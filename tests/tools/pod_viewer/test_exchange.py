"""What cores exchange, drawn by hand: sends and receives as links, groups of meshes, numbers of devices,
SparseCores, classes of time.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tb_tpuprof.session import Session
from tb_tpuprof.tools.payload import Payload
from tb_tpuprof.tools.pod_viewer.view import TOOL
from tests.builders import drawing
from tests.ingest.hlo_protos import TUPLE, array, computation, instruction, proto
from tests.payload_columns import table
from tests.pod_drawing import N_STEPS, drawn_pod
from tests.synthetic import Parts, TpuJob, tpu_xspace, write_run
from tests.tools.drawn_session import session_of

US = 1_000_000
BLOCK = array(256, 256)
BLOCK_BYTES = 256 * 256 * 4
TOKEN = {2: 17}


def pod(folder: Path, hosts: dict[str, bytes], **params: object) -> Payload:
    return TOOL.run(Session(str(write_run(folder / "run", hosts)), cache=False), None, params)


def sends(pairs: str, attribute: str = "_xla_send_recv_source_target_pairs") -> bytes:
    """A program that sends a block from some cores to others."""
    halves = {2: TUPLE, 4: [BLOCK, array(code=8), TOKEN]}
    frontend_attributes = {1: [{1: attribute, 2: pairs}]}
    ops = [
        instruction(1, "parameter", BLOCK),
        instruction(2, "after-all", TOKEN),
        instruction(3, "send", halves, [1, 2], f26=5, f68=frontend_attributes),
        instruction(4, "send-done", TOKEN, [3], f26=5),
        instruction(5, "recv", halves, [2], f26=5, f68=frontend_attributes),
        instruction(6, "recv-done", {2: TUPLE, 4: [BLOCK, TOKEN]}, [5], f26=5),
    ]
    return proto([computation(1, "main", ops, 6)])


SENDING = {
    "fusion.9": "convolution fusion",
    "send.3": "send",
    "send-done.4": "send-done",
    "recv.5": "recv",
    "recv-done.6": "recv-done",
}


def test_a_send_and_its_receive_are_a_link_with_size_latency_bandwidth_and_delay(tmp_path: Path) -> None:
    """Core 0 sends at 300 µs what core 2 awaits from 100 µs on, and has at 400 µs; core 1's block is awaited
    after it was sent.
    """
    hosts = [
        ["fusion.9:0-300 send.3:300-310 send-done.4:310-350", "fusion.9:0-50 send.3:50-60 send-done.4:60-90"],
        [
            "fusion.9:0-100 recv.5:100-101 recv-done.6:101-400",
            "fusion.9:0-100 recv.5:100-101 recv-done.6:101-160",
        ],
    ]
    payload = pod(tmp_path, drawn_pod(hosts, SENDING, sends("{{0,2},{1,3}}")))
    links = table(payload, "channels")
    assert list(zip(links["source"], links["target"], strict=True)) == [
        ("h0 TPU:0", "h1 TPU:0"),
        ("h0 TPU:1", "h1 TPU:1"),
    ]
    assert links["size_bytes"] == [BLOCK_BYTES] * 2
    assert links["latency_ps"] == [100 * US, 60 * US]
    assert links["send_delay_ps"] == [200 * US, 0]
    assert links["bytes_per_s"] == [pytest.approx(BLOCK_BYTES / 100e-6), pytest.approx(BLOCK_BYTES / 60e-6)]
    assert links["n_per_step"] == [1, 1]
    assert set(links["ops"]) == {"send.3, recv.5, recv-done.6"}
    assert set(links["channel_id"]) == {5}
    cores = table(payload, "cores")
    assert cores["send_ps"] == [50 * US, 40 * US, 0, 0]
    assert cores["recv_ps"] == [0, 0, 300 * US, 60 * US]
    assert payload.tables["collectives"].n_rows == 0


def test_links_that_lead_out_of_the_hosts_are_counted_and_pairs_that_make_no_sense_are_none(
    tmp_path: Path,
) -> None:
    hosts = [["fusion.9:0-300 send.3:300-310 send-done.4:310-350", "recv.5:0-1 recv-done.6:1-400"]]
    out = pod(tmp_path / "out", drawn_pod(hosts, SENDING, sends("{{0,1},{1,77}}")))
    assert out.tables["channels"].n_rows == 1
    assert "1 more lead to cores outside" in out.tables["channels"].note
    for text in ("", "{{}}", "{{0}}", "nonsense {{{"):
        assert (
            pod(tmp_path / str(len(text)), drawn_pod(hosts, SENDING, sends(text))).tables["channels"].n_rows
            == 0
        )


def permutes(pairs: list[dict[int, int]]) -> bytes:
    """A program with one asynchronous permutation."""
    halves = {2: TUPLE, 4: [BLOCK, BLOCK]}
    ops = [
        instruction(1, "parameter", BLOCK),
        instruction(3, "collective-permute-start", halves, [1], f26=2, f52=pairs),
        instruction(4, "collective-permute-done", BLOCK, [3]),
    ]
    return proto([computation(1, "main", ops, 4)])


def test_halves_of_a_permutation_are_one_link_from_start_to_done(tmp_path: Path) -> None:
    ops = {
        "fusion.9": "fusion",
        "collective-permute-start.3": "collective-permute-start",
        "collective-permute-done.4": "collective-permute-done",
    }
    hosts = [[
        "collective-permute-start.3:0-1 fusion.9:1-200 collective-permute-done.4:200-230",
        "fusion.9:0-20 collective-permute-start.3:20-21 fusion.9:21-200 collective-permute-done.4:200-220",
    ]]  # fmt: skip
    links = table(pod(tmp_path, drawn_pod(hosts, ops, permutes([{1: 0, 2: 1}, {1: 1, 2: 0}]))), "channels")
    by_target = dict(
        zip(links["target"], zip(links["latency_ps"], links["send_delay_ps"], strict=True), strict=True)
    )
    assert by_target == {"h0 TPU:1": (200 * US, 0), "h0 TPU:0": (210 * US, 20 * US)}
    assert set(links["size_bytes"]) == {BLOCK_BYTES}


def reduces(groups: dict[int, object]) -> bytes:
    """A program with one all-reduce whose groups are written in one of the forms that XLA has."""
    more = {f"f{number}": value for number, value in groups.items()}
    return proto(
        [
            computation(
                1,
                "main",
                [instruction(1, "parameter", BLOCK), instruction(3, "all-reduce", BLOCK, [1], f26=1, **more)],
                3,
            )
        ]
    )


def iota(shape: tuple[int, int], reshape: tuple[int, ...], permutation: tuple[int, ...]) -> dict[int, object]:
    return {87: {2: {1: shape[0], 2: shape[1], 3: reshape, 4: permutation}}}


MESH = {1: [{1: "x", 2: 2}, {1: "y", 2: 2}, {1: "z", 2: 2}], 2: ()}
REDUCING = {"fusion.9": "convolution fusion", "all-reduce.3": "all-reduce"}


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        ({49: [{1: (0, 1, 2, 3)}, {1: (4, 5, 6, 7)}]}, "{0,1,2,3} {4,5,6,7}"),
        (iota((2, 4), (8,), (0,)), "{0,1,2,3} {4,5,6,7}"),
        (iota((4, 2), (2, 4), (1, 0)), "{0,4} {1,5} {2,6} {3,7}"),
        (iota((4, 2), (2, 2, 2), (0, 2, 1)), "{0,2} {1,3} {4,6} {5,7}"),
        (iota((2, 4), (2, 2, 2), (1, 0, 2)), "{0,1,4,5} {2,3,6,7}"),
        ({93: {1: MESH, 2: [{1: 1}]}}, "{0,2} {1,3} {4,6} {5,7}"),
        ({93: {1: MESH, 2: [{1: 0}, {1: 2}]}}, "{0,1,4,5} {2,3,6,7}"),
        ({93: {1: {**MESH, 2: (7, 6, 5, 4, 3, 2, 1, 0)}, 2: [{1: 2}]}}, "{7,6} {5,4} {3,2} {1,0}"),
    ],
)
def test_groups_of_meshes_are_spelled_out_and_waiting_is_told_within_each(
    tmp_path: Path, groups: dict[int, object], expected: str
) -> None:
    """Two hosts of four cores; core 5 comes 100 µs late: only the cores of its group wait."""
    members = [set(map(int, text.strip("{}").split(","))) for text in expected.split()]
    late_group = next(group for group in members if 5 in group)
    cores = [
        f"fusion.9:0-{500 if core == 5 else 400} "
        f"all-reduce.3:{500 if core == 5 else 400}-{550 if core in late_group else 450}"
        for core in range(8)
    ]
    payload = pod(tmp_path, drawn_pod([cores[:4], cores[4:]], REDUCING, reduces(groups)))
    rows = table(payload, "collectives")
    assert (rows["groups"], rows["n_groups"], rows["group_size"]) == (
        [expected],
        [len(members)],
        [len(late_group)],
    )
    assert rows["groups_from"] == ["the program"]
    assert rows["transfer_ps"] == [50 * US]
    waits = table(payload, "cores")["collective_wait_ps"]
    assert waits == [100 * US if core in late_group - {5} else 0 for core in range(8)]
    assert table(payload, "stragglers")["straggler"] == ["h1 TPU:1"]


@pytest.mark.parametrize(
    "groups", [iota((2, 4), (2, 2), (0, 1)), iota((2, 4), (8,), (3,)), {93: {1: MESH, 2: [{1: 9}]}}]
)
def test_groups_that_make_no_sense_are_everybody(tmp_path: Path, groups: dict[int, object]) -> None:
    cores = ["fusion.9:0-400 all-reduce.3:400-450"] * 8
    rows = table(pod(tmp_path, drawn_pod([cores], REDUCING, reduces(groups))), "collectives")
    assert (rows["groups"], rows["n_groups"], rows["group_size"]) == (["all"], [1], [8])


def test_devices_count_by_place_where_the_program_s_numbers_are_no_core_s(tmp_path: Path) -> None:
    """As on a real host of TPU v6e, whose cores are 4 to 7 of the pod and whose program has
    devices 0 to 3.
    """
    cores = ["fusion.9:0-400 all-reduce.3:400-450"] * 4
    program = reduces({49: [{1: (0, 1)}, {1: (2, 3)}]})
    assert table(pod(tmp_path / "own", drawn_pod([cores], REDUCING, program, first_core=4)), "cores")[
        "device"
    ] == [0, 1, 2, 3]
    all_groups = reduces({49: [{1: (0, 1, 2, 3)}, {1: (4, 5, 6, 7)}]})
    assert table(pod(tmp_path / "part", drawn_pod([cores], REDUCING, all_groups, first_core=4)), "cores")[
        "device"
    ] == [4, 5, 6, 7]


def test_sparse_cores_are_no_cores_of_the_map_and_change_no_part(tmp_path: Path) -> None:
    job = TpuJob(Parts(compute=0.6, infeed=0.1), n_cores=2)
    with_them, without = (
        pod(tmp_path / str(n), {"h": tpu_xspace(TpuJob(**{**job.__dict__, "n_sparse_cores": n}), "h")})
        for n in (2, 0)
    )
    for name in ("cores", "parts", "steps"):
        assert table(with_them, name) == table(without, name)
    assert table(with_them, "cores")["core"] == ["h TPU:0", "h TPU:1"]


def test_every_class_of_a_gpu_s_step_has_its_part() -> None:
    """12 µs of each kind of copy and of a collective, 11 of a kernel, 9 between them, and 1 until the mark
    ends.
    """
    names = ("MemcpyHToD", "gemmgemm", "ncclAllRed", "MemcpyDToD", "MemcpyDToH")
    trace = drawing(
        """
            main     [train                                                              ]
            main     <LaunchAA ><LaunchBB ><LaunchCC ><LaunchDD ><LaunchEE >
            /device:GPU:0:
            Stream#1 [MemcpyHToD][gemmgemm ]         [ncclAllRed][MemcpyDToD][MemcpyDToH]
        """,
        {
            "train": {"_r": 1, "step_num": 1},
            **{f"Launch{letter * 2}": {"correlation_id": i} for i, letter in enumerate("ABCDE")},
            **{name: {"correlation_id": i} for i, name in enumerate(names)},
        },
    )
    assert parts_of(TOOL.run(session_of(trace), None, {})) == {
        "compute_ps": 11 * US,
        "input_ps": 12 * US,
        "output_ps": 12 * US,
        "collective_ps": 12 * US,
        "device_copy_ps": 12 * US,
        "idle_ps": 10 * US,
    }


def parts_of(payload: Payload) -> dict[str, object]:
    """The parts of the only core's step."""
    cores = table(payload, "cores")
    parts = {
        name: value
        for name, (value,) in cores.items()
        if name.endswith("_ps") and name not in ("own_ps", "total_ps")
    }
    assert sum(map(float, parts.values())) == cores["total_ps"][0]  # type: ignore[arg-type]
    return parts


def test_every_class_of_a_host_s_step_has_its_part() -> None:
    """Without a device the host is the core: 15 µs of work, 28 waiting for input, 23 copying to a device, the
    rest idle.
    """
    trace = drawing(
        """
            main     [train                                                                              ]
            main       <MatMul:MatMul><IteratorGetNext::DoCompute><MemcpyHToD:MemcpyHToD>  <ab:MemcpyHToH>
        """,
        {"train": {"_r": 1, "step_num": 1}},
    )
    payload = TOOL.run(session_of(trace), None, {})
    assert table(payload, "cores")["core"] == ["host"]
    assert parts_of(payload) == {
        "host_compute_ps": 15 * US,
        "input_ps": (28 + 23) * US,
        "idle_ps": (85 - 15 - 28 - 23) * US,
    }


def test_steps_are_as_many_as_were_drawn(tmp_path: Path) -> None:
    payload = pod(tmp_path, drawn_pod([["fusion.9:0-400"]], REDUCING))
    assert payload.scalars["n_steps"].value == N_STEPS
