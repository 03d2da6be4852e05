"""Every rule: its cause, its documentation page, its claims and fixes, and little evidence."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.rules import rules
from tb_tpuprof.analysis.diagnosis.step_calls import EAGER
from tb_tpuprof.analysis.diagnosis.wording import fix_for
from tb_tpuprof.analysis.events.frameworks import JAX, PYTORCH, SERVING, TENSORFLOW, UNKNOWN
from tests.analysis.diagnosis.drawn import calls, evidence, part

DOCS = Path(__file__).resolve().parents[3] / "docs"


def test_there_is_a_rule_for_every_cause() -> None:
    assert {one.cause for one in rules()} == set(Cause)
    for cause in Cause:
        assert import_module(f"tb_tpuprof.analysis.diagnosis.rules.{cause.value}").RULE in rules()


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.cause.value)
def test_each_rule_has_its_page_its_title_and_claims_that_compile(rule) -> None:  # type: ignore[no-untyped-def]
    assert rule.cause.label
    assert rule.cause.label[0].isupper()
    page = DOCS / "causes" / f"{rule.cause.value}.md"
    assert page.is_file()
    assert page.read_text("utf-8").startswith("# ")
    for claim in rule.claims:
        assert re.compile(claim.pattern).fullmatch("") is None
        assert 1 <= claim.strength <= 4


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.cause.value)
@pytest.mark.parametrize("framework", [JAX, TENSORFLOW, PYTORCH, UNKNOWN])
def test_no_rule_fails_on_empty_evidence_or_finds_anything_there(rule, framework: str) -> None:  # type: ignore[no-untyped-def]
    assert list(rule.find(evidence(framework=framework))) == []
    assert list(rule.find(evidence(framework=framework, steps_us=()))) == []
    assert list(rule.find(evidence(framework=framework, steps_us=(7,)))) == []


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.cause.value)
@pytest.mark.parametrize("framework", [JAX, TENSORFLOW, PYTORCH, SERVING, UNKNOWN])
def test_no_rule_fails_on_bare_parts_of_its_cause(rule, framework: str) -> None:  # type: ignore[no-untyped-def]
    """Parts without culprit, caller or call, as of devices' own steps."""
    given = evidence(
        part(rule.cause, 10, 20, 30), framework=framework, has_python=False, calls=calls(EAGER, Mul=[9, 9, 9])
    )
    for one in rule.find(given):
        assert one.cause == rule.cause
        assert 0 <= one.share <= 1
        assert not one.gain_ps or 0 <= one.gain_ps[0] <= one.gain_ps[1] <= given.step_ps
        assert one.docs == f"causes/{rule.cause.value}"
        assert "``" not in one.sentence


def test_fixes_are_in_the_terms_of_the_framework() -> None:
    for name in (
        "python",
        "input",
        "compilation",
        "dispatch",
        "callbacks",
        "synchronization",
        "transfers",
        "communication",
        "periodic",
    ):
        fixes = import_module(f"tb_tpuprof.analysis.diagnosis.rules.{name}").FIXES
        framework_fixes = {
            framework: fix_for(fixes, evidence(framework=framework))
            for framework in (JAX, TENSORFLOW, PYTORCH, SERVING, UNKNOWN)
        }
        assert all(fix.text for fix in framework_fixes.values()), name
        assert framework_fixes[SERVING] == framework_fixes[TENSORFLOW]
        assert framework_fixes[UNKNOWN] == fixes[""]
        assert set(fixes) <= {JAX, TENSORFLOW, PYTORCH, ""}


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.cause.value)
@pytest.mark.parametrize("kind", ["CPU", "GPU", "TPU"])
def test_no_rule_finds_anything_on_a_host_without_parts(rule, kind: str) -> None:  # type: ignore[no-untyped-def]
    assert list(rule.find(evidence(kind=kind))) == []
