"""Mutants that behave like the original: for each module, the mutant's key and the reason.

A key consists of the function, the expression before and after, and a number if several read the same, so it
survives edits elsewhere in the module. `test_mutants.py` fails for a key that matches no mutant.
"""

EQUIVALENT: dict[str, dict[str, str]] = {
    "tb_tpuprof/analysis/events/text_cache.py": {
        "<module>: 8 * 2 ** 20 → 7 * 2 ** 20": "a bound of memory, not part of any result",
        "text_cache.__call__: ({}, 0) → ({}, 1)": "one of eight million characters of a bound of memory",
    },
    "tb_tpuprof/analysis/diagnosis/rare_functions.py": {
        "rare_functions: -1 → -2 #2": "any negative number is none",
    },
    "tb_tpuprof/analysis/events/distinct_rows.py": {
        "distinct_rows: room = 1 → room = 2": "the size of a key from which rows are compared the slow way",
    },
    "tb_tpuprof/analysis/events/links.py": {
        "_contexts: (consumer, consumed_key) if is_consumer.all() else (consumer[is_consumer], "
        "consumed_key[is_consumer]) → (consumer[is_consumer], consumed_key[is_consumer])": "all rows, copied",
        "_contexts: (producer, produced_key) if is_producer.all() else (producer[is_producer], "
        "produced_key[is_producer]) → (producer[is_producer], produced_key[is_producer])": "all rows, copied",
    },
    "tb_tpuprof/analysis/events/metadata_names.py": {
        "metadata_names: len(ids) and int(ids.min()) >= 0 → len(ids) and int(ids.min()) > 0": "one by one, slower",
    },
    "tb_tpuprof/analysis/events/stat_rows.py": {
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
    "tb_tpuprof/serve/guard.py": {
        "Guard.__init__: secrets.token_urlsafe(24) → secrets.token_urlsafe(48)": "a longer secret is as secret",
    },
    "tb_tpuprof/tools/flame_graph/verdict.py": {
        "_of_users: other and other.with_calls_ps[0] > _MATTERS * flame.durations_ps[0] → "
        "other and other.with_calls_ps[0] >= _MATTERS * flame.durations_ps[0]": "`users` holds only larger ones",
        "_of_users: other.with_calls_ps[0] > _MATTERS * flame.durations_ps[0] → "
        "other.with_calls_ps[0] > _MATTERS / flame.durations_ps[0]": "`users` holds only larger ones",
    },
    "tb_tpuprof/tools/pod_viewer/sentences.py": {
        "_waiting: float(pod.total_ps.mean()) or 1.0 → float(pod.total_ps.mean()) or 1.5": "nothing waits where "
        "no time passes",
    },
    "tb_tpuprof/tools/shares.py": {
        "shares_table: sum_by(names.codes, time_ps, len(names.strings)) if len(names) else np.zeros(0, np.int64) → "
        "sum_by(names.codes, time_ps, len(names.strings))": "no rows have no sums either",
        "shares_table: np.partition(totals[nonzero], -N_SLICES)[-N_SLICES] if len(nonzero) > N_SLICES else 0 → 0": "sorts all names instead of the largest",
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
}
