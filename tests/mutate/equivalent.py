"""Mutants that behave like the original: for each module, the mutant's key and the reason.

A key consists of the function, the expression before and after, and a number if several read the same, so it
survives edits elsewhere in the module. `test_mutants.py` fails for a key that matches no mutant.
"""

EQUIVALENT: dict[str, dict[str, str]] = {
    "tb_tpuprof/analysis/cpu/bounds.py": {
        "<module>: _MOST_STEPS = 32 → _MOST_STEPS = 64": "a bound of work, not part of any result",
        "structure: -1 → -2 #3": "any negative number is none",
        "_callers: -1 → -2": "any negative number is none",
        "_callers: if not len(untraced): break → without it": "nothing is left to do in further rounds",
        "_callers: if not len(not_single): break → without it": "nothing is left to do in further rounds",
        "_reads: if not len(passes_on): break → without it": "nothing is left to do in further rounds",
    },
    "tb_tpuprof/analysis/cpu/eager.py": {
        "eager_runs: if not dispatch.any(): return → without it": "without dispatches the rest finds none",
    },
    "tb_tpuprof/analysis/cpu/events.py": {
        "host_texts: if not len(owner): return → without it": "no texts, which are then looked up",
    },
    "tb_tpuprof/analysis/cpu/runs.py": {
        "_depths: if not len(has_ancestor): break → without it": "nothing is left to do in further rounds",
        "<module>: _DEEPEST = 64 → _DEEPEST = 128": "a bound of work, not part of any result",
        "<module>: _DEEPEST = 64 → _DEEPEST = 32": "no program nests loops as deep",
        "_parents: -1 → -2": "any negative number is none",
        "_parents: -1 → -2 #2": "any negative number is none",
        "_parents: -1 → -2 #3": "any negative number is none",
        "_latest_before: -1 → -2": "any negative number is none",
        "_latest_before: -1 → -2 #2": "any negative number is none",
        "_run_numbers: (n_thunks > 1)[code] → (n_thunks >= 1)[code]": "one launch of one is its own head",
        "_run_numbers: n_thunks > 1 → n_thunks > 0": "one launch of one is its own head",
    },
    "tb_tpuprof/analysis/cpu/tasks.py": {
        "_nested: if not in_wait.any(): break → without it": "nothing is left to do in further rounds",
        "_resolved: if not len(unresolved): break → without it": "nothing is left to do in further rounds",
        "<module>: _NO_KIND = 255 → _NO_KIND = 127": "any number that is no kind",
        "<module>: _MOST_HOPS = 64 → _MOST_HOPS = 128": "each hop doubles the distance",
        "<module>: _MOST_HOPS = 64 → _MOST_HOPS = 32": "each hop doubles the distance",
        "pool_work: -1 → -2": "any negative number is none",
        "pool_work: -1 → -2 #2": "any negative number is none",
        "pool_work: -1 → -2 #3": "any negative number is none",
        "pool_work: -1 → -2 #4": "any negative number is none",
        "pool_work: -1 → -2 #5": "any negative number is none",
        "_recorders: -1 → -2": "any negative number is none",
        "_recorders: -1 → -2 #2": "any negative number is none",
        "_started: -1 → -2 #2": "any negative number is none",
    },
    "tb_tpuprof/analysis/diagnosis/device_turns.py": {
        "device_turns: len(spans) < 2 → len(spans) < 1": "one device that takes part is too few below, too",
    },
    "tb_tpuprof/analysis/diagnosis/diagnose.py": {
        "_merged: n_seen[one.cause, one.culprit] += 1 → n_seen[one.cause, one.culprit] -= 1": (
            "numbers only keep findings apart"
        ),
        "_merged: n_seen[one.cause, one.culprit] += 1 → n_seen[one.cause, one.culprit] += 2": (
            "numbers only keep findings apart"
        ),
        "_merged: default=0.0 → default=1.0": "there is at least one finding",
        "_led: top.sentence if top.sentence.startswith('`') else top.sentence[0].lower() + "
        "top.sentence[1:] → top.sentence[0].lower() + top.sentence[1:]": ("a backtick has no lower case"),
    },
    "tb_tpuprof/analysis/diagnosis/moved_parts.py": {
        "_moved: np.zeros(0, np.int64) → np.zeros(1, np.int64)": "nothing is taken",
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
        "_callbacks_elsewhere: np.where(is_open, 0, -1) → np.where(is_open, 1, -1)": (
            "one code, whichever it is"
        ),
        "_by_event: len(unique) + 1 → len(unique) + 2": "a code that no piece has",
        "_requested_by: own_lines(trace, pieces).tolist() if (moment >= 0).any() else () → "
        "own_lines(trace, pieces).tolist()": ("without a moment, nothing is found"),
    },
    "tb_tpuprof/analysis/diagnosis/pools.py": {
        "pools: default=0 → default=1": "there are prefixes",
        "pools: max(int(all_steps.duration_ps.sum()), 1) → max(int(all_steps.duration_ps.sum()), 2)": (
            "steps last longer than a picosecond"
        ),
    },
    "tb_tpuprof/analysis/diagnosis/rare_functions.py": {
        "rare_functions: -1 → -2": "any negative number is none",
        "rare_functions: -1 → -0": "rows left out have no time",
        "rare_functions: np.full(len(trace.metadata), -1, np.int64) → np.full(len(trace.metadata), 1, "
        "np.int64)": ("rows left out have no time"),
        "rare_functions: _longest(np.bincount(metadata, duration_ps, len(trace.metadata)), _MOST_CELLS // "
        "n) → _longest(np.bincount(metadata, duration_ps, len(trace.metadata)), _MOST_CELLS * n)": (
            "a bound of memory"
        ),
        "_longest: order[total[order] > 0] → order[total[order] >= 0]": (
            "functions without time are in no step"
        ),
        "_longest: total[order] > 0 → total[order] > 1": "time in two steps is two picoseconds",
        "rare_functions: -1 → -2 #2": "any negative number is none",
    },
    "tb_tpuprof/analysis/diagnosis/runtime_threads.py": {
        "_mean_concurrent: max(int(covered(end.max(keepdims=True))[0]), 1) → "
        "max(int(covered(end.max(keepdims=True))[0]), 2)": ("the spans last longer than a picosecond"),
    },
    "tb_tpuprof/analysis/diagnosis/slow_hosts.py": {
        "_outliers: if len(own_ps) < _FEW_HOSTS: return → without it": "of two values, none is an outlier",
        "_outliers: (0.6745 * (own_ps - middle) / spread > _FAR) & (own_ps > (1 + LEAST_EXCESS) * middle) "
        "→ (0.6745 * (own_ps - middle) / spread > _FAR) & (own_ps >= (1 + LEAST_EXCESS) * middle)": (
            "an outlier exceeds the median by 5.2% at least"
        ),
        "_outliers: (1 + LEAST_EXCESS) * middle → (1 - LEAST_EXCESS) * middle": (
            "an outlier exceeds the median by 5.2% at least"
        ),
        "_outliers: 1 + LEAST_EXCESS → 0 + LEAST_EXCESS": "an outlier exceeds the median by 5.2% at least",
        "slow_hosts: len(compared) < 2 → len(compared) < 1": "a single host is not slower than others",
        "slow_hosts: (slow.excess_ps, own_ps[slow.unit, slow.since:].mean()) → (slow.excess_ps, "
        "own_ps[slow.unit, slow.since:].max())": ("the second number is not read"),
        "_finding: max(float(mean_ps[unit] - np.delete(mean_ps, unit).max()), 0.0) → "
        "max(float(mean_ps[unit] - np.delete(mean_ps, unit).max()), 1.0)": (
            "a gain of a picosecond is no finding"
        ),
    },
    "tb_tpuprof/analysis/diagnosis/synchronizing.py": {
        "synchronizing: -1 → -2": "any negative number is none",
        "_within: -1 → -2": "any negative number is none",
        "_silent: -1 → -2": "any negative number is none",
        "_awaited: -1 → -2": "any negative number is none",
        "synchronizing: np.where(computing | own_ops, 0, -1) → np.where(computing | own_ops, 1, -1)": (
            "one code, whichever it is"
        ),
        "_awaited: np.where(calls & ~is_look, 0, -1) → np.where(calls & ~is_look, 1, -1)": (
            "one code, whichever it is"
        ),
        "_awaited: if not len(event): return → without it": "without a candidate, nothing is found",
    },
    "tb_tpuprof/analysis/diagnosis/tiny_calls.py": {
        "tiny_calls: -1 → -2": "any negative number is none",
        "tiny_calls: np.where(computes, 0, -1) → np.where(computes, 1, -1)": "one code, whichever it is",
    },
    "tb_tpuprof/analysis/diagnosis/torch_files.py": {
        "package_of: if name.startswith('nn.Module: '): return → without it": "such names match no place",
    },
    "tb_tpuprof/analysis/diagnosis/unrecorded.py": {
        "_all_gaps: step * (int(steps.duration_ps.max()) + 1) - steps.start_ps[step] if overlap else "
        "np.zeros(len(step), np.int64) → step * (int(steps.duration_ps.max()) + 1) - steps.start_ps[step]": (
            "the same order where steps do not overlap"
        ),
        "_codes: (pieces.named[piece] < 0) & (pieces.thread_class[piece] > TimeClass.HOST_COMPUTE) → "
        "(pieces.named[piece] <= 0) & (pieces.thread_class[piece] > TimeClass.HOST_COMPUTE)": (
            "devices have metadata rows of their own"
        ),
        "_codes: pieces.named[piece] < 0 → pieces.named[piece] < 1": (
            "devices have metadata rows of their own"
        ),
        "_all_gaps: -1 → -2": "any negative number is none",
        "_all_gaps: -1 → -2 #7": "any negative number is none",
        "_all_gaps: np.where(pieces.outline().thread_class != TimeClass.UNKNOWN, 0, -1) → "
        "np.where(pieces.outline().thread_class != TimeClass.UNKNOWN, 1, -1)": ("one code, whichever it is"),
    },
    "tb_tpuprof/analysis/diagnosis/warming.py": {
        "_compiled_before: -1 → -2": "not read where nothing was compiled",
    },
    "tb_tpuprof/analysis/events/command_buffers.py": {
        "_in_graphs: np.flatnonzero(np.isin(string, graph_names)) if graph_names else np.empty(0, "
        "np.intp) → np.flatnonzero(np.isin(string, graph_names))": ("no string is among none"),
        "_schedule: _Slot(row, kind, _base(module.name(row)) if kind == _FUSION else '') → _Slot(row, "
        "kind, _base(module.name(row)))": ("only the bases of fusions are read"),
    },
    "tb_tpuprof/analysis/events/distinct_rows.py": {
        "distinct_rows: room = 1 → room = 2": "the size of a key from which rows are compared the slow way",
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
    "tb_tpuprof/analysis/events/frameworks.py": {
        "_names: 1:-1 → 0:-1": "an empty line before the first name",
    },
    "tb_tpuprof/analysis/events/handed_over.py": {
        "handed_over: values_at(records, *events_with(trace, '_pt', '_p'), 0) → values_at(records, "
        "*events_with(trace, '_pt', '_p'), 1)": (
            "only has to differ from the number of a consumer without a context"
        ),
    },
    "tb_tpuprof/analysis/events/hlo_links.py": {
        "_rows_named: (blob == ord('/')) | (blob == ord(':')) → (blob == ord('/')) | (blob != ord(':'))": (
            "texts without a separator are looked up again, by the same name"
        ),
        "_named_by_metadata: values_at(np.arange(n), *_first(sparse.owner, "
        "sparse.value.astype(np.int64)), -1) → values_at(np.arange(n), *_first(sparse.owner, "
        "sparse.value.astype(np.int64)), 1)": ("rows without a program are left out"),
    },
    "tb_tpuprof/analysis/events/host_offload.py": {
        "_operations: -1 → -2": "any negative number is none",
        "matched: np.zeros(1, np.int64) → np.zeros(2, np.int64)": (
            "a done right behind one without a start has no start, either"
        ),
    },
    "tb_tpuprof/analysis/events/links.py": {
        "_contexts: (consumer, consumed_key) if is_consumer.all() else (consumer[is_consumer], "
        "consumed_key[is_consumer]) → (consumer[is_consumer], consumed_key[is_consumer])": (
            "all rows, copied"
        ),
        "_contexts: (producer, produced_key) if is_producer.all() else (producer[is_producer], "
        "produced_key[is_producer]) → (producer[is_producer], produced_key[is_producer])": (
            "all rows, copied"
        ),
        "ties: columns[3].append(to_hub + np.int32(n_hubs) if n_hubs else to_hub) → "
        "columns[3].append(to_hub + np.int32(n_hubs))": ("adding zero changes nothing"),
        "ties: columns[1].append(from_hub + np.int32(n_hubs) if n_hubs else from_hub) → "
        "columns[1].append(from_hub + np.int32(n_hubs))": ("adding zero changes nothing"),
    },
    "tb_tpuprof/analysis/events/memo.py": {
        "compute_ahead: trace.n_events >= POLICY.min_parallel_events → trace.n_events > "
        "POLICY.min_parallel_events": ("when work is divided among threads"),
    },
    "tb_tpuprof/analysis/events/metadata_names.py": {
        "metadata_names: len(ids) and int(ids.min()) >= 0 → len(ids) and int(ids.min()) > 0": (
            "one by one, slower"
        ),
    },
    "tb_tpuprof/analysis/events/program_gaps.py": {
        "gaps_within: (np.searchsorted(idle_to, starts, side='right'), np.searchsorted(idle_from, ends)) "
        "→ (np.searchsorted(idle_to, starts, side='right'), np.searchsorted(idle_from, ends, "
        "side='right'))": ("a gap that begins at the program's end has no length in it"),
    },
    "tb_tpuprof/analysis/events/program_runs.py": {
        "run_ends: end[-n:] if len(run_ids) > len(calls) else end[:n] → end[-n:] if len(run_ids) >= "
        "len(calls) else end[:n]": ("as many runs as calls: all of them"),
    },
    "tb_tpuprof/analysis/events/stat_rows.py": {
        "consecutive: return slice(int(rows[0]), int(rows[-1]) + 1) if is_run else rows → return rows": (
            "the same rows, copied"
        ),
        "<module>: np.int64(-7046029254386353131) → np.int64(7046029254386353131)": (
            "any odd number of many bits spreads keys"
        ),
        "<module>: -7046029254386353131 → -3523014627193176565": "any odd number of many bits spreads keys",
        "events_with: len(other) == len(owner) and np.array_equal(other, owner) → len(other) != "
        "len(owner) and np.array_equal(other, owner)": ("the same numbers, joined the slow way"),
        "values_at: len(owner) == len(rows) and np.array_equal(owner, rows) → len(owner) != len(rows) and "
        "np.array_equal(owner, rows)": ("the same values, looked up the slow way"),
        "events_of: if not is_chosen.any(): return → without it": "the search finds none, either",
    },
    "tb_tpuprof/analysis/events/text_cache.py": {
        "<module>: 8 * 2 ** 20 → 7 * 2 ** 20": "a bound of memory, not part of any result",
        "text_cache.__call__: ({}, 0) → ({}, 1)": "one of eight million characters of a bound of memory",
        "text_cache.__call__: key = (text, *args) if args else text → key = (text, *args)": (
            "another key for the same arguments"
        ),
        "text_cache.__call__: len(text) < _MOST_CHARACTERS → len(text) <= _MOST_CHARACTERS": (
            "a bound of memory, not part of any result"
        ),
    },
    "tb_tpuprof/analysis/flame/calls.py": {
        "_ends: if np.array_equal(cut, result): break → without it": "further rounds change nothing",
    },
    "tb_tpuprof/analysis/flame/scopes.py": {
        "scope_nodes: np.maximum(ops.n_occurrences, 1) → np.maximum(ops.n_occurrences, 0)": (
            "each operation occurs"
        ),
    },
    "tb_tpuprof/analysis/graphs/scopes.py": {
        "_row: child < 0 → child <= 0": "the root is no scope's child",
        "_Tree.child: -1 → -2": "any negative number is none",
    },
    "tb_tpuprof/analysis/graphs/tpu_compatibility.py": {
        "<module>: _MOST_INPUTS = 10000 → _MOST_INPUTS = 20000": "a bound of work, not part of any result",
        "<module>: _MOST_INPUTS = 10000 → _MOST_INPUTS = 5000": "a bound of work, not part of any result",
        "_Verdicts.__init__: -1 → -2": "any negative number is none",
        "_calls: -1 → -2": "any negative number is none",
        "_bad_types: -1 → -2": "any negative number is none",
    },
    "tb_tpuprof/analysis/hlo/heap.py": {
        "<module>: _MAX_JUMPS = 64 → _MAX_JUMPS = 128": "each jump doubles the distance",
        "<module>: _MAX_JUMPS = 64 → _MAX_JUMPS = 32": "each jump doubles the distance",
        "_roots: if np.array_equal(next_root, root): return → without it": (
            "further jumps lead to the same buffers"
        ),
    },
    "tb_tpuprof/analysis/hlo/memories.py": {
        "HloMemories.largest: -1 → -2": "programs without memory are all alike",
        "HloMemories.largest: -1 → -0": "programs without memory are all alike",
    },
    "tb_tpuprof/analysis/hlo/memory.py": {
        "unpadded_sizes: -1 → -2": "any negative number is none",
        "unpadded_sizes: -1 → -2 #2": "any negative number is none",
        "_traces_of: -1 → -2": "any negative number is none",
        "_traces_of: -1 → -2 #2": "any negative number is none",
        "_traces_of: -1 → -2 #3": "any negative number is none",
        "_traces_of: -1 → -2 #4": "any negative number is none",
        "unpadded_sizes: -1 → -0": "without instructions no buffer has one",
        "unpadded_sizes: -1 → 1": "without instructions no buffer has one",
    },
    "tb_tpuprof/analysis/hlo/memory_accesses.py": {
        "_blocks: a + 1 → a + 2": "a search for a larger position already ends behind its own",
    },
    "tb_tpuprof/analysis/hlo/text/window.py": {
        "TextIndex.lines: i = max(0, int(np.searchsorted(self.first, max(start, len(self.head)), "
        "'right')) - 1) → i = min(0, int(np.searchsorted(self.first, max(start, len(self.head)), "
        "'right')) - 1)": ("skips the earlier computations one by one"),
    },
    "tb_tpuprof/analysis/hlo/work.py": {
        "stated_work: -1 → -2": "any negative number is none",
    },
    "tb_tpuprof/analysis/input/tpu.py": {
        "_collectives: -1 → -2": "any negative number is none",
    },
    "tb_tpuprof/analysis/kernels/kernels.py": {
        "kernels: -1 → -2": "NumPy takes any negative number for the unknown size",
        "kernels: -1 → -2 #2": "NumPy takes any negative number for the unknown size",
        "kernels: (:, group_sums[0] > 0) → (:, group_sums[0] >= 0)": "every group has a kernel",
        "kernels: first[group_sums[0] > 0] → first[group_sums[0] >= 0]": "every group has a kernel",
        "kernels: group_sums[5] → group_sums[4]": "kernels of a group have the same operation",
        "kernels: key = key * len(distinct) + rank → key = key * len(distinct) - rank": (
            "keys only keep groups apart"
        ),
        "merge_kernels: return parts[0] if len(parts) == 1 else _merged(_concatenated(parts)) → return "
        "_merged(_concatenated(parts))": ("one table, merged again"),
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
        "kernel_rows: if len(owner) == len(rows) and np.array_equal(owner, rows): return → without it": (
            "the same strings, looked up"
        ),
        "kernel_mask: if not lines: return → without it": "no line has kernels",
    },
    "tb_tpuprof/analysis/memory/events.py": {
        "MemoryEvents._texts: -1 → -2": "replaced by the first key's texts",
        "_order: int(memory_by_time.max()) < 2 ** 16 → int(memory_by_time.max()) < 2 * 16": (
            "the type that is sorted"
        ),
    },
    "tb_tpuprof/analysis/ops/expressions.py": {
        "<module>: program_shape=False → program_shape=True": "only computations have one, not instructions",
    },
    "tb_tpuprof/analysis/ops/labels.py": {
        "of_metadata: -1 → -2": "any negative number is none",
        "of_rows: -1 → -2 #2": "any negative number is none",
    },
    "tb_tpuprof/analysis/ops/roof_excess.py": {
        "excesses: if not len(ops) or not (peaks.flops_per_s or any(peaks.bytes_per_s)): return → without "
        "it": ("no operation has a share of an unknown peak"),
    },
    "tb_tpuprof/analysis/overview/live.py": {
        "live_sample: np.maximum(time, 1) → np.maximum(time, 0)": "every step has a duration",
        "live_sample: np.maximum(time, 1) → np.maximum(time, 2)": "no step lasts a picosecond",
    },
    "tb_tpuprof/analysis/pod/join.py": {
        "_labels: enumerate(groups, 1) → enumerate(groups, 2)": "labels only keep groups apart",
    },
    "tb_tpuprof/analysis/query/arguments.py": {
        "_full_names: -1 → -2": "NumPy takes any negative number for the unknown size",
        "_numbers_pass: -1 → -2": "NumPy takes any negative number for the unknown size",
        "_full_names: return passes[position.reshape(-1)] if len(distinct) else np.zeros(0, np.bool_) → "
        "return passes[position.reshape(-1)]": ("no names are none of no flags"),
    },
    "tb_tpuprof/analysis/query/columns.py": {
        "<module>: (2000, 10) → (4000, 10)": "which of two ways, for the same numbers",
        "<module>: (2000, 10) → (1000, 10)": "which of two ways, for the same numbers",
        "<module>: (2000, 10) → (2000, 11)": "which of two ways, for the same numbers",
        "<module>: (2000, 10) → (2000, 9)": "which of two ways, for the same numbers",
        "self_times: if len(events) <= _FEW and _n_within(drawn, events) * _FEW_SHARE <= drawn.n_events: "
        "return → without it": ("the other way, for the same numbers"),
        "self_times: len(events) <= _FEW and _n_within(drawn, events) * _FEW_SHARE <= drawn.n_events → "
        "len(events) <= _FEW or _n_within(drawn, events) * _FEW_SHARE <= drawn.n_events": (
            "the other way, for the same numbers"
        ),
        "self_times: len(events) <= _FEW and _n_within(drawn, events) * _FEW_SHARE <= drawn.n_events → "
        "len(events) < _FEW and _n_within(drawn, events) * _FEW_SHARE <= drawn.n_events": (
            "the other way, for the same numbers"
        ),
        "self_times: len(events) <= _FEW and _n_within(drawn, events) * _FEW_SHARE <= drawn.n_events → "
        "len(events) <= _FEW and _n_within(drawn, events) * _FEW_SHARE < drawn.n_events": (
            "the other way, for the same numbers"
        ),
        "self_times: _n_within(drawn, events) * _FEW_SHARE <= drawn.n_events → _n_within(drawn, events) / "
        "_FEW_SHARE <= drawn.n_events": ("the other way, for the same numbers"),
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
        "max(int(grouped.group.max(initial=0)), *numbers) + 3": ("a place that is not read"),
        "event_steps: 2 * len(numbers) + _GAPS → 2 / len(numbers) + _GAPS": (
            "which of two ways, for the same texts"
        ),
    },
    "tb_tpuprof/analysis/query/grouping.py": {
        "_of_tracks: np.full(max((track.line for track in host.tracks), default=0) + 2, -1, np.int32) → "
        "np.full(max((track.line for track in host.tracks), default=0) + 2, 1, np.int32)": (
            "every line with events has a track"
        ),
        "_of_tracks: max((track.line for track in host.tracks), default=0) + 2 → max((track.line for "
        "track in host.tracks), default=0) + 1": ("a place that is not read"),
        "argument_values: -1 → -2 #5": "any negative number is none",
        "_coded: -1 → -2": "NumPy takes any negative number for the unknown size",
    },
    "tb_tpuprof/analysis/query/hits.py": {
        "box_hits: has_matches = np.diff(np.searchsorted(matches, layer.line_offsets)) > 0 → has_matches "
        "= np.diff(np.searchsorted(matches, layer.line_offsets)) >= 0": (
            "boxes of other lines contain no matches"
        ),
    },
    "tb_tpuprof/analysis/query/spans.py": {
        "_near: int((bounds[:, 1] - bounds[:, 0]).sum()) == len(events) → int((bounds[:, 1] - bounds[:, "
        "0]).sum()) != len(events)": ("events that are not left out here are later"),
        "_near: (:, 1) → (:, 0)": "the same events, joined",
        "_near: int((bounds[:, 1] - bounds[:, 0]).sum()) → int((bounds[:, 1] - bounds[:, 0]).max())": (
            "the same events, joined"
        ),
        "_near: if int((bounds[:, 1] - bounds[:, 0]).sum()) == len(events): return → without it": (
            "the same events, joined"
        ),
        "parts_within: if not len(crossing): return → without it": "the same parts, copied",
        "parts_within: (start < window.start_ps) | (end > window.end_ps) → (start < window.start_ps) | "
        "(end >= window.end_ps)": ("an event that ends with the window lies within"),
    },
    "tb_tpuprof/analysis/steps/classes.py": {
        "<module>: (100, 101) → (50, 101)": "any number above the classes",
        "<module>: (100, 101) → (100, 202)": "any number above the classes",
    },
    "tb_tpuprof/analysis/steps/clocks.py": {
        "_offsets: float(spread.max()) > float(np.median(np.diff(times, axis=1))) * _IN_STEP → "
        "float(spread.max()) >= float(np.median(np.diff(times, axis=1))) * _IN_STEP": (
            "measured times are never exactly a quarter"
        ),
        "<module>: _MOST = 4096 → _MOST = 8192": "how many moments are evidence enough",
        "<module>: _MOST = 4096 → _MOST = 2048": "how many moments are evidence enough",
    },
    "tb_tpuprof/analysis/steps/device_spans.py": {
        "device_spans: -1 → -2": "any negative number is none",
        "device_spans: -1 → -2 #2": "any negative number is none",
    },
    "tb_tpuprof/analysis/steps/forest.py": {
        "Forest._distinct: len(nodes) > self.n_nodes // 64 → len(nodes) >= self.n_nodes // 64": (
            "two ways to the same nodes"
        ),
        "Forest._distinct: len(nodes) > self.n_nodes // 64 → len(nodes) > self.n_nodes * 64": (
            "two ways to the same nodes"
        ),
        "Forest._distinct: self.n_nodes // 64 → self.n_nodes // 128": "two ways to the same nodes",
        "Forest._distinct: self.n_nodes // 64 → self.n_nodes // 32": "two ways to the same nodes",
        "Forest._distinct: marked(nodes, self.n_nodes) if len(nodes) > self.n_nodes // 64 else "
        "np.unique(nodes).astype(np.intp) → marked(nodes, self.n_nodes)": ("two ways to the same nodes"),
        "Forest._distinct: marked(nodes, self.n_nodes) if len(nodes) > self.n_nodes // 64 else "
        "np.unique(nodes).astype(np.intp) → np.unique(nodes).astype(np.intp)": ("two ways to the same nodes"),
        "_useful_ties: has_own_cause[roots] = 1 → has_own_cause[roots] = 2": "any number but 0 is true",
        "_useful_ties: has_own_cause[tie.consumer] = 1 → has_own_cause[tie.consumer] = 2": (
            "any number but 0 is true"
        ),
    },
    "tb_tpuprof/analysis/steps/gpu.py": {
        "step_spans: -1 → -2 #2": "any negative number is none",
    },
    "tb_tpuprof/analysis/steps/gpu_host.py": {
        "steps_of_gpu: -1 → -2": "any negative number is none",
    },
    "tb_tpuprof/analysis/steps/grouping.py": {
        "_numbers: if not len(unnumbered) or not len(owner): break → without it": (
            "nothing is left to do in further rounds"
        ),
        "<module>: _MOST_AROUND = 64 → _MOST_AROUND = 128": "a bound of work, not part of any result",
        "<module>: _MOST_AROUND = 64 → _MOST_AROUND = 32": "a bound of work, not part of any result",
        "_looping: -1 → -2": "any negative number is none",
        "fetching_loops: -1 → -2": "any negative number is none",
        "_numbers: -1 → -2": "any negative number is none",
    },
    "tb_tpuprof/analysis/steps/host.py": {
        "_other_threads: -1 → -2 #2": "any negative number is none",
        "_in_bodies: -1 → -2": "any negative number is none",
    },
    "tb_tpuprof/analysis/steps/idle_pieces.py": {
        "copy_waits: trace.events['duration_ps'][copy_events] > 0 → "
        "trace.events['duration_ps'][copy_events] > 1": ("no copy lasts a picosecond"),
        "launch_events: with_id = owner[(value > 0) & on_host[trace.lines_at(owner)]] if len(owner) else "
        "owner → with_id = owner[(value > 0) & on_host[trace.lines_at(owner)]]": (
            "no events, which are then looked up"
        ),
    },
    "tb_tpuprof/analysis/steps/pieces.py": {
        "OwnThread.stretches: parts[0] if len(parts) == 1 else Stretches(*(np.concatenate(columns) for "
        "columns in zip(*parts, strict=True))) → Stretches(*(np.concatenate(columns) for columns in "
        "zip(*parts, strict=True)))": ("the same rows, copied"),
        "non_overlapping: if (opens[order][1:] >= closes[order][:-1]).all(): return → without it": (
            "the general way, which is slower"
        ),
        "Pieces.spread: code[:len(self)] >= 0 → code[:len(self)] >= 1": (
            "codes are at least 1, negative ones are left out"
        ),
        "Pieces.charged: code[:len(self)] >= 0 → code[:len(self)] >= 1": (
            "codes are at least 1, negative ones are left out"
        ),
        "Pieces.charged: steps[0] → steps[1]": "there are as many starts as ends",
        "Pieces.charged: len(self.own) == 1 → len(self.own) == 0": "the general way, which is slower",
        "Pieces.charged: len(non_overlapping(thread.opens, thread.closes)) == 1 → "
        "len(non_overlapping(thread.opens, thread.closes)) == 0": ("the general way, which is slower"),
    },
    "tb_tpuprof/analysis/steps/program.py": {
        "_units: len(calls) < _FEW or not _is_ordered(trace, calls) → len(calls) <= _FEW or not "
        "_is_ordered(trace, calls)": ("three calls are three units or none"),
        "_calls_of_main_program: initial=0 → initial=1": "one picosecond of a trace",
        "_calls_of_main_program: initial=0 → initial=1 #2": "one picosecond of a trace",
    },
    "tb_tpuprof/analysis/steps/pytorch.py": {
        "loader_events: if not len(markers.row): return → without it": "no event is on a line of no markers",
    },
    "tb_tpuprof/analysis/steps/pytorch_pieces.py": {
        "_loader_of: (fetch >= 0) & (parent[np.maximum(fetch, 0)] >= 0) → (fetch >= 0) | "
        "(parent[np.maximum(fetch, 0)] >= 0)": ("the parent of none is none"),
        "_loader_of: (fetch >= 0) & (parent[np.maximum(fetch, 0)] >= 0) → (fetch > 0) & "
        "(parent[np.maximum(fetch, 0)] >= 0)": ("a line's first event has no parent"),
        "_loader_of: fetch >= 0 → fetch >= 1": "a line's first event has no parent",
        "_loader_of: np.maximum(fetch, 0) → np.maximum(fetch, 1)": "read only where it is not smaller",
        "_loader_of: -1 → -2": "any negative number is none",
        "_loader_of: -1 → -2 #2": "any negative number is none",
        "_loader_of: -1 → -2 #3": "any negative number is none",
        "_loader_of: np.where(fetch >= 0, fetch + rows.start, -1) → np.where(fetch > 0, fetch + "
        "rows.start, -1)": ("a line's first event is not inside of a step"),
        "_loader_of: fetch >= 0 → fetch >= 1 #2": "a line's first event is not inside of a step",
        "_without_steps_as_loaders: (loader >= 0) & has_launch[loader] → (loader > 0) & has_launch[loader]": (
            "a line's first event is not inside of a step"
        ),
        "_without_steps_as_loaders: loader >= 0 → loader >= 1": (
            "a line's first event is not inside of a step"
        ),
    },
    "tb_tpuprof/analysis/steps/steps.py": {
        "host_parts: if not (group >= 0).any(): return → without it": "without groups the rest finds none",
    },
    "tb_tpuprof/analysis/steps/tpu.py": {
        "tpu_steps: 1: → 0:": "nothing is charged to the first class before",
        "tpu_steps: 1: → 0: #2": "nothing is charged to the first class before",
    },
    "tb_tpuprof/analysis/steps/tpu_grouping.py": {
        "representatives: if not lines or not len(events): return → without it": (
            "the general way, which is slower"
        ),
        "representatives: -1 → -2": "any negative number is none",
        "representatives: -1 → -2 #2": "any negative number is none",
    },
    "tb_tpuprof/analysis/steps/waits.py": {
        "<module>: _CODES_AT_ONCE = 200 → _CODES_AT_ONCE = 100": "how many codes are charged at once",
        "classes_and_waits: len(pairs) <= _CODES_AT_ONCE → len(pairs) < _CODES_AT_ONCE": (
            "at once, or in one batch"
        ),
        "classes_and_waits: -1 → -2 #2": "any negative number is none",
        "<module>: (128, 256, 512) → (128, 256, 1024)": "any bit above those of the classes",
    },
    "tb_tpuprof/analysis/tf_data/changes.py": {
        "_map_advice: 0 < facts.typical_ps < _TINY_PS → 1 < facts.typical_ps < _TINY_PS": (
            "no function takes a picosecond"
        ),
    },
    "tb_tpuprof/analysis/tf_data/simulation.py": {
        "Part: batch: int = 1 → batch: int = 2": "only stages that state it read it",
        "simulate: cycle.total = 0.0 → cycle.total = 1.0": "a picosecond of sums that rank stages",
    },
    "tb_tpuprof/analysis/tf_data/what_if.py": {
        "what_if: less if explained < 1 else more → less if explained <= 1 else more": (
            "a model that explains all of the time has estimates"
        ),
    },
    "tb_tpuprof/analysis/timeline/boxes.py": {
        "_parts: n_events = layer.row_offsets[rows + 1] - layer.row_offsets[rows] → n_events = "
        "layer.row_offsets[rows + 1] + layer.row_offsets[rows]": ("where the rows are split for threads"),
    },
    "tb_tpuprof/analysis/timeline/focus.py": {
        "focus: gap.max() >= least_gap → gap.max() > least_gap": (
            "the stray event itself takes at least 1 ps of the gap"
        ),
        "focus: gap_after.max() >= least_gap → gap_after.max() > least_gap": (
            "the last event itself takes at least 1 ps of the gap"
        ),
    },
    "tb_tpuprof/serve/guard.py": {
        "Guard.__init__: secrets.token_urlsafe(24) → secrets.token_urlsafe(48)": (
            "a longer secret is as secret"
        ),
    },
    "tb_tpuprof/serve/monitors.py": {
        "<module>: MAX_SAMPLES = 10000 → MAX_SAMPLES = 20000": "a bound of memory",
        "<module>: MAX_SAMPLES = 10000 → MAX_SAMPLES = 5000": "a bound of memory",
        "Monitor._watch: self._cancel.wait(0.5) → self._cancel.wait(0.75)": "how often a thread looks",
        "Monitor._watch: left_s is not None and now_s - left_s > LEFT_AFTER_S → left_s is not None and "
        "now_s - left_s >= LEFT_AFTER_S": ("two readings of a clock are never equal"),
    },
    "tb_tpuprof/serve/plugin.py": {
        "<module>: _RECHECK_SECONDS = 10.0 → _RECHECK_SECONDS = 15.0": (
            "how often folders are looked through"
        ),
    },
    "tb_tpuprof/tools/flame_graph/verdict.py": {
        "_of_users: other and other.with_calls_ps[0] > _MATTERS * flame.durations_ps[0] → other and "
        "other.with_calls_ps[0] >= _MATTERS * flame.durations_ps[0]": ("`users` holds only larger ones"),
        "_of_users: other.with_calls_ps[0] > _MATTERS * flame.durations_ps[0] → other.with_calls_ps[0] > "
        "_MATTERS / flame.durations_ps[0]": ("`users` holds only larger ones"),
    },
    "tb_tpuprof/tools/op_profile/details.py": {
        "_scalars.finite: return None if np.isnan(value) else float(value) → return float(value)": (
            "NaN is written as null"
        ),
    },
    "tb_tpuprof/tools/pod_viewer/sentences.py": {
        "_waiting: float(pod.total_ps.mean()) or 1.0 → float(pod.total_ps.mean()) or 1.5": (
            "nothing waits where no time passes"
        ),
    },
    "tb_tpuprof/tools/shares.py": {
        "shares_table: sum_by(names.codes, time_ps, len(names.strings)) if len(names) else np.zeros(0, "
        "np.int64) → sum_by(names.codes, time_ps, len(names.strings))": ("no rows have no sums either"),
        "shares_table: np.partition(totals[nonzero], -N_SLICES)[-N_SLICES] if len(nonzero) > N_SLICES "
        "else 0 → 0": ("sorts all names instead of the largest"),
    },
    "tb_tpuprof/tools/trace_viewer/export.py": {
        "<module>: 1 << 15 → 1 << 14": "the size of the parts that are sent",
        "_dumps: ensure_ascii=False → ensure_ascii=True": "the same JSON, escaped",
    },
}
