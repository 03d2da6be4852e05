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
        "rare_functions: -1 → -2": "any negative number is none",
        "rare_functions: -1 → -0": "rows left out have no time",
        "rare_functions: np.full(len(trace.metadata), -1, np.int64) → np.full(len(trace.metadata), "
        "1, np.int64)": "rows left out have no time",
        "rare_functions: _longest(np.bincount(metadata, duration_ps, len(trace.metadata)), "
        "_MOST_CELLS // n) → _longest(np.bincount(metadata, duration_ps, len(trace.metadata)), "
        "_MOST_CELLS * n)": "a bound of memory",
        "_longest: order[total[order] > 0] → order[total[order] >= 0]": "functions without time are in no step",
        "_longest: total[order] > 0 → total[order] > 1": "time in two steps is two picoseconds",
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
    "tb_tpuprof/analysis/diagnosis/warming.py": {
        "_compiled_before: -1 → -2": "not read where nothing was compiled",
    },
    "tb_tpuprof/analysis/diagnosis/parts.py": {
        "_callbacks_elsewhere: -1 → -2": "any negative number is none",
        "_callbacks_elsewhere: -1 → -2 #2": "any negative number is none",
        "_fewer: -1 → -2": "any negative number is none",
        "_fewer: -1 → -2 #2": "any negative number is none",
        "attribution_of: -1 → -2": "any negative number is none",
        "attribution_of: -1 → -2 #2": "any negative number is none",
        "_called_meanwhile: -1 → -2": "any negative number is none",
        "_requested_by: -1 → -2 #2": "any negative number is none",
        "_requested_by: -1 → -2 #4": "any negative number is none",
        "_attribute_line: -1 → -2": "any negative number is none",
        "_attribute_line: -1 → -2 #2": "any negative number is none",
        "_attribute_line: -1 → -2 #3": "any negative number is none",
        "_attribute_line: -1 → -2 #4": "any negative number is none",
        "_attribute_line: -1 → -2 #5": "any negative number is none",
        "_attribute_line: -1 → -2 #6": "any negative number is none",
        "_attribute_line: -1 → -2 #7": "any negative number is none",
        "_fewer: -1 → -2 #3": "NumPy takes any negative number for the unknown size",
        "_callbacks_elsewhere: np.where(is_open, 0, -1) → np.where(is_open, 1, -1)": "one code, whichever it is",
        "_by_event: len(unique) + 1 → len(unique) + 2": "a code that no piece has",
        "_requested_by: own_lines(trace, pieces).tolist() if (moment >= 0).any() else () → "
        "own_lines(trace, pieces).tolist()": "without a moment, nothing is found",
    },
    "tb_tpuprof/analysis/diagnosis/synchronizing.py": {
        "synchronizing: -1 → -2": "any negative number is none",
        "_within: -1 → -2": "any negative number is none",
        "_silent: -1 → -2": "any negative number is none",
        "_awaited: -1 → -2": "any negative number is none",
        "synchronizing: np.where(computing | own_ops, 0, -1) → np.where(computing | own_ops, 1, -1)": "one code, whichever it is",
        "_awaited: np.where(calls & ~is_look, 0, -1) → np.where(calls & ~is_look, 1, -1)": "one code, whichever it is",
        "_awaited: if not is_look.any(): return → without it": "without a look, nothing is found",
    },
    "tb_tpuprof/analysis/diagnosis/unrecorded.py": {
        "_all_gaps: step * (int(steps.duration_ps.max()) + 1) - steps.start_ps[step] if overlap else "
        "np.zeros(len(step), np.int64) → step * (int(steps.duration_ps.max()) + 1) - "
        "steps.start_ps[step]": "the same order where steps do not overlap",
        "_codes: (pieces.named[piece] < 0) & (pieces.thread_class[piece] > TimeClass.HOST_COMPUTE) → "
        "(pieces.named[piece] <= 0) & (pieces.thread_class[piece] > TimeClass.HOST_COMPUTE)": (
            "devices have metadata rows of their own"
        ),
        "_codes: pieces.named[piece] < 0 → pieces.named[piece] < 1": "devices have metadata rows of their own",
        "_all_gaps: -1 → -2": "any negative number is none",
        "_all_gaps: -1 → -2 #7": "any negative number is none",
        "_all_gaps: np.where(pieces.outline().thread_class != TimeClass.UNKNOWN, 0, -1) → "
        "np.where(pieces.outline().thread_class != TimeClass.UNKNOWN, 1, -1)": "one code, whichever it is",
    },
    "tb_tpuprof/analysis/diagnosis/tiny_calls.py": {
        "tiny_calls: -1 → -2": "any negative number is none",
        "tiny_calls: np.where(computes, 0, -1) → np.where(computes, 1, -1)": "one code, whichever it is",
    },
    "tb_tpuprof/analysis/diagnosis/diagnose.py": {
        "_merged: n_seen[one.cause, one.culprit] += 1 → n_seen[one.cause, one.culprit] -= 1": "numbers only keep findings apart",
        "_merged: n_seen[one.cause, one.culprit] += 1 → n_seen[one.cause, one.culprit] += 2": "numbers only keep findings apart",
        "_merged: default=0.0 → default=1.0": "there is at least one finding",
        "_led: top.sentence if top.sentence.startswith('`') else top.sentence[0].lower() + "
        "top.sentence[1:] → top.sentence[0].lower() + top.sentence[1:]": "a backtick has no lower case",
    },
    "tb_tpuprof/analysis/diagnosis/slow_hosts.py": {
        "_outliers: if len(own_ps) < _FEW_HOSTS: return → without it": "of two values, none is an outlier",
        "_outliers: (0.6745 * (own_ps - middle) / spread > _FAR) & (own_ps > (1 + LEAST_EXCESS) * "
        "middle) → (0.6745 * (own_ps - middle) / spread > _FAR) & (own_ps >= (1 + LEAST_EXCESS) * "
        "middle)": "an outlier exceeds the median by 5.2% at least",
        "_outliers: (1 + LEAST_EXCESS) * middle → (1 - LEAST_EXCESS) * middle": "an outlier exceeds the median by 5.2% at least",
        "_outliers: 1 + LEAST_EXCESS → 0 + LEAST_EXCESS": "an outlier exceeds the median by 5.2% at least",
        "slow_hosts: len(compared) < 2 → len(compared) < 1": "a single host is not slower than others",
        "slow_hosts: (slow.excess_ps, own_ps[slow.unit, slow.since:].mean()) → (slow.excess_ps, "
        "own_ps[slow.unit, slow.since:].max())": "the second number is not read",
        "_finding: max(float(mean_ps[unit] - np.delete(mean_ps, unit).max()), 0.0) → "
        "max(float(mean_ps[unit] - np.delete(mean_ps, unit).max()), 1.0)": (
            "a gain of a picosecond is no finding"
        ),
    },
    "tb_tpuprof/analysis/diagnosis/pools.py": {
        "pools: default=0 → default=1": "there are prefixes",
        "pools: max(int(all_steps.duration_ps.sum()), 1) → max(int(all_steps.duration_ps.sum()), 2)": "steps last longer than a picosecond",
    },
    "tb_tpuprof/analysis/diagnosis/runtime_threads.py": {
        "_mean_concurrent: max(int(covered(end.max(keepdims=True))[0]), 1) → "
        "max(int(covered(end.max(keepdims=True))[0]), 2)": "the spans last longer than a picosecond",
    },
    "tb_tpuprof/analysis/diagnosis/torch_files.py": {
        "package_of: if name.startswith('nn.Module: '): return → without it": "such names match no place",
    },
    "tb_tpuprof/analysis/diagnosis/device_turns.py": {
        "device_turns: len(spans) < 2 → len(spans) < 1": "one device that takes part is too few below, too",
    },
    "tb_tpuprof/analysis/diagnosis/moved_parts.py": {
        "_moved: np.zeros(0, np.int64) → np.zeros(1, np.int64)": "nothing is taken",
    },
    "tb_tpuprof/analysis/kernels/kernels.py": {
        "kernels: -1 → -2": "NumPy takes any negative number for the unknown size",
        "kernels: -1 → -2 #2": "NumPy takes any negative number for the unknown size",
        "kernels: (:, group_sums[0] > 0) → (:, group_sums[0] >= 0)": "every group has a kernel",
        "kernels: first[group_sums[0] > 0] → first[group_sums[0] >= 0]": "every group has a kernel",
        "kernels: group_sums[5] → group_sums[4]": "kernels of a group have the same operation",
        "kernels: key = key * len(distinct) + rank → key = key * len(distinct) - rank": "keys only keep groups apart",
        "merge_kernels: return parts[0] if len(parts) == 1 else _merged(_concatenated(parts)) → "
        "return _merged(_concatenated(parts))": "one table, merged again",
        "merge_kernels: len(parts) == 1 → len(parts) == 0": "one table, merged again",
    },
    "tb_tpuprof/analysis/kernels/ops.py": {
        "kernel_ops: -1 → -2": "any negative number is none",
        "_by_text: -1 → -2": "NumPy takes any negative number for the unknown size",
        "_by_instruction: -1 → -2": "NumPy takes any negative number for the unknown size",
        "_derived: -1 → -2 #2": "any negative number is none",
    },
    "tb_tpuprof/analysis/kernels/rows.py": {
        "kernel_rows: -1 → -2": "any negative number is none",
        "kernel_rows: if len(owner) == len(rows) and np.array_equal(owner, rows): return → without it": "the same strings, looked up",
        "kernel_mask: if not lines: return → without it": "no line has kernels",
    },
    "tb_tpuprof/analysis/query/arguments.py": {
        "_full_names: -1 → -2": "NumPy takes any negative number for the unknown size",
        "_numbers_pass: -1 → -2": "NumPy takes any negative number for the unknown size",
        "_full_names: return passes[position.reshape(-1)] if len(distinct) else np.zeros(0, "
        "np.bool_) → return passes[position.reshape(-1)]": "no names are none of no flags",
    },
    "tb_tpuprof/analysis/query/grouping.py": {
        "_of_tracks: np.full(max((track.line for track in host.tracks), default=0) + 2, -1, "
        "np.int32) → np.full(max((track.line for track in host.tracks), default=0) + 2, 1, np.int32)": (
            "every line with events has a track"
        ),
        "_of_tracks: max((track.line for track in host.tracks), default=0) + 2 → max((track.line for "
        "track in host.tracks), default=0) + 1": "a place that is not read",
        "argument_values: -1 → -2 #5": "any negative number is none",
        "_coded: -1 → -2": "NumPy takes any negative number for the unknown size",
    },
    "tb_tpuprof/analysis/query/columns.py": {
        "<module>: (2000, 10) → (4000, 10)": "which of two ways, for the same numbers",
        "<module>: (2000, 10) → (1000, 10)": "which of two ways, for the same numbers",
        "<module>: (2000, 10) → (2000, 11)": "which of two ways, for the same numbers",
        "<module>: (2000, 10) → (2000, 9)": "which of two ways, for the same numbers",
        "self_times: if len(events) <= _FEW and _n_within(drawn, events) * _FEW_SHARE <= "
        "drawn.n_events: return → without it": "the other way, for the same numbers",
        "self_times: len(events) <= _FEW and _n_within(drawn, events) * _FEW_SHARE <= drawn.n_events "
        "→ len(events) <= _FEW or _n_within(drawn, events) * _FEW_SHARE <= drawn.n_events": (
            "the other way, for the same numbers"
        ),
        "self_times: len(events) <= _FEW and _n_within(drawn, events) * _FEW_SHARE <= drawn.n_events "
        "→ len(events) < _FEW and _n_within(drawn, events) * _FEW_SHARE <= drawn.n_events": (
            "the other way, for the same numbers"
        ),
        "self_times: len(events) <= _FEW and _n_within(drawn, events) * _FEW_SHARE <= drawn.n_events "
        "→ len(events) <= _FEW and _n_within(drawn, events) * _FEW_SHARE < drawn.n_events": (
            "the other way, for the same numbers"
        ),
        "self_times: _n_within(drawn, events) * _FEW_SHARE <= drawn.n_events → _n_within(drawn, "
        "events) / _FEW_SHARE <= drawn.n_events": "the other way, for the same numbers",
        "self_times: if are_recorded(drawn, events): return → without it": "the same rows, joined",
        "_of_layers: if are_recorded(drawn, events): return → without it": "the same rows, joined",
        "file_rows: if are_recorded(drawn, events): return → without it": "the same rows, joined",
        "lines: b > a → b >= a": "a layer without events adds none",
        "names: b > a → b >= a": "a layer without events adds none",
    },
    "tb_tpuprof/analysis/query/facts.py": {
        "<module>: _GAPS = 1000 → _GAPS = 2000": "which of two ways, for the same texts",
        "<module>: _GAPS = 1000 → _GAPS = 500": "which of two ways, for the same texts",
        "event_steps: most + 1 → most + 2": "a text that no event has",
        "event_steps: max(int(grouped.group.max(initial=0)), *numbers) + 2 → "
        "max(int(grouped.group.max(initial=0)), *numbers) + 3": "a place that is not read",
        "event_steps: 2 * len(numbers) + _GAPS → 2 / len(numbers) + _GAPS": "which of two ways, for the same texts",
    },
    "tb_tpuprof/analysis/query/hits.py": {
        "box_hits: has_matches = np.diff(np.searchsorted(matches, layer.line_offsets)) > 0 → "
        "has_matches = np.diff(np.searchsorted(matches, layer.line_offsets)) >= 0": (
            "boxes of other lines contain no matches"
        ),
    },
    "tb_tpuprof/analysis/query/spans.py": {
        "_near: int((bounds[:, 1] - bounds[:, 0]).sum()) == len(events) → int((bounds[:, 1] - "
        "bounds[:, 0]).sum()) != len(events)": "events that are not left out here are later",
        "_near: (:, 1) → (:, 0)": "the same events, joined",
        "_near: int((bounds[:, 1] - bounds[:, 0]).sum()) → int((bounds[:, 1] - bounds[:, 0]).max())": "the same events, joined",
        "_near: if int((bounds[:, 1] - bounds[:, 0]).sum()) == len(events): return → without it": "the same events, joined",
        "parts_within: if not len(crossing): return → without it": "the same parts, copied",
        "parts_within: (start < window.start_ps) | (end > window.end_ps) → (start < window.start_ps) "
        "| (end >= window.end_ps)": "an event that ends with the window lies within",
    },
}
