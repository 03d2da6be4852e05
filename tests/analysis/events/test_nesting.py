import itertools

import numpy as np

from tb_tpuprof.analysis.events.nesting import are_inside, event_ends, nest_rows, parents, regions
from tb_tpuprof.native import enclose, flood, nest
from tb_tpuprof.native.plain import intervals as plain
from tests.builders import PS, drawing


def test_parent_is_the_innermost_event_around() -> None:
    trace = drawing("""
        main   [a                 ][g ]
        main     [b      ][d   ]
        main       [c ]
        other  [e                 ]
        """)
    names = [trace.strings[i] for i in trace.metadata["name"][trace.events["metadata"]].tolist()]
    above = parents(trace).tolist()
    assert {name: names[i] if i >= 0 else "" for name, i in zip(names, above, strict=True)} == {
        "a": "", "b": "a", "c": "b", "d": "a", "g": "", "e": "",
    }  # fmt: skip


def test_asynchronous_events_do_not_nest() -> None:
    trace = drawing(
        """
        main   [later            ]
        main     [work   ]
        """,
        {"later": {"_a": 1}},
    )
    assert parents(trace).tolist() == [-1, -1]


def test_a_region_lasts_from_its_start_mark_to_its_stop_mark() -> None:
    trace = drawing("""
        pool  [ThreadpoolListener::StartRegion]                              [ThreadpoolListener::StopRegion]
        pool                                       [work ]
        """)
    assert regions(trace).event.tolist() == [0]
    assert parents(trace).tolist() == [-1, 0, -1]
    assert event_ends(trace, np.array([0, 1]))[0] == trace.events["start_ps"][2]


def test_a_stop_on_another_line_ends_no_region() -> None:
    trace = drawing("""
        one  [ThreadpoolListener::StartRegion]  [work ]
        two  [ThreadpoolListener::StopRegion]  [ThreadpoolListener::StartRegion]  [ThreadpoolListener::StopRegion]
        """)
    found = regions(trace)
    assert [trace.line_names[line] for line in trace.lines_at(found.event)] == ["one", "two"]
    assert found.end_ps[0] == trace.events["start_ps"][1] + trace.events["duration_ps"][1]
    assert found.end_ps[1] == trace.events["start_ps"][4]


def test_a_region_without_a_stop_ends_where_the_next_one_begins_and_the_last_one_with_its_line() -> None:
    trace = drawing("""
        pool  [ThreadpoolListener::StartRegion]        [ThreadpoolListener::StartRegion]
        pool                                     [a ]                                     [b       ]
        pool                                                                                [c ]
        last                                                                   [ThreadpoolListener::StartRegion]
        """)
    names = [trace.strings[i] for i in trace.metadata["name"][trace.events["metadata"]].tolist()]
    start = dict(zip(names, trace.events["start_ps"].tolist(), strict=True))
    found = regions(trace)
    second = int(found.event[1])
    assert found.end_ps[0] == trace.events["start_ps"][second]
    assert found.end_ps[1] == start["b"] + 10 * PS
    assert parents(trace)[names.index("a")] == 0
    assert parents(trace)[names.index("b")] == second
    assert found.end_ps[2] > found.end_ps[1]


def test_events_inside_others_of_a_name() -> None:
    trace = drawing("""
        main   [a                              ][c ]
        main     [b              ][c ][a      ]
        main       [c ][b     ]         [c ]
        main             [c ]
        """)
    names = [trace.strings[i] for i in trace.metadata["name"].tolist()]
    rows = np.arange(trace.n_events)
    for wanted in ("a", "b", "c"):
        chosen = np.array([name == wanted for name in names])
        above = parents(trace).tolist()
        expected = []
        for row in above:
            inside = False
            while row >= 0:
                inside |= names[trace.events["metadata"][row]] == wanted
                row = above[row]
            expected.append(inside)
        assert are_inside(trace, rows, chosen).tolist() == expected
    none = regions(trace)
    assert len(none.event) == len(none.end_ps) == 0


def test_self_times_of_a_line_sum_up_to_its_busy_time() -> None:
    trace = drawing("""
        main   [a                 ]   [g ]
        main     [b      ][d   ]
        main       [c ]
        """)
    _, self_ps = nest_rows(trace, np.arange(trace.n_events))
    assert self_ps.sum() == (20 + 4) * PS


def test_compiled_and_plain_nesting_agree_on_random_lines() -> None:
    random = np.random.default_rng(7)
    for _ in range(20):
        n = int(random.integers(0, 200))
        start = np.sort(random.integers(0, 100, n)).astype(np.int64)
        end = start + random.integers(0, 40, n)
        offsets = np.sort(np.concatenate(([0, n], random.integers(0, n + 1, 3)))).astype(np.int64)
        order = np.concatenate(
            [a + np.lexsort((-(end[a:b]), start[a:b])) for a, b in itertools.pairwise(offsets)]
        ).astype(int)
        start, end = start[order], end[order]
        compiled, twin = nest(start, end, offsets), plain.nest(start, end, offsets)
        assert np.array_equal(compiled[0], twin[0])
        assert np.array_equal(compiled[1], twin[1])
        parent = np.empty(n, np.int32)
        enclose(start, end - start, offsets, (np.empty(0, np.int64), np.empty(0, np.int64)), parent)
        assert np.array_equal(parent, twin[0])
        entry = np.where(random.random(n) < 0.2, random.integers(0, 9, n), -1).astype(np.int32)
        assert np.array_equal(flood(compiled[0], entry), plain.flood(twin[0], entry))
