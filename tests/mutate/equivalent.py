"""Mutants that behave like the original: for each module, the mutant's key and the reason.

A key consists of the function, the expression before and after, and a number if several read the same, so it
survives edits elsewhere in the module. `test_mutants.py` fails for a key that matches no mutant.
"""

EQUIVALENT: dict[str, dict[str, str]] = {
    "tb_tpuprof/analysis/events/text_cache.py": {
        "text_cache.__call__: key = (text, *args) if args else text → key = (text, *args)": (
            "another key for the same arguments"
        ),
        "text_cache.__call__: len(text) < _MOST_CHARACTERS → len(text) <= _MOST_CHARACTERS": (
            "a bound of memory, not part of any result"
        ),
        "<module>: 8 * 2 ** 20 → 7 * 2 ** 20": "a bound of memory, not part of any result",
        "text_cache.__call__: ({}, 0) → ({}, 1)": "one of eight million characters of a bound of memory",
    },
    "tb_tpuprof/analysis/diagnosis/rare_functions.py": {
        "rare_functions: -1 → -2 #2": "any negative number is none",
    },
    "tb_tpuprof/analysis/events/distinct_rows.py": {
        "distinct_rows: keys.max(axis=0) - low + 1 → keys.max(axis=0) - low + 2": (
            "a larger base keeps rows apart and in order, too"
        ),
        "distinct_rows: [1] → [2]": "sizes of the columns of a table without rows",
        "distinct_rows: [1] → [0]": "sizes of the columns of a table without rows",
        "distinct_rows: room * size >= 2 ** 62 → room * size > 2 ** 62": "one more number, which fits",
        "distinct_rows: room * size >= 2 ** 62 → room * size >= 2 * 62": (
            "the size of a key from which rows are compared the slow way"
        ),
        "distinct_rows: 2 ** 62 → 2 ** 31": "the size of a key from which rows are compared the slow way",
        "distinct_rows: 2 ** 62 → 1 ** 62": "the size of a key from which rows are compared the slow way",
        "distinct_rows: room = 1 → room = 2": "the size of a key from which rows are compared the slow way",
    },
    "tb_tpuprof/analysis/events/links.py": {
        "ties: columns[3].append(to_hub + np.int32(n_hubs) if n_hubs else to_hub) → "
        "columns[3].append(to_hub + np.int32(n_hubs))": "adding zero changes nothing",
        "ties: columns[1].append(from_hub + np.int32(n_hubs) if n_hubs else from_hub) → "
        "columns[1].append(from_hub + np.int32(n_hubs))": "adding zero changes nothing",
        "_contexts: (consumer, consumed_key) if is_consumer.all() else (consumer[is_consumer], "
        "consumed_key[is_consumer]) → (consumer[is_consumer], consumed_key[is_consumer])": "all rows, copied",
        "_contexts: (producer, produced_key) if is_producer.all() else (producer[is_producer], "
        "produced_key[is_producer]) → (producer[is_producer], produced_key[is_producer])": "all rows, copied",
    },
    "tb_tpuprof/analysis/events/metadata_names.py": {
        "metadata_names: len(ids) and int(ids.min()) >= 0 → len(ids) and int(ids.min()) > 0": "one by one, slower",
    },
    "tb_tpuprof/analysis/events/stat_rows.py": {
        "<module>: np.int64(-7046029254386353131) → np.int64(7046029254386353131)": (
            "any odd number of many bits spreads keys"
        ),
        "<module>: -7046029254386353131 → -3523014627193176565": "any odd number of many bits spreads keys",
        "events_with: len(other) == len(owner) and np.array_equal(other, owner) → len(other) != "
        "len(owner) and np.array_equal(other, owner)": "the same numbers, joined the slow way",
        "values_at: len(owner) == len(rows) and np.array_equal(owner, rows) → len(owner) != len(rows) "
        "and np.array_equal(owner, rows)": "the same values, looked up the slow way",
        "events_of: if not is_chosen.any(): return → without it": "the search finds none, either",
        "consecutive: return slice(int(rows[0]), int(rows[-1]) + 1) if is_run else rows → return rows": "the same "
        "rows, copied",
    },
    "tb_tpuprof/analysis/hlo/memory_accesses.py": {
        "_blocks: a + 1 → a + 2": "a search for a larger position already ends behind its own",
    },
    "tb_tpuprof/analysis/memory/events.py": {
        "MemoryEvents._texts: -1 → -2": "replaced by the first key's texts",
        "_order: int(memory_by_time.max()) < 2 ** 16 → int(memory_by_time.max()) < 2 * 16": "the type that is sorted",
    },
    "tb_tpuprof/analysis/pod/join.py": {
        "_labels: enumerate(groups, 1) → enumerate(groups, 2)": "labels only keep groups apart",
    },
    "tb_tpuprof/analysis/steps/pieces.py": {
        "Pieces.charged: len(non_overlapping(thread.opens, thread.closes)) == 1 → "
        "len(non_overlapping(thread.opens, thread.closes)) == 0": "the general way, which is slower",
    },
    "tb_tpuprof/analysis/cpu/runs.py": {
        "_run_numbers: (n_thunks > 1)[code] → (n_thunks >= 1)[code]": "one launch of one is its own head",
        "_run_numbers: n_thunks > 1 → n_thunks > 0": "one launch of one is its own head",
    },
    "tb_tpuprof/tools/op_profile/details.py": {
        "_scalars.finite: return None if np.isnan(value) else float(value) → return float(value)": "NaN is "
        "written as null",
    },
    "tb_tpuprof/tools/trace_viewer/export.py": {
        "<module>: 1 << 15 → 1 << 14": "the size of the parts that are sent",
        "_dumps: ensure_ascii=False → ensure_ascii=True": "the same JSON, escaped",
    },
    "tb_tpuprof/serve/monitors.py": {
        "Monitor._watch: self._cancel.wait(0.5) → self._cancel.wait(0.75)": "how often a thread looks",
        "Monitor._watch: left_s is not None and now_s - left_s > LEFT_AFTER_S → "
        "left_s is not None and now_s - left_s >= LEFT_AFTER_S": "two readings of a clock are never equal",
    },
    "tb_tpuprof/analysis/events/flow_points.py": {
        "flow_arrows: -1 → -2": "any negative number is none",
        "flow_arrows: (latest >= 0) & (key[latest] == key) → (latest > 0) & (key[latest] == key)": (
            "an `out` that is the first point of all is the first one of its id, too"
        ),
        "flow_arrows: latest >= 0 → latest >= 1": (
            "an `out` that is the first point of all is the first one of its id, too"
        ),
        "_first_out: -1 → -2 #2": "any negative number is none",
    },
    "tb_tpuprof/analysis/events/handed_over.py": {
        "handed_over: values_at(records, *events_with(trace, '_pt', '_p'), 0) → values_at(records, "
        "*events_with(trace, '_pt', '_p'), 1)": (
            "only has to differ from the number of a consumer without a context"
        ),
    },
    "tb_tpuprof/analysis/events/host_offload.py": {
        "_operations: -1 → -2": "any negative number is none",
        "matched: np.zeros(1, np.int64) → np.zeros(2, np.int64)": (
            "a done right behind one without a start has no start, either"
        ),
    },
    "tb_tpuprof/analysis/events/program_gaps.py": {
        "gaps_within: (np.searchsorted(idle_to, starts, side='right'), np.searchsorted(idle_from, ends)) "
        "→ (np.searchsorted(idle_to, starts, side='right'), np.searchsorted(idle_from, ends, "
        "side='right'))": "a gap that begins at the program's end has no length in it",
    },
    "tb_tpuprof/analysis/events/program_runs.py": {
        "run_ends: end[-n:] if len(run_ids) > len(calls) else end[:n] → end[-n:] if len(run_ids) >= "
        "len(calls) else end[:n]": "as many runs as calls: all of them",
    },
    "tb_tpuprof/analysis/events/frameworks.py": {
        "_names: 1:-1 → 0:-1": "an empty line before the first name",
    },
    "tb_tpuprof/analysis/events/command_buffers.py": {
        "_in_graphs: np.flatnonzero(np.isin(string, graph_names)) if graph_names else np.empty(0, "
        "np.intp) → np.flatnonzero(np.isin(string, graph_names))": "no string is among none",
        "_schedule: _Slot(row, kind, _base(module.name(row)) if kind == _FUSION else '') → _Slot(row, "
        "kind, _base(module.name(row)))": "only the bases of fusions are read",
    },
    "tb_tpuprof/analysis/events/hlo_links.py": {
        "_rows_named: (blob == ord('/')) | (blob == ord(':')) → (blob == ord('/')) | (blob != ord(':'))": (
            "texts without a separator are looked up again, by the same name"
        ),
        "_named_by_metadata: values_at(np.arange(n), *_first(sparse.owner, "
        "sparse.value.astype(np.int64)), -1) → values_at(np.arange(n), *_first(sparse.owner, "
        "sparse.value.astype(np.int64)), 1)": "rows without a program are left out",
    },
    "tb_tpuprof/analysis/ops/expressions.py": {
        "<module>: program_shape=False → program_shape=True": "only computations have one, not instructions",
    },
    "tb_tpuprof/analysis/flame/scopes.py": {
        "scope_nodes: np.maximum(ops.n_occurrences, 1) → np.maximum(ops.n_occurrences, 0)": (
            "each operation occurs"
        ),
    },
    "tb_tpuprof/analysis/flame/calls.py": {
        "_ends: if np.array_equal(cut, result): break → without it": "further rounds change nothing",
    },
    "tb_tpuprof/analysis/timeline/boxes.py": {
        "_parts: n_events = layer.row_offsets[rows + 1] - layer.row_offsets[rows] → n_events = "
        "layer.row_offsets[rows + 1] + layer.row_offsets[rows]": "where the rows are split for threads",
    },
    "tb_tpuprof/analysis/tf_data/what_if.py": {
        "what_if: less if explained < 1 else more → less if explained <= 1 else more": (
            "a model that explains all of the time has estimates"
        ),
    },
    "tb_tpuprof/analysis/tf_data/simulation.py": {
        "Part: batch: int = 1 → batch: int = 2": "only stages that state it read it",
        "simulate: cycle.total = 0.0 → cycle.total = 1.0": "a picosecond of sums that rank stages",
    },
    "tb_tpuprof/analysis/events/memo.py": {
        "compute_ahead: trace.n_events >= POLICY.min_parallel_events → trace.n_events > "
        "POLICY.min_parallel_events": "when work is divided among threads",
    },
    "tb_tpuprof/analysis/ops/labels.py": {
        "of_metadata: -1 → -2": "any negative number is none",
        "of_rows: -1 → -2 #2": "any negative number is none",
    },
    "tb_tpuprof/analysis/ops/roof_excess.py": {
        "excesses: if not len(ops) or not (peaks.flops_per_s or any(peaks.bytes_per_s)): return → "
        "without it": "no operation has a share of an unknown peak",
    },
    "tb_tpuprof/analysis/tf_data/changes.py": {
        "_map_advice: 0 < facts.typical_ps < _TINY_PS → 1 < facts.typical_ps < _TINY_PS": (
            "no function takes a picosecond"
        ),
    },
    "tb_tpuprof/analysis/timeline/focus.py": {
        "focus: gap.max() >= least_gap → gap.max() > least_gap": (
            "the stray event itself takes at least 1 ps of the gap"
        ),
        "focus: gap_after.max() >= least_gap → gap_after.max() > least_gap": (
            "the last event itself takes at least 1 ps of the gap"
        ),
    },
}
