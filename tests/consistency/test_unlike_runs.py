"""Runs that hold what seldom comes together, against what was planted: clocks, hosts without accelerators,
evaluation between steps, servers, ranks of unequal lengths, damaged hosts.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tb_tpuprof.errors import ProfilerError, ToolUnavailable
from tb_tpuprof.session import Session
from tb_tpuprof.tools import all_tools, get_tool
from tb_tpuprof.tools.payload import Payload
from tb_tpuprof.units import format_time
from tests import synthetic_unlike as unlike
from tests.consistency.checks import violations
from tests.consistency.runs import pytorch_run
from tests.synthetic import PS_PER_US, step_spans, write_run
from tests.synthetic_serving import Server, serving


def shown(path: Path, tool: str = "overview_page") -> Payload:
    return get_tool(tool).run(Session(str(path), cache=False), None, {})


def value(page: Payload, name: str) -> float:
    number = page.scalars[name].value
    assert number is not None, name
    return float(number)


def cause_times(page: Payload) -> float:
    """The causes of a step together, in ps."""
    columns = page.tables["causes"].columns
    return float(sum(next(column.values for column in columns if column.name == "time_ps")))


def written(folder: Path, hosts: Mapping[str, bytes]) -> Path:
    return write_run(folder / "run", hosts)


def test_a_host_without_accelerators_does_not_count_beside_one_with(tmp_path: Path) -> None:
    """Its steps computed for other times: none of the numbers of the GPU's steps is a mean with them."""
    run = written(tmp_path, unlike.gpu_and_cpu_run())
    lengths = [length for _, length in step_spans(unlike.ONE_GPU)]
    parts = unlike.ONE_GPU.parts
    page = shown(run)
    assert value(page, "step_time_avg_ps") == pytest.approx(sum(lengths) / len(lengths))
    assert value(page, "n_steps") == len(lengths)
    assert value(page, "device_idle_fraction") == pytest.approx(parts.idle)
    assert value(page, "device_compute_fraction") == pytest.approx(parts.compute)
    moved = parts.collective + parts.infeed + parts.outfeed
    assert value(page, "exposed_communication_fraction") == pytest.approx(moved)
    assert value(shown(run, "communication"), "exposed_communication_fraction") == pytest.approx(moved)
    assert cause_times(page) == pytest.approx(sum(lengths) / len(lengths))
    one = get_tool("overview_page").run(Session(str(run), cache=False), None, {"step": "train 2"})
    assert cause_times(one) == pytest.approx(lengths[2])
    assert one.verdict is not None
    assert f"took {format_time(lengths[2])}, " in one.verdict.text
    assert "synthetic-cpu" not in one.verdict.text


def common_steps(spans: list[list[tuple[float, float]]]) -> list[list[tuple[float, float]]]:
    """The steps that all hosts have: each host is shifted against the one that spans the shortest time by the
    number of steps with the longest overlap, the first of 0, 1, 2 …, -1, -2 ….
    """
    lead = min(spans, key=lambda host: host[-1][1] - host[0][0])
    shifts = []
    for host in spans:
        best, most = 0, -1.0
        for shift in (*range(len(host)), *range(-1, -len(lead), -1)):
            overlap = 0.0
            for i, (begin, end) in enumerate(lead):
                if 0 <= i + shift < len(host):
                    other = host[i + shift]
                    overlap += max(0.0, min(end, other[1]) - max(begin, other[0]))
            if overlap > most:
                best, most = shift, overlap
        shifts.append(0 if host is lead else best)
    rows = [
        i
        for i in range(len(lead))
        if all(0 <= i + shift < len(host) for host, shift in zip(spans, shifts, strict=True))
    ]
    return [[host[i + shift] for i in rows] for host, shift in zip(spans, shifts, strict=True)]


def test_hosts_with_clocks_and_numbers_of_steps_of_their_own(tmp_path: Path) -> None:
    spans: list[list[tuple[float, float]]] = []
    for start_ns, n, scale in zip(unlike.CLOCKS_NS, unlike.N_STEPS, unlike.HOST_SCALE, strict=True):
        begin, host = start_ns * 1000.0, []
        for i in range(n):
            length = unlike.TPU.step_ps * scale * unlike.STEP_SCALE[i % len(unlike.STEP_SCALE)]
            host.append((begin, begin + length))
            begin += length
        spans.append(host)
    common = common_steps(spans)
    lengths = [end - begin for host in common for begin, end in host]
    page = shown(written(tmp_path, unlike.clocks_run()))
    assert value(page, "n_steps") == len(common[0])
    assert value(page, "step_time_avg_ps") == pytest.approx(sum(lengths) / len(lengths), rel=1e-6)
    assert page.scalars["step_time_avg_ps"].note == "mean over 3 hosts"


def test_a_loop_that_evaluates_says_how_many_steps_train(tmp_path: Path) -> None:
    """The first and the last of ten steps are left out."""
    inner = unlike.TRAIN_AND_EVAL[1:-1]
    page = shown(written(tmp_path, unlike.evaluated_run()))
    assert value(page, "step_time_avg_ps") == pytest.approx(
        sum(step.length for step in inner) / len(inner) * PS_PER_US
    )
    assert value(page, "host_compute_fraction") == pytest.approx(
        sum(step.compute for step in inner) / sum(step.length for step in inner)
    )
    trains = sum(step.name == "train" for step in inner)
    assert page.scalars["n_steps"].note == f"{trains} train, {len(inner) - trains} eval; 2 more left out"


def test_three_servers_are_summed_and_say_so(tmp_path: Path) -> None:
    servers = [serving(server) for server in unlike.SERVERS]
    run = written(tmp_path, unlike.servers_run())
    page = shown(run, "inference_profile")
    busy = spans = 0
    for server in servers:
        first = min(request.start for request in server.requests)
        last = max(request.end for request in server.requests)
        spans += last - first
        busy += sum(
            min(batch.end, last) - max(batch.end - 60 - batch.device, first) for batch in server.batches
        )
        busy -= sum(60 for batch in server.batches if batch.end <= last)
    assert value(page, "n_requests") == sum(len(server.requests) for server in servers)
    assert value(page, "device_busy_fraction") == pytest.approx(busy / spans, rel=2e-3)
    assert page.scalars["device_busy_fraction"].note.endswith("summed over 3 hosts")
    assert page.verdict is not None
    assert any("to the last, summed over 3 hosts." in text for text in page.verdict.details)
    overview = shown(run)
    assert overview.scalars["duty_cycle_fraction"].value is None  # programs were traced, and no operation
    assert overview.scalars["step_time_avg_ps"].value is None


def test_one_server_sums_nothing(tmp_path: Path) -> None:
    page = shown(written(tmp_path, {"server": serving(Server(n_requests=60)).data}), "inference_profile")
    assert "summed" not in page.scalars["device_busy_fraction"].note
    assert "longest host" not in page.scalars["n_requests"].note


def test_ranks_of_unequal_lengths_share_the_steps_in_the_middle(tmp_path: Path) -> None:
    """Of rank 1's six steps the first and the last are left out; rank 2 has three: the second and third are
    common.
    """
    page = shown(pytorch_run("unequal", tmp_path / "run"))
    common = [rank[i] for rank in unlike.UNEQUAL_RANKS for i in (1, 2)]
    assert value(page, "n_steps") == 2
    assert value(page, "exposed_communication_fraction") == pytest.approx(
        sum(reducing for _, _, reducing in common) / len(common) / 1000, rel=1e-6
    )
    # Two short kernels besides, of 1 µs each.
    assert value(page, "device_compute_fraction") == pytest.approx(
        sum(computing + 2 for _, computing, _ in common) / len(common) / 1000, rel=1e-6
    )


@pytest.mark.parametrize("damage", ["garbage", "empty", "half"])
@pytest.mark.parametrize("hosts", ["tpu_run", "gpu_run", "gpu_and_cpu_run"])
def test_a_damaged_host_is_named_and_the_others_are_shown(tmp_path: Path, hosts: str, damage: str) -> None:
    run = written(tmp_path, getattr(unlike, hosts)())
    bad = sorted(run.iterdir())[-1 if hosts == "tpu_run" else 0]
    whole = bad.read_bytes()
    bad.write_bytes(
        {"garbage": b"\xff\x00garbage" * 99, "empty": b"", "half": whole[: len(whole) // 2]}[damage]
    )
    session = Session(str(run), cache=False)
    pages: dict[str, Payload] = {}
    for tool in all_tools():
        try:
            pages[tool.name] = tool.run(session, None, {})
        except ToolUnavailable:
            continue
        except ProfilerError as error:
            pytest.fail(f"{tool.name} is lost with one host of several: {error}")
    assert violations(pages) == []
    name = bad.name.partition(".")[0]
    told = [one.message for one in pages["overview_page"].diagnostics if one.severity in ("warning", "error")]
    assert any(name in text for text in told), told
