"""`tpuprof why RUN_DIR`: why the steps of a run are slow, as text, JSON or Markdown."""

from __future__ import annotations

import argparse
import json
import sys

from tb_tpuprof.analysis.diagnosis.finding import Diagnosis, Finding
from tb_tpuprof.cli.reading import reading
from tb_tpuprof.encode.text import printable
from tb_tpuprof.session import Session
from tb_tpuprof.tools.verdicts import FULL_GAIN, gain_text
from tb_tpuprof.tools.why import diagnosis, plain
from tb_tpuprof.units import counted, format_fraction, format_time


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the subcommand."""
    parser = subparsers.add_parser("why", help="say why the steps of a run are slow, and what to do")
    parser.add_argument(
        "run_dir",
        metavar="RUN_DIR",
        help="folder with *.xplane.pb or *.trace.json files, or a single such file",
    )
    parser.add_argument("--host", action="append", default=[], metavar="H", help="a host; may be repeated")
    parser.add_argument("--step", default="", metavar="N", help="explain one step: its number or its name")
    parser.add_argument(
        "--format", choices=("text", "json", "md"), default="text", help="default: %(default)s"
    )
    parser.add_argument("--no-cache", action="store_true", help="do not use the caches on disk")
    parser.set_defaults(run_command=run_command, reads_traces=True)


def run_command(arguments: argparse.Namespace) -> str:
    """The diagnosis, encoded."""
    session = Session(arguments.run_dir, cache=not arguments.no_cache)
    with reading(session, sys.stderr):
        result = diagnosis(session, arguments.host, arguments.step)
    if arguments.format == "json":
        return json.dumps(plain(result), indent=1) + "\n"
    n_hosts = len(arguments.host or session.hosts)
    return printable(_markdown(result) if arguments.format == "md" else _text(result, n_hosts))


def _bare(text: str) -> str:
    return text.replace("`", "")


def _text(result: Diagnosis, n_hosts: int) -> str:
    lines = [_bare(result.text)]
    for number, finding in enumerate(result.findings, 1):
        lines += ["", f"{number}. {finding.cause.label}: {_bare(finding.sentence)}"]
        lines += [f"   {name}: {_bare(value)}" for name, value in _facts(finding) if value]
        lines += [f"       {line}" for line in finding.snippet.splitlines()]
    if result.causes:
        steps = counted(result.n_steps, "step")
        steps = f"mean over all steps of {n_hosts:,} hosts" if n_hosts > 1 and result.n_steps > 1 else steps
        lines += ["", f"Where a step of {format_time(result.step_time_ps)} goes ({steps}):"]
        lines += [
            f"  {format_fraction(cause.share):>8}  {format_time(cause.time_ps):>9}  {cause.cause.label}"
            for cause in result.causes
        ]
    return "\n".join([*lines, *(["", result.note] if result.note else [])]) + "\n"


def _facts(finding: Finding) -> list[tuple[str, str]]:
    """All facts of a finding except its sentence, by name."""
    return [
        ("Why", finding.reason),
        (FULL_GAIN, gain_text(finding.gain_ps)),
        ("Evidence", "; ".join(item.text for item in finding.evidence)),
        ("Confidence", finding.confidence),
        ("Capture with", finding.capture_option),
        ("What to do", finding.fix),
    ]


def _markdown(result: Diagnosis) -> str:
    lines = [f"**{result.text}**"]
    for number, finding in enumerate(result.findings, 1):
        lines += ["", f"### {number}. {finding.cause.label}", "", finding.sentence, ""]
        lines += [f"- {name}: {value}" for name, value in _facts(finding) if value]
        if finding.snippet:
            lines += ["", "```python", finding.snippet, "```"]
    if result.causes:
        lines += ["", "| cause | time per step | share |", "|---|---|---|"]
        lines += [
            f"| {cause.cause.label} | {format_time(cause.time_ps)} | {format_fraction(cause.share)} |"
            for cause in result.causes
        ]
    return "\n".join([*lines, *(["", result.note] if result.note else [])]) + "\n"
