"""Queries for Perfetto over the file that the page saves: each answers one question.

They use tables and functions of PerfettoSQL's prelude (`slice`, `thread_track`, `thread`, `process`,
`counter`, `EXTRACT_ARG`). In the file a process is a core, a thread is a rendezvous, and a slice a transfer
with its arguments.
"""

from __future__ import annotations

from dataclasses import dataclass

_FROM = """FROM slice AS s
JOIN thread_track AS t ON s.track_id = t.id
JOIN thread USING (utid)
JOIN process USING (upid)
WHERE s.category = 'dcn'"""


def _arg(name: str) -> str:
    return f"EXTRACT_ARG(s.arg_set_id, 'args.{name}')"


@dataclass(frozen=True)
class Query:
    """A question and the SQL that answers it."""

    question: str
    sql: str


QUERIES = (
    Query(
        "Which rendezvous stalls the cores longest in total?",
        f"""SELECT s.name AS rendezvous, COUNT(*) AS times, SUM({_arg("stall_us")}) / 1e3 AS total_stall_ms,
  AVG({_arg("stall_us")}) AS mean_stall_us, AVG({_arg("slack_us")}) AS mean_slack_us
{_FROM}
GROUP BY s.name ORDER BY total_stall_ms DESC;""",
    ),
    Query(
        "Which transfers took longest, and where are they on the timeline?",
        f"""SELECT s.id, s.ts, s.dur / 1e3 AS duration_us, s.name AS rendezvous, process.name AS core,
  {_arg("stall_us")} AS stall_us, {_arg("in_recv_done_us")} AS in_recv_done_us
{_FROM}
ORDER BY s.dur DESC LIMIT 50;""",
    ),
    Query(
        "How much longer than the median are the slowest transfers of each rendezvous?",
        f"""WITH ranked AS (
  SELECT s.name, s.dur, ROW_NUMBER() OVER (PARTITION BY s.name ORDER BY s.dur) AS place,
    COUNT(*) OVER (PARTITION BY s.name) AS times
  {_FROM.replace(chr(10), chr(10) + "  ")}
)
SELECT name AS rendezvous, times, MAX(CASE WHEN place = (times + 1) / 2 THEN dur END) / 1e3 AS median_us,
  MAX(CASE WHEN place = (times * 99 + 99) / 100 THEN dur END) / 1e3 AS p99_us, MAX(dur) / 1e3 AS longest_us
FROM ranked GROUP BY name, times ORDER BY longest_us DESC;""",
    ),
    Query(
        "Which transfers need more bandwidth than 10 Gbit/s to fit into their slack?",
        f"""SELECT s.id, s.ts, s.name AS rendezvous, process.name AS core,
  {_arg("network_bytes")} AS network_bytes, {_arg("slack_us")} AS slack_us,
  {_arg("required_gbit_per_s")} AS required_gbit_per_s
{_FROM} AND {_arg("required_gbit_per_s")} > 10
ORDER BY required_gbit_per_s DESC;""",
    ),
    Query(
        "In which operation do the cores of each rendezvous wait: send, send-done, recv or recv-done?",
        f"""SELECT s.name AS rendezvous, SUM({_arg("in_send_us")}) AS in_send_us,
  SUM({_arg("in_send_done_us")}) AS in_send_done_us, SUM({_arg("in_recv_us")}) AS in_recv_us,
  SUM({_arg("in_recv_done_us")}) AS in_recv_done_us
{_FROM}
GROUP BY s.name ORDER BY in_recv_done_us DESC;""",
    ),
    Query(
        "Which core is stalled longest?",
        f"""SELECT process.name AS core, COUNT(*) AS transfers, SUM({_arg("stall_us")}) / 1e3 AS stall_ms
{_FROM}
GROUP BY process.name ORDER BY stall_ms DESC;""",
    ),
    Query(
        "When are most transfers of a core outstanding at once?",
        """SELECT process.name AS core, c.ts, c.value AS outstanding
FROM counter AS c
JOIN process_counter_track AS t ON c.track_id = t.id
JOIN process USING (upid)
WHERE t.name GLOB 'outstanding transfers*'
ORDER BY c.value DESC, c.ts LIMIT 20;""",
    ),
)
