"""Saved pages: each field of the protobufs and trees at three unlike values, and values out of range."""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.errors import TraceFormatError
from tb_tpuprof.ingest.pages import messages, trees
from tb_tpuprof.ingest.pages.data_tables import page_of_tables
from tb_tpuprof.ingest.pages.page import SavedPage, columns_of, number_of, text_of, time_of
from tb_tpuprof.ingest.pages.reading import PageFile, page_files, pages_of, read_page
from tests.ingest.hlo_protos import varint
from tests.ingest.messages import written
from tests.ingest.saved_pages import PAGES, any_of, data_table

MS, US, NS = 10**9, 10**6, 10**3


def rows(page: SavedPage, table: str) -> list[dict[str, Any]]:
    columns = page.tables[table]
    values = [
        column if isinstance(column, list) else np.asarray(column).tolist() for column in columns.values()
    ]
    return [dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True)]


def read(page: str, data: bytes) -> SavedPage:
    return {
        "overview_page": messages.overview_page,
        "input_pipeline": messages.input_pipeline,
        "tensorflow_stats": messages.tensorflow_stats,
        "kernel_stats": messages.kernel_stats,
    }[page](page, np.frombuffer(data, np.uint8))


# Protobufs


def test_steps_of_a_tpu_and_of_several_kinds() -> None:
    """Of two kinds in one page, the general one counts; unknown kinds are left out."""
    tpu = [
        any_of("PerTpuStepDetails", written((1, 5 + i), (3, 2.5 + i), (4, 12.5 * (i + 1)), (13, 40.0 + i)))
        + b""
        for i in range(3)
    ]
    tpu[1] = any_of(
        "PerTpuStepDetails", written((1, 6), (3, 3.5), (4, 25.0), (13, 41.0), (14, 7.5), (15, 0.5))
    )
    page = read("input_pipeline", written(*((4, step) for step in tpu)))
    assert rows(page, "steps") == [
        {
            "step": str(5 + i),
            "compute_ps": (40 + i) * MS,
            "input_ps": (2.5 + i) * MS,
            "output_ps": (0, 0.5 * MS, 0)[i],
            "idle_ps": (0, 7.5 * MS, 0)[i],
            "input_fraction": pytest.approx(0.125 * (i + 1)),
        }
        for i in range(3)
    ]
    general = any_of(
        "PerGenericStepDetails", written((1, 2), (3, 1.5), (5, 2.5), (7, 3.5), (10, 4.5), (13, 5.5))
    )
    other = any_of("XPerGenericStepDetails", written((1, 9)))
    page = read("input_pipeline", written((4, tpu[0]), (4, general), (4, other)))
    (row,) = rows(page, "steps")
    assert {name: value for name, value in row.items() if value} == {
        "step": "2",
        "other_ps": 1.5 * MS,
        "output_ps": 2.5 * MS,
        "device_to_device_ps": 3.5 * MS,
        "host_compile_ps": 4.5 * MS,
        "collectives_ps": 5.5 * MS,
    }
    assert read("input_pipeline", written((4, other))).tables == {}


def test_facts_of_the_input_pipeline() -> None:
    """Times are stated in µs, and shown in ms; a time that is not stated is not shown."""
    advice = any_of("BottleneckAnalysis", written((1, "device"), (2, "first"), (4, "second"), (6, "third")))
    data = written(
        (5, written((1, 1500.0), (2, 250.0), (4, 7.0), (5, 1234567.0))),
        (7, written((1, "tip"), (1, ""), (1, "other"), (1, "tip"), (2, advice))),
        (9, "TPU"),
    )
    page = read("input_pipeline", data)
    assert page.facts == (
        ("hardware", "TPU"),
        ("bottleneck", "device"),
        ("reading files on demand ms", "1.5"),
        ("reading files in advance ms", "0.25"),
        ("enqueuing ms", "0.007"),
        ("other input ms", "1,234.57"),
    )
    assert page.statements == ("first", "second", "third")
    assert page.advice == ("tip", "other")


def test_facts_sentences_and_tips_of_the_overview() -> None:
    percents = written(
        *((number, 10.5 + number) for number in (1, 2, 3, 7, 8, 9, 10, 11, 12)), (5, "analysis")
    )
    tips = written(
        (2, "advice"),
        (3, written((1, "host tip"))),
        (4, written((1, "device tip"))),
        (5, written((1, "document"))),
        (5, written((1, "host tip"))),
    )
    place = written((1, 3), (2, 4), (4, "TPU v4"), (5, 8), (9, 2), (10, 5))
    inner = written((7, written((1, "input tip"))), (9, "TPU"))
    page = read("overview_page", written((2, inner), (3, percents), (4, tips), (6, place)))
    facts = dict(page.facts)
    assert list(facts.values()) == [
        *(f"{10.5 + number:g}" for number in (1, 2, 3, 7, 8, 9, 10, 11, 12)),
        "TPU v4",
        *"34825",
        "TPU",
    ]
    assert (facts["hosts"], facts["tasks"], facts["device cores"]) == ("3", "4", "8")
    assert (facts["replicas"], facts["cores per replica"], facts["hardware"]) == ("2", "5", "TPU")
    assert page.statements == ("advice", "analysis")
    assert page.advice == ("host tip", "device tip", "document", "input tip")
    assert page.tables == {}


@pytest.mark.parametrize("number", [4, 5, 1, 2])
def test_tables_of_tensorflow_s_operations_by_preference(number: int) -> None:
    """The table with idle time comes first, then the one without, then those of older versions."""
    order = [4, 5, 1, 2]
    later = order[order.index(number) + 1 :]
    listed = [(one, written((1, written((4, f"table {one}"), (12, 0.25))))) for one in [number, *later]]
    page = read("tensorflow_stats", written(*sorted(listed), (6, "GPU")))
    assert [row["operation"] for row in rows(page, "operations")] == [f"table {number}"]
    assert page.facts == (("device type", "GPU"),)
    empty = [(one, b"") for one in order[: order.index(number)]]
    page = read("tensorflow_stats", written(*listed, *empty))
    assert [row["operation"] for row in rows(page, "operations")] == [f"table {number}"]


def test_numbers_of_all_kinds_in_messages() -> None:
    """Varints and doubles are numbers, an absent one is 0; bytes and floats of 4 bytes are none."""
    single = varint(5 << 3 | 5) + struct.pack("<f", 2.5)
    listed = [
        written((1, "a"), (13, 7), (7, 3), (2, 12)),
        written((1, "b"), (13, 2.5), (7, 0), (2, "text of 4")),
        written((1, "c"), (13, float("inf")), (7, float("nan"))),
        written((1, "d")) + single.replace(bytes([5 << 3 | 5]), bytes([13 << 3 | 5])),
    ]
    page = read("kernel_stats", written(*((1, one) for one in listed)))
    found = {row["kernel"]: row for row in rows(page, "kernels")}
    assert [found[name]["occurrences"] for name in "ab"] == [7, 2.5]
    assert all(math.isnan(found[name]["occurrences"]) for name in "cd")
    assert [found[name]["total_time_ps"] for name in "abd"] == [3 * NS, 0, 0]
    assert math.isnan(found["c"]["total_time_ps"])
    assert [found[name]["registers"] for name in "ad"] == [12, 0]
    assert math.isnan(found["b"]["registers"])
    assert found["a"]["grid"] == found["d"]["block"] == ""


def test_sizes_of_kernels_have_three_numbers_at_most() -> None:
    listed = [
        written((1, name), (5, bytes(block)), (6, bytes(grid)))
        for name, block, grid in (("a", (1, 2, 3, 4), (5,)), ("b", (6, 7), ()), ("c", (), (8, 9, 10)))
    ]
    page = read("kernel_stats", written(*((1, one) for one in listed)))
    assert page.tables["kernels"]["block"] == ["1 × 2 × 3", "6 × 7", ""]
    assert page.tables["kernels"]["grid"] == ["5", "", "8 × 9 × 10"]


def test_each_field_of_operations_in_protobufs() -> None:
    of_input = [
        written(
            (1, name), (7, f"kind {name}"), (2, n), (3, 1.5 * n), (4, 10.0 * n), (5, 0.5 * n), (6, 5.0 * n)
        )
        for name, n in (("a", 2), ("b", 3), ("c", 5))
    ]
    found = rows(read("input_pipeline", written(*((6, one) for one in of_input))), "input_operations")
    assert [tuple(row.values()) for row in found] == [
        (
            name,
            f"kind {name}",
            n,
            1.5 * n * MS,
            pytest.approx(0.1 * n),
            0.5 * n * MS,
            pytest.approx(0.05 * n),
        )
        for name, n in (("a", 2), ("b", 3), ("c", 5))
    ]
    top = [written((1, "op"), (2, "type"), (3, 0.5), (4, 0.75), (5, 2.0)), written((1, "other"))]
    found = rows(read("overview_page", written((3, written(*((4, one) for one in top))))), "top_operations")
    assert tuple(found[0].values()) == ("op", "type", 0.5, 0.75, 2e9)
    assert tuple(found[1].values())[:4] == ("other", "", 0, 0)


def test_texts_are_cut_at_4_096_bytes() -> None:
    long = "\N{MUSICAL SYMBOL G CLEF}" * 1500  # of 4 bytes each
    page = read("input_pipeline", written((9, long), (6, written((1, long)))))
    assert dict(page.facts)["hardware"] == long[:1024]
    assert rows(page, "input_operations")[0]["operation"] == long[:1024]


def test_rates_of_nothing_are_unknown() -> None:
    listed = [written((1, name), (3, 0.5), (5, rate)) for name, rate in (("a", 2.5), ("b", 0.0), ("c", -1.0))]
    page = read("overview_page", written((3, written(*((4, one) for one in listed)))))
    a, b, c = (row["flop_rate"] for row in rows(page, "top_operations"))
    assert a == 2.5e9
    assert math.isnan(b)
    assert math.isnan(c)


# Trees


def tree(**trees_of_page: Any) -> SavedPage:
    return trees.op_profile("op_profile", trees_of_page)


def test_the_first_tree_with_nodes_is_shown_with_its_title() -> None:
    by_program, without_idle, by_category = ({"name": name, "metrics": {"time": 1}} for name in "abc")
    for given, name, title in (
        ({"byProgram": by_program, "byCategory": by_category}, "a", "by program"),
        (
            {"byProgram": {}, "byProgramExcludeIdle": without_idle, "byCategory": by_category},
            "b",
            "by program",
        ),
        ({"byCategory": by_category}, "c", "by category"),
    ):
        page = tree(**given)
        assert [row["name"] for row in rows(page, "op_profile")] == [name]
        assert page.facts == (("tree", title),)
    assert tree(deviceType="TPU").tables == {}


def test_shares_are_of_the_root_s_time_whatever_its_unit() -> None:
    children = [{"name": name, "metrics": metrics} for name, metrics in (
        ("raw", {"rawTime": 300, "time": 0.9}), ("text", {"rawTime": "100"}), ("none", {}),
    )]  # fmt: skip
    page = tree(byCategory={"metrics": {"rawTime": 400}, "children": children})
    root, *shares = (row["time_fraction"] for row in rows(page, "op_profile"))
    assert (root, shares[:2]) == (1, [0.75, 0.25])
    assert math.isnan(shares[2])
    assert [row["name"] for row in rows(page, "op_profile")] == ["(no name)", "raw", "text", "none"]
    page = tree(byCategory={"name": "x", "metrics": {"time": 0}})
    assert math.isnan(rows(page, "op_profile")[0]["time_fraction"])


def test_trees_and_pods_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = {"name": "root", "metrics": {"time": 1}, "children": [{"name": str(i)} for i in range(5)]}
    step = {
        "stepNum": 1,
        "podStatsPerCore": {str(i): {} for i in range(5)},
        "allReduceOpDb": [{"name": str(i)} for i in range(5)],
        "channelDb": [{"channelId": i} for i in range(5)],
    }
    for most in (5, 4):
        monkeypatch.setattr(trees, "MOST_ROWS", most)
        assert [row["name"] for row in rows(tree(byCategory=wide), "op_profile")] == [
            "root", *(str(i) for i in range(most - 1)),
        ]  # fmt: skip
        page = trees.pod_viewer("pod_viewer", {"podStatsSequence": {"podStatsMap": [step]}})
        assert [len(rows(page, name)) for name in ("cores", "collectives", "links")] == [most] * 3


def test_cores_and_links_of_a_pod() -> None:
    """Each time of a core in its column; the newer of two names of a time counts; links of many cores."""
    names = (
        "highFlopsComputeUs", "lowFlopsComputeUs", "hostInfeedDurationUs", "hostOutfeedDurationUs",
        "allReduceComputeDurationUs", "allReduceSyncDurationUs", "sendDurationUs", "recvDurationUs",
    )  # fmt: skip
    cores = {
        "0": {name: i + 1 for i, name in enumerate(names)},
        "1": {"crsDurationUs": 33, "totalDurationUs": 44},
        "2": {"hostName": "w", "bottleneck": "Infeed"},
    }
    link = {
        "srcCoreIds": list(range(20)),
        "dstCoreId": 5,
        "occurrences": 2,
        "sendDelayUs": 3,
        "dataSize": "9",
    }
    step = {"stepNum": 7, "podStatsPerCore": cores, "channelDb": [{**link, "hloNames": list(range(20))}]}
    page = trees.pod_viewer("pod_viewer", {"podStatsSequence": {"podStatsMap": [None, step]}})
    first, second, third = rows(page, "cores")
    times = ("compute_ps", "low_flops_ps", "infeed_ps", "outfeed_ps", "all_reduce_ps", "synchronization_ps")
    assert [first[name] for name in (*times, "send_ps", "receive_ps")] == [(i + 1) * US for i in range(8)]
    assert (second["all_reduce_ps"], second["total_ps"], second["core"]) == (33 * US, 44 * US, "1")
    assert math.isnan(second["compute_ps"])
    assert (third["core_host"], third["bottleneck"], third["step"]) == ("w", "Infeed", "7")
    (row,) = rows(page, "links")
    sixteen = ", ".join(map(str, range(16)))
    assert (row["from_core"], row["to_core"], row["operations"]) == (sixteen, "5", sixteen)
    assert (row["occurrences"], row["send_delay_ps"], row["data_bytes"]) == (2, 3 * US, 9)


def test_facts_of_a_pod_are_leaves_four_levels_deep() -> None:
    deep: dict[str, Any] = {"a": {"b": {"c": {"d": {"e": 1, "f": {"g": 2}}}}}, "list": [1], "none": None}
    page = trees.pod_viewer("pod_viewer", {"runEnvironment": {**deep, "n": 3}})
    assert page.facts == (("a b c d e", "1"), ("n", "3"))


def test_memories_and_allocations() -> None:
    """Indexes at both ends of their lists, and beyond them."""
    snapshots = [{"activityMetadata": {"tfOpName": f"s{i}", "requestedBytes": str(10 + i)}} for i in range(3)]
    special = [{"tfOpName": f"x{i}", "regionType": "output", "dataType": "float"} for i in range(2)]
    entries = [
        {},
        {"snapshotIndex": "2", "numOccurrences": 4},
        {"snapshotIndex": 3},
        {"snapshotIndex": -1, "specialIndex": 1},
        {"snapshotIndex": -1},
        {"snapshotIndex": -1, "specialIndex": 2},
    ]
    memory = {
        "memoryProfileSnapshots": snapshots,
        "specialAllocations": special,
        "activeAllocations": entries,
        "profileSummary": {"peakStats": {"stackReservedBytes": "5", "freeMemoryBytes": "6"}},
    }
    page = trees.memory_profile("memory_profile", {"memoryProfilePerAllocator": {"gpu": memory, "": {}}})
    found = [(row["operation"], row["occurrences"]) for row in rows(page, "allocations")]
    assert found == [("s0", 1), ("s2", 4), ("", 1), ("x1", 1), ("x0", 1), ("", 1)]
    assert [row["requested_bytes"] for row in rows(page, "allocations")][:2] == [10, 12]
    assert rows(page, "allocations")[3]["region"] == "output"
    first, second = rows(page, "memories")
    assert (first["stack_bytes"], first["free_bytes"], first["snapshots"]) == (5, 6, 3)
    assert (second["memory"], second["snapshots"]) == ("(no name)", 0)


# Tables of JSON


def test_tables_are_recognized_by_their_columns() -> None:
    names = {
        "noninfeedTimeMs": 1.5, "infeedTimeMs": 2.5, "deviceComputeTimeMs": 3.5, "deviceToDeviceTimeMs": 4.5,
        "deviceCollectivesTimeMs": 5.5, "hostComputeTimeMs": 6.5, "kernelLaunchTimeMs": 7.5,
        "compileTimeMs": 8.5, "outfeedTimeMs": 9.5, "otherTimeMs": 10.5,
    }  # fmt: skip
    first = data_table(["stepnum", *names], [[str(i), *names.values()] for i in range(3)])
    second = data_table(["stepnum"], [["later"]])
    page = page_of_tables("input_pipeline", [5, first, second])
    assert [row["step"] for row in rows(page, "steps")] == ["0", "1", "2"]
    (row, *_) = rows(page, "steps")
    columns = (
        "compute_ps", "input_ps", "device_compute_ps", "device_to_device_ps", "collectives_ps",
        "host_compute_ps", "host_prepare_ps", "host_compile_ps", "output_ps", "other_ps",
    )  # fmt: skip
    assert [row[name] for name in columns] == [value * MS for value in names.values()]
    assert math.isnan(row["input_fraction"])


def test_rows_of_another_width_and_facts_of_the_page_are_left_out() -> None:
    table = data_table(
        ["opName", "count", "timeInMs"], [["a", 1, 2.5], ["b", 2], ["c", 3, 4.5, 5]],
        device_type="TPU", doc_link="x", step_line_color="y", hostnames="z", remark_text="said", empty="",
    )  # fmt: skip
    table["rows"] += [{"c": [5, {"v": 3}, {"v": 1.5}]}, None]
    page = page_of_tables("input_pipeline", [table])
    assert [(row["operation"], row["total_time_ps"]) for row in rows(page, "input_operations")] == [
        ("a", 2.5 * MS), ("", 1.5 * MS),
    ]  # fmt: skip
    assert page.facts == (("device_type", "TPU"),)
    assert page.statements == ("said",)
    assert page_of_tables("overview_page", {"a": 1}) == SavedPage("overview_page")
    odd = [{"cols": [{"id": "stepnum"}], "rows": rows} for rows in (5, None, {"c": 1})]
    assert page_of_tables("overview_page", odd).tables == {}


def test_a_table_of_one_operation() -> None:
    table = data_table(["opName", "count", "timeInMs", "selfTimeInPercent"], [["a", 3, 2.5, 0.25]])
    (row,) = rows(page_of_tables("input_pipeline", [table]), "input_operations")
    assert (row["operation"], row["occurrences"], row["self_fraction"]) == ("a", 3, 0.25)


def test_columns_are_texts_where_one_value_is() -> None:
    made = columns_of([{"a": 1.0, "b": "x"}, {"a": 2.0, "b": "y"}, {"a": 4.0, "b": "z"}], ["a", "b"])
    assert made["a"].tolist() == [1, 2, 4]
    assert made["b"] == ["x", "y", "z"]
    assert columns_of([{"a": "x"}, {"a": 2.0}, {"a": 4.0}], ["a"])["a"] == ["x", 2.0, 4.0]


def test_texts_and_numbers_at_their_limits() -> None:
    assert number_of(" 5 % ", 2) == 10
    assert math.isnan(number_of(10**400))
    assert math.isnan(number_of(1e300, 1e300))
    assert time_of("2.5", MS) == 2.5 * MS
    link = "<" + "x" * 500 + ">"
    assert text_of(f"a{link}b") == "ab"
    assert text_of(f"a<{'x' * 501}>b").startswith("a<x")
    assert text_of(2.5) == "2.5"


# Files


def placed(folder: Path, name: str, data: bytes) -> str:
    (folder / name).write_bytes(data)
    return str(folder / name)


def test_pages_of_a_folder_in_order_of_host_and_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for host in ("b", "a", "c"):
        for name in ("memory_profile.json.gz", "kernel_stats.pb", "overview_page.pb", "overview_page.json"):
            placed(tmp_path, f"{host}.{name}", PAGES[f"h.{name}"])
    placed(tmp_path, "a.memory_viewer.json", b"{}")
    found = page_files(str(tmp_path), ("c", "a"))
    assert [(file.host, file.page) for file in found] == [
        (host, page)
        for host in ("c", "a")
        for page in ("overview_page", "overview_page", "kernel_stats", "memory_profile")
    ]
    assert [Path(file.path).suffix for file in found[:2]] == [".json", ".pb"]
    monkeypatch.setattr("tb_tpuprof.ingest.pages.reading._MOST_FILES", 7)
    assert page_files(str(tmp_path), ("c", "a")) == found[:7]


@pytest.mark.parametrize(
    ("name", "data", "words", "offset"),
    [
        ("h.kernel_stats.pb", b"", "is empty", 0),
        ("h.pod_viewer.json", b"\x0a\x00", "is not JSON, as this page is", 0),
        ("h.overview_page.json", b'[{"p": ', "is cut off, damaged or not JSON", -1),
        ("h.kernel_stats.pb", b"\xff\xff", "is cut off or damaged", 0),
        ("h.kernel_stats.pb", written((1, "ab")) + b"\x0a\x05a", "is cut off or damaged", 4),
    ],
)
def test_damaged_pages_say_where(tmp_path: Path, name: str, data: bytes, words: str, offset: int) -> None:
    path = placed(tmp_path, name, data)
    page = name.split(".")[1]
    with pytest.raises(TraceFormatError, match=words) as caught:
        read_page(PageFile("h", page, path))
    assert caught.value.message.startswith(name)
    assert caught.value.remedy.startswith("Copy the file again")
    assert caught.value.offset == offset
    pages, failures = pages_of(path, ("h",))
    assert (pages, failures) == ([], [caught.value.message])


@pytest.mark.parametrize(
    ("n_more", "words"), [(0, "is cut off or damaged"), (1, "has more than 64 MiB, which no page has")]
)
def test_pages_of_64_mib_are_read(monkeypatch: pytest.MonkeyPatch, n_more: int, words: str) -> None:
    content = np.zeros(64 * 2**20 + n_more, np.uint8)
    monkeypatch.setattr("tb_tpuprof.ingest.pages.reading.read_file", lambda _path: (content, None))
    with pytest.raises(TraceFormatError, match=words) as caught:
        read_page(PageFile("h", "kernel_stats", "h.kernel_stats.pb"))
    assert caught.value.offset == (-1 if n_more else 0)


def test_json_in_a_protobuf_s_name_and_the_other_way_round(tmp_path: Path) -> None:
    page = read_page(PageFile("h", "overview_page", placed(tmp_path, "h.overview_page.pb", b"[]")))
    assert page == SavedPage("overview_page")
    content = json.dumps([data_table(["stepnum"], [["4"]])]).encode()
    page = read_page(PageFile("h", "input_pipeline", placed(tmp_path, "h.input_pipeline.pb", content)))
    assert [row["step"] for row in rows(page, "steps")] == ["4"]
