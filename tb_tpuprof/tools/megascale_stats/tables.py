"""The tables and numbers of transfers between slices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tb_tpuprof.analysis.dcn.messages import Messages
from tb_tpuprof.analysis.dcn.ops import Half
from tb_tpuprof.analysis.dcn.summary import Summary
from tb_tpuprof.tools.megascale_stats.queries import QUERIES
from tb_tpuprof.tools.payload import Table
from tb_tpuprof.tools.spec import ScalarSpec, TableSpec, known_texts, number, text
from tb_tpuprof.tools.tiles import tiles

_NO_SIZE = "the program does not state the kind of collective, its size or its participants"
_HALVES = (
    (Half.SEND, "send_ps", "In send", "Handing the data to the host"),
    (Half.SEND_DONE, "send_done_ps", "In send-done", "Waiting until the data is sent"),
    (Half.RECV, "recv_ps", "In recv", "Handing an empty buffer to the host"),
    (Half.RECV_DONE, "recv_done_ps", "In recv-done", "Waiting until the data has arrived"),
)
RENDEZVOUS = TableSpec(
    "rendezvous",
    "Rendezvous",
    (
        text("rendezvous", "Rendezvous", "XLA's name of the collective between slices"),
        number(
            "total_stall_ps", "Total stall", "ps", "Sum of the stalls on all cores", formula="stall × times"
        ),
        number(
            "stall_fraction",
            "Of TPU time",
            "fraction",
            "Total stall as a share of the time of all cores",
            formula="total stall ÷ Σ time of the cores",
        ),
        text(
            "transfer_type",
            "Type",
            "Kind of collective, such as ALL_REDUCE",
            unknown="neither the program nor the trace states it",
        ),
        number(
            "network_bytes",
            "Data",
            "bytes",
            "Bytes that one core sends over the network each time, from the size n of the buffer that it "
            "receives and the number of participants g",
            formula="ONE_TO_ONE n·g; ALL_GATHER, ALL_TO_ALL n·(g−1)/g; ALL_REDUCE 2n·(g−1)/g; REDUCE_SCATTER "
            "n·(g−1)",
            unknown=_NO_SIZE,
        ),
        number("count", "Times", "count", "Transfers that completed, on all cores"),
        number(
            "stall_ps",
            "Stall",
            "ps",
            "Time that a core spends in the four operations, mean",
            formula="Σ of the four",
        ),
        *(number(name, title, "ps", f"{meaning}, mean") for _, name, title, meaning in _HALVES),
        number(
            "slack_ps",
            "Slack",
            "ps",
            "Time that the network has without stalling the core, mean: from the start of send to that of "
            "recv-done, without the operations of any transfer in between",
        ),
        number(
            "observed_ps", "Observed duration", "ps", "From the start of send to the end of recv-done, mean"
        ),
        number(
            "required_bytes_per_s",
            "Required bandwidth",
            "bytes_per_s",
            "What one core needs to send its data within the slack",
            formula="data ÷ slack",
            unknown="there is no slack, or the data is unknown",
        ),
        number(
            "host_bytes_per_s",
            "Required per host",
            "bytes_per_s",
            "The required bandwidth times the cores of one host that run it, the most of any host",
            formula="required bandwidth × cores",
            unknown="there is no slack, or the data is unknown",
        ),
        number(
            "observed_bytes_per_s",
            "Observed bandwidth",
            "bytes_per_s",
            "Data per observed duration: the network delivered at least this",
            formula="data ÷ observed duration",
            unknown=_NO_SIZE,
        ),
        number("n_hosts", "Hosts", "count", "Hosts that run it"),
        number("n_cores", "Cores", "count", "Cores that run it"),
        text("send_op", "Send", "The operation that sends", unknown="the trace has no send"),
        text("recv_op", "Receive", "The operation that ends the receive", unknown="the trace has no receive"),
    ),
    "A row for each collective between slices, the longest total stall first",
)
HOSTS = TableSpec(
    "hosts",
    "Stall by host",
    (
        text("host", "Host", "Name of the host"),
        *(
            number(name, title, "ps", f"{meaning}: sum of all transfers, mean per core")
            for _, name, title, meaning in _HALVES
        ),
        number(
            "stall_fraction",
            "Of TPU time",
            "fraction",
            "Time in the four operations as a share of the time of the host's cores",
            formula="Σ stall ÷ Σ time of the cores",
            unknown="the host's cores ran nothing",
        ),
        number("count", "Transfers", "count", "Transfers that completed on the host's cores"),
        number(
            "network_bytes",
            "Sent",
            "bytes",
            "Bytes that its cores sent over the network; unknown sizes count as 0",
        ),
        number(
            "bytes_per_s",
            "Mean rate",
            "bytes_per_s",
            "Bytes sent per second of a core's time",
            formula="sent ÷ (Σ time of the cores ÷ cores)",
            unknown="the host's cores ran nothing",
        ),
        text(
            "worst",
            "Longest stall in",
            "The rendezvous that stalls the host's cores longest",
            unknown="nothing stalls them",
        ),
    ),
    "A row for each host",
    sentence="How long transfers between slices stall each host's cores",
)
SLICES = TableSpec(
    "slices",
    "Messages between slices",
    (
        number("source", "From slice", "id", "Number of the slice that sends"),
        number("target", "To slice", "id", "Number of the slice that receives"),
        number("count", "Messages", "count", "Messages that the hosts received"),
        number("size_bytes", "Data", "bytes", "Sum of their sizes"),
        number(
            "latency_ps",
            "Mean duration",
            "ps",
            "Time from sending a message to its arrival, by the clocks of both hosts",
            unknown="the clocks contradict each other for all messages",
        ),
        number("longest_ps", "Longest", "ps", "The longest duration"),
        number(
            "n_untimed",
            "Without duration",
            "count",
            "Messages that arrived before they were sent, by the clocks",
        ),
    ),
    "A row for each pair of slices; absent if no host recorded messages",
    is_optional=True,
)
QUERIES_TABLE = TableSpec(
    "queries",
    "Queries for Perfetto",
    (
        text("question", "Question", "What the query answers"),
        text("sql", "Query", "PerfettoSQL for the file that the page saves"),
    ),
    "A row for each query; the same for all runs",
)
TABLES = (RENDEZVOUS, HOSTS, SLICES, QUERIES_TABLE)
SCALARS = (
    ScalarSpec(
        "stall_fraction",
        "Stalled by transfers",
        "fraction",
        "Share of the cores' time, from their first operation to their last, that transfers between slices "
        "stall them",
        formula="Σ stall ÷ Σ time of the cores",
    ),
    ScalarSpec(
        "stall_ps", "Stall per core", "ps", "Sum of all stalls, mean per core", formula="Σ stall ÷ cores"
    ),
    ScalarSpec(
        "n_rendezvous", "Rendezvous", "count", "Collectives between slices that completed at least once"
    ),
    ScalarSpec("n_transfers", "Transfers", "count", "Completed transfers on all cores"),
    ScalarSpec(
        "network_bytes",
        "Sent per core",
        "bytes",
        "Bytes sent over the network, mean per core",
        unknown=_NO_SIZE,
    ),
    ScalarSpec(
        "required_bytes_per_s",
        "Highest required bandwidth",
        "bytes_per_s",
        "The highest bandwidth per host that a rendezvous needs to stay within its slack",
        formula="max (data ÷ slack × cores of the host)",
        unknown="no rendezvous has a known size and slack",
    ),
)
TILES = tiles(
    "stall_fraction", "stall_ps", "n_rendezvous", "n_transfers", "network_bytes", "required_bytes_per_s"
)


def queries_table() -> Table:
    """The queries with the questions that they answer."""
    return QUERIES_TABLE.fill(
        {"question": [query.question for query in QUERIES], "sql": [query.sql for query in QUERIES]}
    )


def rendezvous_table(total: Summary) -> Table:
    """Means of each rendezvous."""
    rows, span = total.rendezvous, float(total.host_span_ps.sum())
    required = _finite(total.required_bytes_per_s)
    return RENDEZVOUS.fill(
        {
            "rendezvous": [one.name for one in rows],
            "total_stall_ps": total.total_stall_ps,
            "stall_fraction": total.total_stall_ps / (span or np.nan),
            "transfer_type": known_texts([one.transfer_type for one in rows]),
            "network_bytes": total.network_bytes,
            "count": total.count,
            "stall_ps": total.stall_ps.sum(axis=1),
            **{name: total.stall_ps[:, half] for half, name, _, _ in _HALVES},
            "slack_ps": total.slack_ps,
            "observed_ps": total.observed_ps,
            "required_bytes_per_s": required,
            "host_bytes_per_s": required * total.most_on_host,
            "observed_bytes_per_s": _finite(total.network_bytes / total.observed_ps * 1e12),
            "n_hosts": total.n_hosts,
            "n_cores": total.n_cores,
            "send_op": known_texts([one.send_op for one in rows]),
            "recv_op": known_texts([one.recv_op for one in rows]),
        },
        "means over all completed transfers of all cores",
    )


def _finite(
    values: np.ndarray[tuple[int], np.dtype[np.float64]],
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.where(np.isfinite(values), values, np.nan)


def hosts_table(total: Summary) -> Table:
    """What transfers cost each host."""
    cores, span = (
        np.maximum(total.host_cores, 1),
        np.where(total.host_span_ps > 0, total.host_span_ps, np.nan),
    )
    worst = [total.rendezvous[i].name if i >= 0 else "" for i in total.host_worst.tolist()]
    return HOSTS.fill(
        {
            "host": total.hosts,
            **{name: total.host_stall_ps[:, half] / cores for half, name, _, _ in _HALVES},
            "stall_fraction": total.host_stall_ps.sum(axis=1) / span,
            "count": total.host_count,
            "network_bytes": total.host_bytes,
            "bytes_per_s": total.host_bytes / (span / cores) * 1e12,
            "worst": known_texts(worst),
        },
        "stalls are means per core; transfers, sent and rate are of all cores of the host",
    )


def slices_table(received: Sequence[Messages]) -> dict[str, Table]:
    """Messages of all hosts by pair of slices, the most bytes first; none if no host recorded any."""
    columns = {
        name: np.concatenate([np.empty(0, np.int64), *(getattr(part, name) for part in received)])
        for name in ("source", "target", "count", "size_bytes", "timed", "latency_ps", "longest_ps")
    }
    if not len(columns["source"]):
        return {}
    pairs, pair = np.unique(
        np.column_stack((columns["source"], columns["target"])), axis=0, return_inverse=True
    )
    pair = pair.reshape(-1)
    sums = {
        name: np.bincount(pair, columns[name], len(pairs))
        for name in ("count", "size_bytes", "timed", "latency_ps")
    }
    longest = np.zeros(len(pairs))
    np.maximum.at(longest, pair, columns["longest_ps"])
    order = np.argsort(-sums["size_bytes"], kind="stable")
    timed = np.where(sums["timed"] > 0, sums["timed"], np.nan)
    values = {
        "source": pairs[:, 0].astype(np.float64),
        "target": pairs[:, 1].astype(np.float64),
        "count": sums["count"],
        "size_bytes": sums["size_bytes"],
        "latency_ps": sums["latency_ps"] / timed,
        "longest_ps": longest,
        "n_untimed": sums["count"] - sums["timed"],
    }
    return {"slices": SLICES.fill({name: column[order] for name, column in values.items()})}
