"""Requests and batches as the tables of the page."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.stat_rows import distinct_codes
from tb_tpuprof.analysis.inference.latency import histogram, percentiles
from tb_tpuprof.analysis.inference.limits import FEWEST, padding_of, sides
from tb_tpuprof.analysis.inference.names import Phase
from tb_tpuprof.analysis.inference.record import HostInference
from tb_tpuprof.analysis.inference.work import Part
from tb_tpuprof.tools.inference_profile.tables import (
    BATCH_PERCENTILES,
    BATCHES,
    HISTOGRAM,
    N_ROWS,
    PERCENTILES,
    PHASES,
    REQUESTS,
    SIZES,
)
from tb_tpuprof.tools.payload import Table
from tb_tpuprof.tools.requests import too_few, unit_word
from tb_tpuprof.tools.spec import TableSpec, Texts, Values

Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
_FINER = {
    "host_before_ps": Part.HOST_BEFORE,
    "host_runtime_ps": Part.HOST_RUNTIME,
    "host_after_ps": Part.HOST_AFTER,
    "to_device_ps": Part.TO_DEVICE,
    "to_host_ps": Part.TO_HOST,
}


def _known(values: npt.NDArray[np.integer]) -> Floats:
    """Numbers; negative ones are unknown."""
    result = values.astype(np.float64)
    result[values < 0] = np.nan
    return result


def _times(part_ps: Int64s) -> dict[str, Int64s]:
    """The columns of sides and finer parts of rows of parts."""
    return {
        **{f"{side}_ps": time for side, time in sides(part_ps).items()},
        **{name: part_ps[:, part] for name, part in _FINER.items()},
    }


def percentiles_table(found: HostInference) -> Table:
    """The average, the request at each percentile that has enough requests, the mean of the slowest tenth."""
    titles, latency, parts, request, low, high = [], [], [], [], [], []

    def add_mean(title: str, rows: npt.NDArray[np.integer]) -> None:
        titles.append(title)
        latency.append(float(found.latency_ps[rows].mean()))
        parts.append(found.part_ps[rows].mean(axis=0))
        request.append(-1)
        low.append(-1)
        high.append(-1)

    if len(found):
        add_mean("Average", np.arange(len(found)))
    missing = []
    for one in found.percentiles:
        if one.row < 0:
            missing.append(one)
            continue
        titles.append(one.name)
        latency.append(float(one.latency_ps))
        parts.append(found.part_ps[one.row].astype(np.float64))
        request.append(one.row)
        low.append(one.low_ps)
        high.append(one.high_ps)
    if len(found) >= FEWEST:
        add_mean("Slowest 10%", found.slowest)
    rows = np.array(request, np.int64)
    has_row = rows >= 0
    table = np.array(parts, np.float64).reshape(-1, len(Part))
    columns: dict[str, Values] = {
        "percentile": titles,
        "latency_ps": np.array(latency, np.float64),
        **{name: np.asarray(values, np.float64) for name, values in _times_of_means(table).items()},
        "low_ps": _known(np.array(low, np.int64)),
        "high_ps": _known(np.array(high, np.int64)),
        "request": np.where(has_row, found.number[rows], np.nan) if len(found) else np.empty(0),
        "start_ps": np.where(has_row, found.start_ps[rows], np.nan) if len(found) else np.empty(0),
        "host": Texts(np.where(has_row, found.host[rows], -1) if len(found) else rows, found.hosts),
    }
    note = too_few(found, missing[0]) if missing and len(found) else ""
    title = _title(found, "Where {a}’s time goes")
    return PERCENTILES.fill(columns, note, title=title, titles=_number_title(found))


def _times_of_means(parts: Floats) -> dict[str, Floats]:
    finer = {name: parts[:, part] for name, part in _FINER.items()}
    return {
        "host_ps": finer["host_before_ps"] + finer["host_runtime_ps"] + finer["host_after_ps"],
        "queue_ps": parts[:, Part.QUEUE],
        "transfer_ps": finer["to_device_ps"] + finer["to_host_ps"],
        "device_ps": parts[:, Part.DEVICE],
        "wait_ps": parts[:, Part.WAIT],
        **finer,
    }


def _title(found: HostInference, template: str) -> str:
    article = {"request": "a request", "pass": "a pass", "batch": "a batch"}[found.unit]
    return template.format(a=article, many=unit_word(found, 2).capitalize())


def _number_title(found: HostInference) -> dict[str, str]:
    """The title of the column with the number of a request, pass or batch."""
    return {"request": unit_word(found, 1).capitalize()}


def histogram_table(found: HostInference) -> Table:
    """How many requests took how long."""
    bins = histogram(found.latency_ps)
    return HISTOGRAM.fill({"low_ps": bins.low_ps, "high_ps": bins.high_ps, "n_requests": bins.n})


def requests_table(found: HostInference) -> Table:
    """The requests, slowest first."""
    rows = np.argsort(-found.latency_ps, kind="stable")[:N_ROWS]
    shown = found.take(rows)
    has_batch = shown.batch >= 0
    batch_number = np.append(found.batches.number, 0)
    in_batch = np.append(found.batches.n_requests, 0)
    columns: dict[str, Values] = {
        "request": shown.number,
        "start_ps": shown.start_ps,
        "latency_ps": shown.latency_ps,
        **_times(shown.part_ps),
        "batch": np.where(has_batch, batch_number[shown.batch], np.nan),
        "n_in_batch": np.where(has_batch, in_batch[shown.batch], np.nan),
        "size": _known(shown.size),
        "model": Texts(shown.model, found.models),
        "pattern": Texts(shown.pattern, found.patterns),
        "host": Texts(shown.host, found.hosts),
    }
    if (found.phase != Phase.NONE).any():
        columns["phase"] = Texts(
            np.where(shown.phase == Phase.NONE, -1, shown.phase.astype(np.int64)),
            [phase.label for phase in Phase],
        )
    if (found.prefill_tokens >= 0).any() or (found.decode_tokens >= 0).any():
        columns |= {
            "prefill_tokens": _known(shown.prefill_tokens),
            "decode_tokens": _known(shown.decode_tokens),
        }
    first = f"the {N_ROWS:,} slowest of {len(found):,}" if len(found) > N_ROWS else "slowest first"
    note = f"{first}; marked by {found.source}"
    return REQUESTS.fill(columns, note, title=_title(found, "{many}"), titles=_number_title(found))


def _padding(size: Int64s, padded: Int64s) -> Floats:
    return np.where((size >= 0) & (padded >= size), (padded - size).astype(np.float64), np.nan)


def _efficiency(size: Int64s, padded: Int64s) -> Floats:
    is_known = (size >= 0) & (padded >= size) & (padded > 0)
    return np.where(is_known, size / np.maximum(padded, 1), np.nan)


def batch_tables(found: HostInference) -> dict[str, Table]:
    """The batches, slowest first, and by percentile; none without a model server's batches."""
    batches = found.batches
    if not len(batches):
        return {}
    rows = np.argsort(-batches.duration_ps, kind="stable")[:N_ROWS]
    shown = batches.take(rows)
    note = f"the {N_ROWS:,} slowest of {len(batches):,}" if len(batches) > N_ROWS else "slowest first"
    columns: dict[str, Values] = {
        "batch": shown.number,
        "start_ps": shown.start_ps,
        "duration_ps": shown.duration_ps,
        "delay_ps": shown.delay_ps,
        "n_requests": shown.n_requests,
        "size": _known(shown.size),
        "padding": _padding(shown.size, shown.padded_size),
        "padded_size": _known(shown.padded_size),
        "efficiency": _efficiency(shown.size, shown.padded_size),
        "device_ps": shown.device_ps,
        "model": Texts(shown.model, found.models),
        "pattern": Texts(shown.pattern, found.patterns),
        "host": Texts(shown.host, found.hosts),
    }
    return {"batches": BATCHES.fill(columns, note), "batch_percentiles": _batch_percentiles(found)}


def _batch_percentiles(found: HostInference) -> Table:
    batches = found.batches
    each = {
        "duration_ps": batches.duration_ps.astype(np.float64),
        "delay_ps": batches.delay_ps.astype(np.float64),
        "padding": _padding(batches.size, batches.padded_size),
        "padded_size": _known(batches.padded_size),
        "efficiency": _efficiency(batches.size, batches.padded_size),
        "device_ps": batches.device_ps.astype(np.float64),
    }
    mean = {name: _mean(values) for name, values in each.items()}
    padding = padding_of(batches)
    if padding is not None:
        mean["efficiency"] = 1 - padding.fraction  # of all slots, as the padding on the page
    given = [one for one in percentiles(batches.duration_ps) if one.row >= 0]
    rows = [one.row for one in given]
    columns: dict[str, Values] = {
        "percentile": ["Average", *(one.name for one in given)],
        **{name: np.append(mean[name], values[rows]) for name, values in each.items()},
    }
    return BATCH_PERCENTILES.fill(columns, "the batch at each percentile of latency")


def _mean(values: Floats) -> float:
    """The mean of the known values, NaN if there are none."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def sizes_table(found: HostInference) -> dict[str, Table]:
    """By size: batches of a model server; else requests or passes whose size is known."""
    batches = found.batches
    if len(batches):
        size, padded, latency, device = (
            batches.size,
            batches.padded_size,
            batches.duration_ps,
            batches.device_ps,
        )
        title = "Batches"
    else:
        size, padded = found.size, np.full(len(found), -1, np.int64)
        latency, device = found.latency_ps, found.part_ps[:, Part.DEVICE]
        title = unit_word(found, 2).capitalize()
    is_known = size >= 0
    if not is_known.any():
        return {}
    sizes, code = distinct_codes(size[is_known])
    n = np.bincount(code)
    columns: dict[str, Values] = {
        "size": sizes,
        "n": n,
        "examples": sizes * n,
        "padding": np.bincount(code, _padding(size, padded)[is_known]),
        "mean_ps": np.bincount(code, latency[is_known].astype(np.float64)) / n,
        "device_ps": np.bincount(code, device[is_known].astype(np.float64)) / n,
    }
    has_padding = bool((padded >= 0).any())
    heading = "Batch size and padding" if has_padding else "Batch size"
    titles = {"n": title, **({"examples": "Sequences"} if found.unit == "pass" else {})}
    return {"sizes": SIZES.fill(columns, title=heading, titles=titles)}


def phases_table(found: HostInference) -> dict[str, Table]:
    """Prefill, decode and mixed passes; none if no annotation tells them apart."""
    phases = [phase for phase in Phase if phase is not Phase.NONE and (found.phase == phase).any()]
    if not phases:
        return {}
    rows = [np.flatnonzero(found.phase == phase) for phase in phases]
    device = np.array([found.part_ps[row, Part.DEVICE].sum() for row in rows], np.float64)
    tokens = np.array([_tokens(found, row) for row in rows], np.float64)
    total = float(device.sum())
    columns: dict[str, Values] = {
        "phase": [phase.label for phase in phases],
        "n_passes": np.array([len(row) for row in rows]),
        "device_ps": device,
        "fraction": device / total if total else np.full(len(rows), np.nan),
        "mean_ps": np.array([found.latency_ps[row].mean() for row in rows]),
        "mean_device_ps": np.array([found.part_ps[row, Part.DEVICE].mean() for row in rows]),
        "mean_sequences": np.array([_mean(_known(found.size[row])) for row in rows]),
        "tokens": tokens,
        "device_per_token_ps": np.where(tokens > 0, device / np.where(tokens > 0, tokens, 1), np.nan),
    }
    return {"phases": PHASES.fill(columns, titles={"n_passes": unit_word(found, 2).capitalize()})}


def _tokens(found: HostInference, rows: npt.NDArray[np.integer]) -> float:
    """Tokens of some passes; NaN if one of them does not state its own."""
    tokens = found.prefill_tokens[rows], found.decode_tokens[rows]
    if any((part < 0).any() for part in tokens):
        return float("nan")
    return float(sum(int(part.sum()) for part in tokens))


def group_table(spec: TableSpec, found: HostInference, code: Int64s, names: Sequence[str]) -> Table:
    """Requests by model or pattern (`code` into `names`, -1 unknown), most requests first."""
    groups, member = distinct_codes(code)
    n = np.bincount(member, minlength=len(groups))
    order = np.argsort(-n, kind="stable")[:N_ROWS]
    by_group = np.split(np.argsort(member, kind="stable"), np.cumsum(n)[:-1]) if len(groups) else []
    chosen = [by_group[i] for i in order.tolist()]
    marks = [{one.name: one for one in percentiles(found.latency_ps[rows])} for rows in chosen]
    parts = np.array([found.part_ps[rows].mean(axis=0) for rows in chosen], np.float64).reshape(-1, len(Part))
    shown = ("host_ps", "queue_ps", "transfer_ps", "device_ps", "wait_ps")
    times = _times_of_means(parts)
    columns: dict[str, Values] = {
        spec.columns[0].name: Texts(groups[order], names),
        "n_requests": n[order],
        "mean_ps": np.array([found.latency_ps[rows].mean() for rows in chosen], np.float64),
        "p50_ps": _known(np.array([mark["p50"].latency_ps for mark in marks], np.int64)),
        "p99_ps": _known(np.array([mark["p99"].latency_ps for mark in marks], np.int64)),
        "max_ps": np.array([found.latency_ps[rows].max() for rows in chosen], np.int64),
        **{name: times[name] for name in shown},
    }
    return spec.fill(columns, titles={"n_requests": unit_word(found, 2).capitalize()})
