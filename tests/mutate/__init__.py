"""Mutation runs: small changes of the meaning of `analysis/`, `tools/` and `serve/`, one at a time, each before the tests that
belong to it. What no test notices is a hole in the tests.

    python -m tests.mutate --modules analysis/pod --count 60 --seed 7

`mutants` makes the changes, `belonging` says which tests a module has, `baseline` which of them enter the changed
function, `worker` runs them in a copy of the tree, `report` prints what survived. `equivalent` lists, with reasons,
changes that change nothing that anybody could see.

mutmut and cosmic-ray were considered. Neither changes what matters here (sum over hosts, mean, `any`, axes of arrays),
and both start pytest anew for each change, or run all tests for it; a change takes a second or two here.
"""
