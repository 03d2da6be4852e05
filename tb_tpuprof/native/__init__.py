"""The inner loops: arrays in, arrays out; of pickles, values. Compiled if the extension was built, else their
plain twins, which are slow but give equal results.

`IS_COMPILED` says which. Everything else imports from here only, except for the XSpace decoder, which
`ingest/opening.py` chooses by `IS_COMPILED`.
"""

from __future__ import annotations

import os

from tb_tpuprof.native.plain.pairing import NOWHERE
from tb_tpuprof.native.plain.pickles import Unreadable

try:
    if os.environ.get("TPUPROF_PLAIN"):
        raise ImportError("TPUPROF_PLAIN is set")
    from tb_tpuprof.native.compiled.blocks import crc32c, entries, unsnap
    from tb_tpuprof.native.compiled.calling import charged, contexts, own_times, repeats, stretches, summed_up
    from tb_tpuprof.native.compiled.interning import Interner, alike, intern, joined
    from tb_tpuprof.native.compiled.intervals import enclose, ending_first, flood, lanes, nest, relabel
    from tb_tpuprof.native.compiled.json_events import scan
    from tb_tpuprof.native.compiled.numbering import number, split
    from tb_tpuprof.native.compiled.packing import divided, packed, packed_parts
    from tb_tpuprof.native.compiled.pairing import pair_up, tie
    from tb_tpuprof.native.compiled.pickles import unpickled
    from tb_tpuprof.native.compiled.riegeli import record_hash, untransposed
    from tb_tpuprof.native.compiled.selection import (
        ascends,
        classes_of,
        find_ids,
        informative_hubs,
        look_up,
        match,
        outermost,
        repeated,
        rows_of,
    )
    from tb_tpuprof.native.compiled.sequences import by_start, in_order, n_runs, replay, runs, sequence
    from tb_tpuprof.native.compiled.tallies import (
        extremes,
        histogram,
        last_end,
        range_totals,
        sums,
        tally,
    )
    from tb_tpuprof.native.compiled.timeline import BoxStyles, Rows
    from tb_tpuprof.native.compiled.trace_json import EventWriter, members
    from tb_tpuprof.native.compiled.wire import add_records, fields, ints, parts, spans

    IS_COMPILED = True
except (ImportError, AttributeError):
    # AttributeError if Cython is installed: it then replaces the C library's modules without their functions.
    from tb_tpuprof.native.plain.blocks import crc32c, entries, unsnap
    from tb_tpuprof.native.plain.calling import charged, contexts, own_times, repeats, stretches, summed_up
    from tb_tpuprof.native.plain.intervals import enclose, ending_first, flood, lanes, nest, relabel
    from tb_tpuprof.native.plain.json_events import scan
    from tb_tpuprof.native.plain.numbering import number, split
    from tb_tpuprof.native.plain.packing import divided, packed, packed_parts
    from tb_tpuprof.native.plain.pairing import pair_up, tie
    from tb_tpuprof.native.plain.pickles import unpickled
    from tb_tpuprof.native.plain.riegeli import record_hash, untransposed
    from tb_tpuprof.native.plain.selection import (
        ascends,
        classes_of,
        find_ids,
        informative_hubs,
        look_up,
        match,
        outermost,
        repeated,
        rows_of,
    )
    from tb_tpuprof.native.plain.sequences import by_start, in_order, n_runs, replay, runs, sequence
    from tb_tpuprof.native.plain.tallies import (
        extremes,
        histogram,
        last_end,
        range_totals,
        sums,
        tally,
    )
    from tb_tpuprof.native.plain.timeline import BoxStyles, Rows
    from tb_tpuprof.native.plain.trace_json import EventWriter, members
    from tb_tpuprof.native.plain.wire import (
        Interner,
        add_records,
        alike,
        fields,
        intern,
        ints,
        joined,
        parts,
        spans,
    )

    IS_COMPILED = False

__all__ = [
    "IS_COMPILED",
    "NOWHERE",
    "BoxStyles",
    "EventWriter",
    "Interner",
    "Rows",
    "Unreadable",
    "add_records",
    "alike",
    "ascends",
    "by_start",
    "charged",
    "classes_of",
    "contexts",
    "crc32c",
    "divided",
    "enclose",
    "ending_first",
    "entries",
    "extremes",
    "fields",
    "find_ids",
    "flood",
    "histogram",
    "in_order",
    "informative_hubs",
    "intern",
    "ints",
    "joined",
    "lanes",
    "last_end",
    "look_up",
    "match",
    "members",
    "n_runs",
    "nest",
    "number",
    "outermost",
    "own_times",
    "packed",
    "packed_parts",
    "pair_up",
    "parts",
    "range_totals",
    "record_hash",
    "relabel",
    "repeated",
    "repeats",
    "replay",
    "rows_of",
    "runs",
    "scan",
    "sequence",
    "spans",
    "split",
    "stretches",
    "summed_up",
    "sums",
    "tally",
    "tie",
    "unpickled",
    "unsnap",
    "untransposed",
]
