"""Trees of calls on threads drawn as text: whose code, which time, in which steps, in which order."""

from __future__ import annotations

import numpy as np

from tb_tpuprof.analysis.flame.calls import calls_in_order
from tb_tpuprof.analysis.flame.frames import Family, frames, label_of, user_times
from tb_tpuprof.analysis.flame.nodes import functions, merged_functions, merged_nodes, shown_nodes
from tb_tpuprof.analysis.flame.selection import selection
from tb_tpuprof.analysis.flame.stacks import Stacks, stacks
from tb_tpuprof.trace.trace import Trace
from tests.builders import PS, DrawnEvent, DrawnPlane, build, drawing


def tree_of(trace: Trace, lines: list[list[int]], text: str = "trace") -> Stacks:
    chosen = selection(trace, text)
    assert chosen is not None
    return stacks(trace, lines, [chosen.windows])


def by_path(trace: Trace, tree: Stacks) -> dict[str, tuple[int, int, int]]:
    """(own, total, calls) in µs by path."""
    paths: list[str] = []
    for above, name in zip(tree.above.tolist(), tree.name.tolist(), strict=True):
        label = label_of(trace.strings[name]).function
        paths.append(f"{paths[above]}/{label}" if above >= 0 else label)
    columns = (tree.own_ps[0] // PS, tree.total_ps[0] // PS, tree.calls[0])
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return dict(zip(paths, rows, strict=True))


# f lasts 30 and 17 µs, on the second thread 14; g and h 11 each; k 22.
NESTED = drawing("""
    one   [$a.py:1 f                   ]   [$a.py:1 f      ]
    one    [$a.py:5 g]  [$b.py:2 h]         [$a.py:5 g]
    two   [$a.py:1 f   ]
    three      [$c.py:4 k           ]
    """)


def test_own_and_total_time_by_path() -> None:
    tree = tree_of(NESTED, [[0, 1], [2]])
    assert by_path(NESTED, tree) == {
        "f": (30 + 17 + 14 - 3 * 11, 30 + 17 + 14, 3),
        "f/g": (22, 22, 2),
        "f/h": (11, 11, 1),
        "k": (22, 22, 1),
    }
    assert tree.group.tolist() == [0, 0, 0, 1]


def test_windows_cut_calls_and_count_those_that_they_touch() -> None:
    # From the last 5 µs of h to the first 3 µs of the second g; then a window in which only the first f runs.
    first = np.array([26, 33]) * PS
    last = np.array([43, 35]) * PS
    tree = stacks(
        NESTED,
        [[0], [2]],
        [(first[:1], last[:1]), (np.array([32 * PS]), np.array([33 * PS]))],
    )
    assert by_path(NESTED, tree) == {
        "f": (36 - 31 + 1, 36 - 26 + 43 - 39, 2),
        "f/g": (3, 3, 1),
        "f/h": (5, 5, 1),
        "k": (33 - 26, 33 - 26, 1),
    }
    assert (tree.own_ps[1] // PS).tolist() == [1, 0, 0, 1]
    assert tree.calls[1].tolist() == [1, 0, 0, 1]


def test_recursive_calls_count_once() -> None:
    trace = drawing("""
        one   [$a.py:1 f                ]
        one     [$a.py:1 f      ]
        one       [$a.py:5 g ]
        """)
    tree = tree_of(trace, [[0]])
    found = {one.name: one for one in functions(tree, frames(trace, tree), trace.strings, [0])}
    outer, inner, g = len("[$a.py:1 f                ]"), len("[$a.py:1 f      ]"), len("[$a.py:5 g ]")
    assert found["$a.py:1 f"].total_ps == [outer * PS]
    assert found["$a.py:1 f"].own_ps == [(outer - inner + inner - g) * PS]
    assert found["$a.py:1 f"].calls == [2]


OWNERS = drawing("""
    one   [$train.py:9 load                                                                 ]
    one     [$queue.py:171 get      ] [$api.py:12 jit              ] [PjitFunction(step)  ]
    one        [$time sleep     ]      [$augment.py:7 crop       ]    [dense/x:MatMul  ]
    """)


def test_whose_code() -> None:
    tree = tree_of(OWNERS, [[0]])
    found = frames(OWNERS, tree)
    family = {
        label_of(OWNERS.strings[name]).function: Family(kind)
        for name, kind in zip(tree.name.tolist(), found.family.tolist(), strict=True)
    }
    assert family == {
        "load": Family.YOURS,
        "get": Family.WAITING,
        "time.sleep": Family.WAITING,
        "jit": Family.LIBRARY,
        "crop": Family.YOURS,
        "PjitFunction(step)": Family.RUNTIME,
        "dense/x:MatMul": Family.OPERATION,
    }


def test_a_wait_at_the_root_and_what_it_calls() -> None:
    """Below a wait all waits, up to a function of yours."""
    trace = drawing("""
        one   [$queue.py:171 get                                 ][$mine.py:3 f ]
        one     [$threading.py:9 run                           ]
        one       [$mine.py:8 g               ]
        """)
    tree = tree_of(trace, [[0]])
    found = frames(trace, tree)
    family = {
        label_of(trace.strings[name]).function: Family(kind)
        for name, kind in zip(tree.name.tolist(), found.family.tolist(), strict=True)
    }
    assert family == {"get": Family.WAITING, "run": Family.WAITING, "g": Family.YOURS, "f": Family.YOURS}


def test_time_of_a_function_of_yours_includes_its_library_calls_and_waits() -> None:
    tree = tree_of(OWNERS, [[0]])
    found = frames(OWNERS, tree)
    by_name = {label_of(one.name).function: one for one in functions(tree, found, OWNERS.strings, [0])}
    get, jit = len("[$queue.py:171 get      ]"), len("[$api.py:12 jit              ]")
    crop, step = len("[$augment.py:7 crop       ]"), len("[PjitFunction(step)  ]")
    load = len("[$train.py:9 load                                                                 ]")
    assert by_name["load"].with_calls_ps == [(load - crop - step) * PS]
    assert by_name["load"].own_ps == [(load - get - jit - step) * PS]
    assert by_name["load"].waiting_ps == [get * PS]
    assert by_name["crop"].with_calls_ps == by_name["crop"].own_ps == [crop * PS]
    assert not by_name["jit"].is_users
    assert by_name["crop"].caller == "$train.py:9 load"
    assert user_times(tree, found, 1).tolist() == [(load - step) * PS]


# Steps of 18, 30 and 19 µs.
STEPS = drawing(
    """
    main   [train           ][train                       ][train            ]
    main     <MatMul:MatMul>  <MatMul:MatMul>               <MatMul:MatMul>
    """,
    {"train": [{"_r": 1, "step_num": i} for i in (1, 2, 3)]},
)


def test_steps_are_chosen_by_length_and_by_name() -> None:
    expected = {"all": 67, "median": 19, "slowest": 30, "train 1": 18, "3": 19}
    found = {text: selection(STEPS, text) for text in expected}
    assert {text: one.duration_ps // PS for text, one in found.items() if one} == expected
    whole = selection(STEPS, "trace")
    assert whole is not None
    assert whole.duration_ps == STEPS.duration_ps
    assert not len(whole.rows)
    assert selection(STEPS, "train 9") is None
    assert selection(STEPS, "") is None


def test_overlapping_steps_count_no_moment_twice() -> None:
    from dataclasses import replace

    from tb_tpuprof.analysis.flame import selection as module
    from tb_tpuprof.analysis.steps.steps import steps

    found = steps(STEPS)
    overlapping = replace(found, duration_ps=found.duration_ps + 3 * PS)
    original = module.trace_steps
    module.trace_steps = lambda _trace: overlapping  # type: ignore[assignment]
    try:
        chosen = selection(STEPS, "all")
    finally:
        module.trace_steps = original
    assert chosen is not None
    assert (chosen.opens[1:] >= chosen.closes[:-1]).all()
    assert chosen.duration_ps == int(found.duration_ps.sum()) + 3 * PS


def test_calls_in_time_order() -> None:
    trace = drawing("""
        one   [$a.py:1 f                              ]
        one    [$a.py:5 g]  [$b.py:2 h]  [$a.py:5 g]
        """)
    tree = tree_of(trace, [[0]])
    found = frames(trace, tree)
    first = int(trace.events["start_ps"][0])
    nodes = calls_in_order(trace, tree, found, (0,), (first + 3 * PS, first + 30 * PS))
    g, h = len("[$a.py:5 g]"), len("[$b.py:2 h]")
    assert [
        (label_of(one.name).function, one.start_ps // PS, one.total_ps[0] // PS, one.parent) for one in nodes
    ] == [
        ("f", 0, 27, -1),
        ("g", 0, g - 2, 0),
        ("h", g, h, 0),
        ("g", g + h + 2, 27 - (g + h + 2), 0),
    ]
    assert nodes[0].own_ps[0] == 27 * PS - sum(one.total_ps[0] for one in nodes[1:])


def test_short_calls_are_summed_up_between_long_ones() -> None:
    from tb_tpuprof.analysis.flame import calls as module

    trace = drawing("""
        one   [$a.py:1 f                                          ]
        one    [long          ][a][b]  [longer            ][c] [d]
        """)
    tree = tree_of(trace, [[0]])
    found = frames(trace, tree)
    before, module.LEAST_SHARE = module.LEAST_SHARE, 0.2
    try:
        nodes = calls_in_order(trace, tree, found, (0,), (0, int(trace.duration_ps)))
    finally:
        module.LEAST_SHARE = before
    assert [(one.name, one.n_smaller, one.total_ps[0] // PS) for one in nodes[1:]] == [
        ("long", 0, 16), ("", 2, 6), ("longer", 0, 20), ("", 2, 6),
    ]  # fmt: skip
    assert nodes[0].own_ps[0] == nodes[0].total_ps[0] - 48 * PS


def test_hosts_are_merged_by_names() -> None:
    parts = []
    for text in ("one   [$a.py:1 f    ]", "one   [$a.py:1 f          ]", "one   [$b.py:2 h ]"):
        trace = drawing(text)
        tree = tree_of(trace, [[0]])
        found = frames(trace, tree)
        parts.append(
            (shown_nodes(tree, found, trace.strings, [0]), functions(tree, found, trace.strings, [0]))
        )
    nodes = merged_nodes([part[0] for part in parts])
    widths = {"$a.py:1 f": 15 + 21, "$b.py:2 h": 12}
    assert {node.name: node.total_ps[0] // PS for node in nodes} == widths
    assert [node.name for node in nodes] == ["$a.py:1 f", "$b.py:2 h"]
    assert {one.name: one.own_ps[0] // PS for one in merged_functions([part[1] for part in parts])} == widths
    assert nodes[0].calls == [2]


def test_deep_and_broad_trees_are_cut() -> None:
    names = "\n".join(f"one   {' ' * i}[f{i:03}{' ' * (700 - 2 * i - 6)}]" for i in range(340))
    trace = drawing(names)
    tree = tree_of(trace, [[0]])
    nodes = shown_nodes(tree, frames(trace, tree), trace.strings, [0])
    assert len(tree) == 340
    assert len(nodes) == 201
    assert nodes[-1].n_smaller == 140
    assert sum(node.own_ps[0] for node in nodes) == int(tree.own_ps[0].sum()) == 700 * PS
    assert np.array([node.total_ps[0] for node in nodes]).max() == 700 * PS


def test_a_kernel_and_its_launch_of_the_same_name_do_not_add_up() -> None:
    kernel = "void f<float>(int)"
    host = DrawnPlane(
        "/host:CPU", {"main": [DrawnEvent("PjitFunction(f)", 0, 5 * PS), DrawnEvent(kernel, PS, 2 * PS)]}
    )
    gpu = DrawnPlane("/device:GPU:0", {"Stream #1": [DrawnEvent(kernel, 4 * PS, 7 * PS)]})
    trace = build([host, gpu])
    tree = tree_of(trace, [[0], [1]])
    found = functions(tree, frames(trace, tree), trace.strings, [0, 1])
    assert [(one.name, Family(one.family), one.own_ps[0] // PS) for one in found] == [
        (kernel, Family.OPERATION, 7),
        ("PjitFunction(f)", Family.RUNTIME, 3),
        (kernel, Family.RUNTIME, 2),
    ]
    merged = merged_functions([functions(tree, frames(trace, tree), trace.strings, [0, 1]) for _ in range(3)])
    assert [one.own_ps[0] // PS for one in merged] == [21, 9, 6]


def test_the_profiler_s_own_work_and_waiting_for_messages_are_not_the_user_s() -> None:
    trace = drawing("""
        one   [$worker.py:3 profile                   ] [$poll.py:80 poll   ]
        one    [$profiler.py:213 stop_trace    ]
        one     [$profiler.py:90 write    ]
        """)
    tree = tree_of(trace, [[0]])
    found = frames(trace, tree)
    family = {
        label_of(trace.strings[name]).function: Family(kind)
        for name, kind in zip(tree.name.tolist(), found.family.tolist(), strict=True)
    }
    assert family == {
        "profile": Family.YOURS,
        "stop_trace": Family.RUNTIME,
        "write": Family.RUNTIME,
        "poll": Family.WAITING,
    }
    by_name = {label_of(one.name).function: one for one in functions(tree, found, trace.strings, [0])}
    outer = len("[$worker.py:3 profile                   ]")
    stop = len("[$profiler.py:213 stop_trace    ]")
    assert by_name["profile"].with_calls_ps == [(outer - stop) * PS]
    assert not by_name["poll"].is_users
