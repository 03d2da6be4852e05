"""The workflows on GitHub: their commands and paths are those of this checkout."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
MADE = {".venv"}  # by make


def steps(workflow: Path) -> list[dict[str, Any]]:
    jobs = yaml.safe_load(workflow.read_text("utf-8"))["jobs"]
    return [step for job in jobs.values() for step in job["steps"]]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_is_well_formed(workflow: Path) -> None:
    content = yaml.safe_load(workflow.read_text("utf-8"))
    assert content["name"] == workflow.stem
    assert content[True], "YAML takes the key `on` for a boolean"
    for step in steps(workflow):
        assert ("run" in step) != ("uses" in step), step
        if "run" in step:
            subprocess.run(["bash", "-n"], input=step["run"], text=True, check=True)


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_commands_and_paths_exist(workflow: Path) -> None:
    scripts = "\n".join(str(step.get("run", "")) for step in steps(workflow))
    for words in re.findall(r"\bmake ((?:[a-z]+ ?)+)", scripts):
        assert set(words.split()) <= TARGETS
    for path in re.findall(r"(?<![\w./-])[\w.]+/[\w./]*\w", scripts):
        folder = path.partition("/")[0]
        assert folder in MADE or (ROOT / path).exists(), path


def test_every_night_the_decoder_is_fuzzed_with_sanitizers() -> None:
    *_, compiled, fuzzed = steps(ROOT / ".github" / "workflows" / "nightly.yml")
    assert "-fsanitize=address,undefined" in compiled["env"]["CFLAGS"]
    assert "build_ext --inplace --force" in compiled["run"]
    assert "libasan.so" in fuzzed["run"]
    assert "make fuzz TIME=" in fuzzed["run"]
