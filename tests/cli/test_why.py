"""`tpuprof why`: why the steps of a run are slow, as text, JSON and Markdown, and for one step."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tb_tpuprof.cli import main
from tb_tpuprof.tools.why import explain
from tests.xspace_files import write_drawing

# Steps of 32, 22 and 23 ms: one compiles and computes, one dispatches and sleeps, one waits for data and is
# called back.
UNLIKE = """
main  [train                         ][train               ][train                ]
main   [u                           ]  [u                 ]  [v        ] [u      ]
main    [g              ]  [d   ]       [g    ] [s     ]      [n     ]    [k   ]
main      [c       ]                             [d  ]          [b ]       [v]
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TPUPROF_CACHE_DIR", str(tmp_path / "cache"))
    folder = tmp_path / "run"
    folder.mkdir()
    write_drawing(folder / "w.xplane.pb", UNLIKE)
    return folder


def why(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main(["why", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_text_leads_with_the_verdict_and_lists_findings_and_causes(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = why(capsys, run).splitlines()
    assert "grow" in lines[0]
    assert "`" not in "\n".join(lines)
    (compilation,) = [line for line in lines if line[:2] == "1."]
    assert compilation.startswith("1. Compilation: ")
    numbers = [line.split(".")[0] for line in lines if line[:1].isdigit()]
    assert numbers == [str(i + 1) for i in range(len(numbers))]
    at = next(i for i, line in enumerate(lines) if "(3 steps)" in line)
    assert "25.7 ms" in lines[at]
    causes = {line.split(maxsplit=3)[-1]: line.split()[0] for line in lines[at + 1 :]}
    # Of 77 ms: 21, 17, 11, 8, 7, 7 and 6.
    assert causes == {
        "Python": "27.3%",
        "Compilation": "22.1%",
        "Compute": "14.3%",
        "Input": "10.4%",
        "Dispatch": "9.09%",
        "Not recorded": "9.09%",
        "Callbacks": "7.79%",
    }
    text = "\n".join(lines)
    for words in (
        "What to do: ",
        "Expected gain if fully fixed: ",
        "Confidence: high",
        "Why: ",
        "update (mine.py:40)",
    ):
        assert words in text


def test_json_holds_the_whole_diagnosis(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(why(capsys, run, "--format", "json"))
    assert found == json.loads(json.dumps(explain(str(run))))
    assert (found["level"], found["n_steps"]) == ("bad", 3)
    assert found["step_time_ps"] == pytest.approx(77e9 / 3)
    first = found["findings"][0]
    assert (first["cause"], first["culprit"]["name"], first["docs"]) == (
        "compilation",
        "grow",
        "causes/compilation",
    )
    assert first["gain_ps"] == pytest.approx([0.9 * 17e9 / 3, 17e9 / 3])
    assert sum(one["time_ps"] for one in found["causes"]) == pytest.approx(found["step_time_ps"])
    assert {one["cause"] for one in found["causes"]} == {
        "compilation", "python", "device_compute", "input", "dispatch", "not_recorded", "callbacks",
    }  # fmt: skip
    without = next(one for one in found["findings"] if one["cause"] == "not_recorded")
    assert without["gain_ps"] is None


def test_markdown_has_a_section_a_finding_and_a_table_of_causes(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = why(capsys, run, "--format", "md")
    assert text.startswith("**")
    assert "### 1. Compilation" in text
    assert "```python\n" in text
    assert "| Compute | 3.67 ms | 14.3% |" in text
    assert text.count("```") % 2 == 0


@pytest.mark.parametrize("step", ["2", "train 2"])
def test_one_step_by_its_number_or_name(run: Path, capsys: pytest.CaptureFixture[str], step: str) -> None:
    found = json.loads(why(capsys, run, "--step", step, "--format", "json"))
    assert (found["step_time_ps"], found["n_steps"]) == (23e9, 1)
    assert {one["cause"]: one["time_ps"] for one in found["causes"]} == {
        "input": 8e9, "callbacks": 6e9, "python": 6e9, "not_recorded": 3e9,
    }  # fmt: skip


@pytest.mark.parametrize("step", ["3", "train", "eval 2", "-1", "two"])
def test_a_step_that_is_none_is_said_with_those_that_are(
    run: Path, capsys: pytest.CaptureFixture[str], step: str
) -> None:
    assert main(["why", str(run), f"--step={step}"]) == 2
    captured = capsys.readouterr()
    assert not captured.out
    for words in ("step", step, "train 0", "train 2"):
        assert words in captured.err


def test_a_run_without_steps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_drawing(tmp_path / "w.xplane.pb", "main  [u   ][d  ]")
    assert "No steps" in why(capsys, tmp_path)
    assert json.loads(why(capsys, tmp_path, "--format", "json"))["level"] == "unknown"
    assert main(["why", str(tmp_path), "--step", "0"]) == 2
    assert "no steps" in capsys.readouterr().err


def test_hosts_are_chosen_and_what_is_none_is_said(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_drawing(
        run / "x.xplane.pb", "main  [train   ][train     ][train    ]\nmain   [d     ]  [d      ]  [d     ]"
    )
    assert json.loads(why(capsys, run, "--format", "json"))["step_time_ps"] == pytest.approx(
        (77e9 + 33e9) / 6
    )
    alone = json.loads(why(capsys, run, "--host", "x", "--format", "json"))
    assert alone["step_time_ps"] == pytest.approx(11e9)
    assert {one["cause"] for one in alone["causes"]} == {"device_compute", "not_recorded"}
    assert main(["why", str(run), "--host", "y"]) == 4
    assert "y" in capsys.readouterr().err


@pytest.mark.parametrize("format_", ["text", "md"])
def test_names_of_a_trace_do_not_steer_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], format_: str
) -> None:
    drawn = (
        "main  [train          ][train             ][train      ]\nmain   [u       ] [d]  [u         ] "
        "[d]    [u    ][d]"
    )
    write_drawing(tmp_path / "w.xplane.pb", drawn, {"u": "$mine\x1b[31m.py:4 up\x07date"})
    text = why(capsys, tmp_path, "--format", format_)
    assert "date" in text
    assert "\x1b" not in text
    assert "\x07" not in text


def test_wrong_usage(run: Path) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["why", str(run), "--format", "csv"])
    assert caught.value.code == 2
    assert main(["why", str(run / "none")]) == 4
