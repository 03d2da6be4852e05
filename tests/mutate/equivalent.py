"""Mutants that behave like the original: for each module, the mutant's key and the reason.

A key consists of the function, the expression before and after, and a number if several read the same, so it
survives edits elsewhere in the module. `test_mutants.py` fails for a key that matches no mutant.
"""

EQUIVALENT: dict[str, dict[str, str]] = {
    "tb_tpuprof/analysis/events/text_cache.py": {
        "<module>: 8 * 2 ** 20 → 7 * 2 ** 20": "a bound of memory, not part of any result",
        "text_cache.__call__: ({}, 0) → ({}, 1)": "one of eight million characters of a bound of memory",
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
}
