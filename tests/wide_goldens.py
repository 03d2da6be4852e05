"""Goldens of many small recorded and synthetic runs, and of several as the hosts of one run: every scalar and
sentence of each page and request, each table as its number of rows, its sums and a hash, and the whole
diagnosis.

They detect a change of any value on kinds of runs that no other golden has; what is right is checked by the
tests of the recorded runs. `make golden` writes them to `tests/golden_wide/`.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from tb_tpuprof.errors import ProfilerError
from tb_tpuprof.session import Session
from tb_tpuprof.tools import all_tools
from tb_tpuprof.tools.why import diagnosis, plain
from tests.conformance.live_runs import RUNS as SYNTHETIC
from tests.device_goldens import DATA, REQUESTS, Answer, answer_of, nothing
from tests.golden_files import ROOT, rounded, table_of, write_goldens
from tests.synthetic import write_run

WIDE_GOLDEN = ROOT / "tests" / "golden_wide"
_MANY = 1_000_000
_TF_DATA = (
    "autotuned_map_arithmetic", "batch_copy_prefetch", "cache_map_sleep", "flat_map_inner_sleep", "generator_zip",
    "interleave_inner_arithmetic", "map_prefetch_map_sleep", "parallel_consumer", "parallel_shuffle",
    "remove_after_prefetch", "sample_sleep", "tfrecord_interleave", "zip_second_arithmetic",
)  # fmt: skip
_TOGETHER = {
    "tensorflow_hosts": ("corpus/tf_slow_input", "corpus/tf_keras_slow", "corpus/tf_shuffle"),
    "jax_hosts": ("corpus/jax_scan", "corpus/jax_loop_python", "corpus/jax_four_devices"),
    "gpu_hosts": ("gpu/jax_slow1", "gpu_planted/jax_put", "gpu_planted/jax_python"),
    "torch_ranks": ("gpu/torch_loader0", "gpu/torch_sleepy", "gpu/torch_async"),
    "unlike_hosts": ("gpu_planted/torch_small", "corpus/tf_graph", "gpu/jax_sync1"),
}


def _recorded() -> dict[str, tuple[str, ...]]:
    """The files of each run, relative to the data, without their endings."""
    alone = [
        *(f"{folder}/{path.name.split('.')[0]}"
          for folder in ("corpus", "gpu", "gpu_planted")
          for path in sorted((DATA / folder).glob("*.gz"))),
        *(f"tf_data/{name}" for name in _TF_DATA),
    ]  # fmt: skip
    return {name.replace("/", "_"): (name,) for name in alone} | _TOGETHER


RECORDED = _recorded()
RUNS = (*RECORDED, *(f"synthetic_{name}" for name in SYNTHETIC))


def _files(run: str) -> dict[str, bytes]:
    if run not in RECORDED:
        return {f"{host}.xplane.pb": data for host, data in SYNTHETIC[run.removeprefix("synthetic_")].items()}
    packed_files = [path for name in RECORDED[run] for path in DATA.glob(f"{name}.*.gz")]
    return {path.name.removesuffix(".gz"): gzip.decompress(path.read_bytes()) for path in packed_files}


@cache
def _session(run: str) -> Session:
    """The run in a new folder, opened."""
    folder = Path(tempfile.mkdtemp(prefix="wide_golden_")) / run
    files = _files(run)
    if all(name.endswith(".xplane.pb") for name in files):
        write_run(folder, {name.removesuffix(".xplane.pb"): data for name, data in files.items()})
    else:
        folder.mkdir()
        for name, data in files.items():
            (folder / name).write_bytes(data)
    return Session(str(folder), cache=False)


def golden_text(run: str) -> str:
    """The golden of a run: a line for each page, request and finding."""
    session = _session(run)
    lines = {}
    for tool in all_tools():
        try:
            page = answer_of(session, tool.name, "", {})
        except ProfilerError as error:
            lines[tool.name] = {"error": str(error)}
            continue
        lines[tool.name] = _digest(page)
        for question, params in REQUESTS.get(tool.name, nothing)(page, session):
            lines[f"{tool.name}/{question} {json.dumps(params)}"] = _requested(
                session, tool.name, question, params
            )
    lines["why"] = _digest_of_plain(plain(diagnosis(session)))
    return json.dumps(lines, indent=0, ensure_ascii=False) + "\n"


def _requested(session: Session, tool: str, question: str, params: dict[str, Any]) -> Answer:
    try:
        return _digest(answer_of(session, tool, question, params))
    except ProfilerError as error:
        return {"error": str(error)}


def _digest(answer: Answer) -> Answer:
    scalars = " | ".join(f"{name} {_text(scalar['value'])}" for name, scalar in answer["scalars"].items())
    tables = {name: _table(table) for name, table in answer["tables"].items()}
    rest = {key: answer[key] for key in ("verdict", "diagnostics", "is_diagnosed") if answer.get(key)}
    return {"scalars": scalars, "tables": tables, **rest}


def _table(table: dict[str, Any]) -> str:
    full = table_of(table, _MANY)
    rows = hashlib.sha256("\n".join([full["columns"], *full["rows"]]).encode()).hexdigest()[:10]
    return f"{full['n_rows']} rows {rows}: {full['sums']}"


def _digest_of_plain(value: Any) -> Any:
    """The same with rounded numbers."""
    if isinstance(value, dict):
        return {key: _digest_of_plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_digest_of_plain(one) for one in value]
    return _text(value) if isinstance(value, float) else value


def _text(value: Any) -> str:
    return rounded(value) if value is None or isinstance(value, (int, float)) else str(value)


def write() -> None:
    """Write all goldens."""
    write_goldens(WIDE_GOLDEN, {WIDE_GOLDEN / "runs" / f"{run}.json": golden_text(run) for run in RUNS})


if __name__ == "__main__":
    write()
