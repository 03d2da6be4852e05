"""`make mutate`: mutate randomly chosen modules and report the mutants that no test detects.

    python -m tests.mutate                                    150 mutants of 30 modules, seed 1
    python -m tests.mutate --modules analysis/pod --count 0   every mutant of these modules
    python -m tests.mutate --modules ingest/heap --tests ingest/test_heap
                                                              only with these tests: starts at once
    python -m tests.mutate --seed 7 --count 300 --each 6

For a survivor, write the missing test, or add an entry with the reason to tests/mutate/equivalent.json if the
mutant behaves like the original. `--recheck` also runs the mutants listed there.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.mutate.baseline import Baseline
from tests.mutate.belonging import PACKAGE, Belonging
from tests.mutate.equivalent import EQUIVALENT as LISTED
from tests.mutate.mutants import Mutant, has_mutants, mutants, mutated
from tests.mutate.report import EQUIVALENT, ERROR, KILLED, UNTESTED, Result, share_killed, survivors, table
from tests.mutate.running import Job, Workers, workers

ROOT = Path(__file__).resolve().parents[2]
_START_S = 30.0  # for a fork to start
_SLOWER = 4.0  # times the usual time of its tests, after which a mutant counts as hanging
_RETRIES = 5
Chosen = tuple[str, Mutant]


def drawn(tree: Belonging, modules: Sequence[str], count: int, each: int, seed: int) -> list[Chosen]:
    """A random sample: modules in random order, `each` mutants per module, `count` in total (0: all mutants
    of all modules).

    The sample of a module does not depend on the other modules.
    """
    order = [name for name in modules if has_mutants((tree.root / name).read_text("utf-8"))]
    random.Random(seed).shuffle(order)
    modules_used = order if not count else order[: math.ceil(count / each)]
    drawn_mutants: list[Chosen] = []
    for module in modules_used:
        every = mutants((tree.root / module).read_text("utf-8"))
        sample = random.Random(f"{seed}:{module}").sample(every, min(each, len(every))) if count else every
        drawn_mutants += [(module, one) for one in sorted(sample, key=lambda one: one.number)]
    return drawn_mutants[:count] if count else drawn_mutants


def matching(tree: Belonging, patterns: Sequence[str]) -> list[str]:
    """Modules of the whole package whose path starts with one of the patterns; without patterns, those of the
    parts that are mutated by default.
    """
    if not patterns:
        return tree.modules
    starts = tuple(patterns)
    matches = [module for module in tree.every if module.removeprefix(f"{PACKAGE}/").startswith(starts)]
    if not matches:
        raise SystemExit(f"No module of {PACKAGE} begins with {' or '.join(patterns)}.")
    return matches


def chosen_tests(tree: Belonging, patterns: Sequence[str]) -> list[str]:
    """Test files whose path starts with one of the patterns; all without patterns."""
    for pattern in patterns:
        if not any(test.startswith(f"tests/{pattern}") for test in tree.tests):
            raise SystemExit(f"No file of tests begins with {pattern}.")
    starts = tuple(f"tests/{pattern}" for pattern in patterns) or ("",)
    return [test for test in tree.tests if test.startswith(starts)]


class Run:
    """One run: the tree, its workers, and which tests pass on their own."""

    def __init__(self, tree: Belonging, hands: Workers, kept: Path, limit_s: float) -> None:
        self.tree, self.hands, self.limit_s = tree, hands, limit_s
        self.baseline = Baseline(tree, kept, hands.map, hands.imported)
        self.stamp = 1_000_000_000
        self.reliable: dict[str, bool] = {}

    def results(self, chosen: Sequence[Chosen], tests: Sequence[str] = ()) -> list[Result]:
        """The result of each mutant. `tests`: the files to use, by default all."""
        print(f"{len(chosen)} mutants; running the tests without changes first", flush=True)
        self.baseline.learn(tests or self.tree.tests)
        results: dict[int, Result] = {}
        remaining = list(range(len(chosen)))
        for _ in range(_RETRIES):
            results.update(zip(remaining, self._tried([chosen[i] for i in remaining]), strict=True))
            killers = {
                results[i].by for i in remaining if results[i].status == KILLED and "::" in results[i].by
            }
            self._check(sorted(killers - set(self.reliable)))
            remaining = [i for i in remaining if not self.reliable.get(results[i].by, True)]
            if not remaining:
                break
        return [results[i] for i in range(len(chosen))]

    def _tried(self, chosen: Sequence[Chosen]) -> list[Result]:
        jobs = [self._job(*one) for one in chosen]
        job_ids = [i for i, job in enumerate(jobs) if job["tests"]]
        start, n_done = time.monotonic(), [0]

        def done(at: int, answer: Job) -> None:
            module, mutant = chosen[job_ids[at]]
            n_done[0] += 1
            spent = f"[{n_done[0]}/{len(job_ids)} {time.monotonic() - start:.0f} s]"
            print(
                f"{spent} {answer['status']} {answer['seconds']} s: {module}:{mutant.line} {mutant.key}",
                flush=True,
            )

        answers = dict(zip(job_ids, self.hands.map([jobs[i] for i in job_ids], done), strict=True))
        return [
            Result(*one, answers[i]["status"], answers[i]["by"], answers[i]["seconds"], len(jobs[i]["tests"]))
            if i in answers
            else Result(*one, UNTESTED)
            for i, one in enumerate(chosen)
        ]

    def _job(self, module: str, mutant: Mutant) -> Job:
        tests = [
            test
            for test in self.baseline.chosen(module, mutant.function, self.limit_s)
            if self.reliable.get(test.name, True)
        ]
        self.stamp += 1
        return {
            "path": module,
            "source": mutated((self.tree.root / module).read_text("utf-8"), mutant.number),
            "alone": self.baseline.is_imported(module, mutant.function),
            "stamp": self.stamp,
            "tests": [test.name for test in tests],
            "timeout": _START_S + _SLOWER * sum(test.seconds for test in tests),
        }

    def _check(self, killers: Sequence[str]) -> None:
        """Check that tests which detected a mutant pass on their own without it; else they detected
        something else.
        """
        jobs = [{"tests": [name], "timeout": 300.0} for name in killers]
        for name, answer in zip(killers, self.hands.map(jobs), strict=True):
            self.reliable[name] = answer["status"] == "survived"
            if not self.reliable[name]:
                print(f"*** {name} does not pass on its own and is left out. ***", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print and write the report."""
    options = _options(arguments)
    tree = Belonging(ROOT)
    chosen = drawn(tree, matching(tree, options.modules), options.count, options.each, options.seed)
    equivalent = [] if options.recheck else [one for one in chosen if one[1].key in LISTED.get(one[0], {})]
    to_run = [one for one in chosen if one not in equivalent]
    if options.list:
        print("\n".join(f"{module}:{mutant.line}: {mutant.key}" for module, mutant in chosen))
        return 0
    start = time.monotonic()
    tests = chosen_tests(tree, options.tests)
    with workers(ROOT, options.jobs, tests) as hands:
        results = Run(tree, hands, ROOT / "build" / "mutate" / "tests", options.limit).results(to_run, tests)
    results += [Result(*one, EQUIVALENT) for one in equivalent]
    share = share_killed(results)
    text = (
        f"{table(results)}\n\n{survivors(results)}\n\n{share:.1%} killed in {time.monotonic() - start:.0f} s"
    )
    print(f"\n{text}")
    _write(options.out, text, results)
    return 1 if share < options.least or any(result.status == ERROR for result in results) else 0


def _write(out: Path, text: str, results: Sequence[Result]) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    out.with_suffix(".md").write_text(text + "\n", "utf-8")
    out.with_suffix(".json").write_text(
        json.dumps([result.as_json() for result in results], indent=1), "utf-8"
    )


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutate", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument(
        "--modules", nargs="*", default=[], help=f"prefixes of paths in {PACKAGE}, such as analysis/pod"
    )
    parser.add_argument(
        "--count", type=int, default=150, help="mutants to sample; 0: all mutants of the modules"
    )
    parser.add_argument("--each", type=int, default=5, help="mutants to sample per module")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--jobs", type=int, default=min(2, os.cpu_count() or 1), help="mutants to run at the same time"
    )
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of tests per mutant")
    parser.add_argument("--least", type=float, default=0.0, help="fail below this share")
    parser.add_argument(
        "--tests",
        nargs="*",
        default=[],
        help="prefixes of paths in tests to use instead of all, such as ingest/test_heap; mutants that only "
        "others detect survive",
    )
    parser.add_argument("--recheck", action="store_true", help="also run the mutants listed as equivalent")
    parser.add_argument("--list", action="store_true", help="print the sample without running it")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "mutate" / "report")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    if not hasattr(os, "fork"):
        sys.exit("Mutants run in forks, which this system does not support.")
    sys.exit(main())
