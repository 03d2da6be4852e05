"""Memory by module and PyTorch's data loader on real captures (tests/data/kineto, the corpus): against plain
loops over the file, and against what the job measured of itself.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path

import pytest

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.input.torch_loader import loader_changes, loader_use
from tb_tpuprof.session import Session
from tb_tpuprof.tools.memory_profile.view import TOOL
from tb_tpuprof.tools.why import diagnosis
from tests.truth.plain_modules import memories
from tests.truth.test_heap import rows

DATA = Path(__file__).parents[1] / "data" / "kineto"
CORPUS = Path(os.environ.get("TPUPROF_CORPUS", "none")) / "tracelens_torch" / "traces"
FILES = (
    "h100/Falconsai_nsfw_image_detection__1016002.json.gz",
    "h100/gaunernst_bert-small-uncased__1016001.json.gz",
    "mi300/gaunernst_bert-small-uncased__1016001.json.gz",
)
NAMES = {"0:-1": "cpu", "1:0": "cuda:0", "6:0": "hip:0"}
OLDER = "(allocated before the capture)"


def check(path: Path) -> int:
    """Each memory's rows by module; returns how many rows were compared."""
    n = 0
    session = Session(str(path), cache=False)
    for device, true in memories(path).items():
        payload = TOOL.run(session, None, {"memory": NAMES[device]})
        assert payload.scalars["peak_bytes"].value == true["peak"]
        shown = [row for row in rows(payload, "modules") if row["module"] != OLDER]
        older = [row["at_bytes"] for row in rows(payload, "modules") if row["module"] == OLDER]
        assert older == ([true["older"]] if true["older"] else [])
        keys = [(row["phase"], row["module"]) for row in shown]
        assert set(true["allocated"]) <= set(keys)
        for key, row in zip(keys, shown, strict=True):
            expected = [true[name].get(key, 0) for name in ("allocated", "n", "at_peak", "kept")]
            names = ("allocated_bytes", "n_allocated", "at_bytes", "kept_bytes")
            assert [row[name] for name in names] == expected, key
        everything = sum(int(str(row["at_bytes"])) for row in rows(payload, "modules"))
        assert everything == true["peak"]
        operations = rows(payload, "operations")
        assert sum(int(str(row["at_bytes"])) for row in operations) == true["peak"]
        check_inner(shown)
        n += len(shown)
    return n


def check_inner(shown: list[dict[str, object]]) -> None:
    """Bytes with submodules are sums over all paths that begin with a module's."""
    sizes: dict[tuple[object, str], int] = defaultdict(int)
    for row in shown:
        layers = str(row["module"]).split(" › ")
        for depth in range(1, len(layers) + 1):
            sizes[row["phase"], " › ".join(layers[:depth])] += int(str(row["at_bytes"]))
    for row in shown:
        assert row["with_submodules_bytes"] == sizes[row["phase"], str(row["module"])]


def test_modules_of_a_training_job_hold_what_the_file_says() -> None:
    assert check(DATA / "modules.pt.trace.json.gz") == 19


@pytest.mark.skipif(not CORPUS.is_dir(), reason="needs TPUPROF_CORPUS with tracelens_torch")
@pytest.mark.parametrize("name", FILES)
def test_modules_of_real_models_hold_what_the_file_says(name: str) -> None:
    assert check(CORPUS / name) > 70


def test_a_program_that_keeps_one_tensor_a_step() -> None:
    """The program keeps floats: 1001, 1002 and 1003 of them, made outside of modules in the recorded
    steps.
    """
    payload = TOOL.run(Session(str(DATA / "modules.pt.trace.json.gz"), cache=False), None, {})
    (kept,) = [row for row in rows(payload, "operations") if row["op"] == "aten::full"]
    assert (kept["n_kept"], kept["kept_bytes"]) == (3, 4 * (1001 + 1002 + 1003))


def test_workers_that_are_too_slow_take_as_long_as_the_job_measured() -> None:
    """Of ten steps the first and the last are left out. Each call of `next` costs a little more than
    the fetch.
    """
    truth = json.loads((DATA / "workers.json").read_text("utf-8"))
    session = Session(str(DATA / "workers.pt.trace.json.gz"), cache=False)
    use = session.get(loader_use, session.hosts[0])
    assert use is not None
    waits, steps = truth["wait_s"][1:-1], truth["steps"][1:-1]
    assert (use.mode, use.n_steps, use.n_fetches) == ("workers", 8, 8)
    assert use.steps_ps / 1e12 == pytest.approx(sum(steps), rel=0.01)
    assert use.fetch_ps / 1e12 == pytest.approx(sum(waits), rel=0.01)
    assert use.waiting_ps / 1e12 == pytest.approx(sum(waits), rel=0.01)
    assert use.longest_ps / 1e12 == pytest.approx(max(waits), rel=0.01)
    (change,) = loader_changes(use)
    assert change.gain_ps / 1e12 <= sum(waits) / 8
    factor = sum(steps) / (sum(steps) - sum(waits))
    assert change.text.startswith(f"Use {factor:.1f} times as many `num_workers`")
    # The diagnosis names it, too, though only every second step waits: there are two workers.
    first = diagnosis(session, session.hosts, "").findings[0]
    assert first.cause == Cause.INPUT
    assert first.time_ps / 1e12 == pytest.approx(sum(waits) / 8, rel=0.01)
