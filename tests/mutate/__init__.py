"""Mutation testing of `analysis/`, `tools/` and `serve/`, and of any other module that is named: small
semantic changes, one at a time, run against the tests. A mutant that every test passes is a gap in the tests.

    python -m tests.mutate --modules analysis/pod --count 60 --seed 7

`mutants` makes the changes, `belonging` maps modules to tests, `baseline` records which functions each test
enters, `worker` runs the tests in a copy of the tree, and `report` lists the survivors. `equivalent` lists,
with reasons, mutants that behave like the original.

mutmut and cosmic-ray were considered. Neither mutates what matters here (sums over hosts, means, `any`, axes
of arrays), and both run all tests, or start pytest again, for each mutant; here a mutant takes about a
second.
"""
