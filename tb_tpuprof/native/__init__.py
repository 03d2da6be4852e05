"""The inner loops: arrays in, arrays out. Compiled where the extension was built, else their plain twins, slow but equal.

`IS_COMPILED` says which. Everything else imports from here only; `ingest/opening.py` chooses the decoder by it.
"""

from __future__ import annotations

import os

from tb_tpuprof.native.plain_pairing import NOWHERE

try:
    if os.environ.get("TPUPROF_PLAIN"):
        raise ImportError("TPUPROF_PLAIN is set")
    from tb_tpuprof.native.calling import charged, contexts, stretches
    from tb_tpuprof.native.interning import alike, intern, joined
    from tb_tpuprof.native.intervals import enclose, flood, lanes, nest, relabel
    from tb_tpuprof.native.json_events import scan
    from tb_tpuprof.native.numbering import number, split
    from tb_tpuprof.native.packing import Looks, deflated, listed, packed
    from tb_tpuprof.native.pairing import pair_up, tie
    from tb_tpuprof.native.selection import ascends, classes_of, find_ids, look_up, match, outermost, rows_of, telling
    from tb_tpuprof.native.sequences import by_start, in_order, n_runs, replay, runs, sequence
    from tb_tpuprof.native.tallies import extremes, histogram, last_end, matches, range_totals, sums, tally
    from tb_tpuprof.native.timeline import Rows
    from tb_tpuprof.native.trace_json import EventWriter, members
    from tb_tpuprof.native.wire import add_records, fields, ints, parts, spans

    IS_COMPILED = True
except ImportError:
    from tb_tpuprof.native.plain_calling import charged, contexts, stretches
    from tb_tpuprof.native.plain_intervals import enclose, flood, lanes, nest, relabel
    from tb_tpuprof.native.plain_json_events import scan
    from tb_tpuprof.native.plain_numbering import number, split
    from tb_tpuprof.native.plain_packing import Looks, deflated, listed, packed
    from tb_tpuprof.native.plain_pairing import pair_up, tie
    from tb_tpuprof.native.plain_selection import ascends, classes_of, find_ids, look_up, match, outermost, rows_of, telling
    from tb_tpuprof.native.plain_sequences import by_start, in_order, n_runs, replay, runs, sequence
    from tb_tpuprof.native.plain_tallies import extremes, histogram, last_end, matches, range_totals, sums, tally
    from tb_tpuprof.native.plain_timeline import Rows
    from tb_tpuprof.native.plain_trace_json import EventWriter, members
    from tb_tpuprof.native.plain_wire import add_records, alike, fields, intern, ints, joined, parts, spans

    IS_COMPILED = False

__all__ = [
    "IS_COMPILED", "NOWHERE", "EventWriter", "Looks", "Rows", "add_records", "alike", "ascends", "by_start", "charged", "classes_of",
    "contexts", "deflated", "enclose", "extremes", "fields", "find_ids", "flood", "histogram", "in_order", "intern", "ints", "joined",
    "lanes", "last_end", "listed", "look_up", "match", "matches", "members", "n_runs", "nest", "number", "outermost", "packed", "pair_up",
    "parts", "range_totals", "relabel", "replay", "rows_of", "runs", "scan", "sequence", "spans", "split", "stretches", "sums", "tally",
    "telling", "tie",
]  # fmt: skip
