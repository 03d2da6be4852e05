"""TensorBoard's flags for capturing, read by a real parser, also together with other plugins that define
one of them.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.environments import peer_if_any
from tb_tpuprof.serve.loader import ProfileLoader
from tb_tpuprof.serve.rules import CaptureRules

ROOT = Path(__file__).resolve().parents[2]
GIVEN = [
    "--master_tpu_unsecure_channel",
    "h:8466",
    "--tpuprof_capture=off",
    "--tpuprof_capture_targets",
    "a:*,b:1",
]


class Other:
    """Another profile plugin, which defines its flag as the known ones do."""

    def define_flags(self, parser: argparse.ArgumentParser) -> None:
        group = parser.add_argument_group("profile plugin")
        with contextlib.suppress(argparse.ArgumentError):
            group.add_argument(
                "--master_tpu_unsecure_channel", metavar="ADDR", type=str, default="", help="x"
            )


@pytest.mark.parametrize(
    "loaders", [[ProfileLoader()], [ProfileLoader(), Other()], [Other(), ProfileLoader()]], ids=len
)
def test_flags_beside_another_plugin(loaders: list[ProfileLoader | Other]) -> None:
    parser = argparse.ArgumentParser()
    for loader in loaders:
        loader.define_flags(parser)
    rules = CaptureRules.of(parser.parse_args(GIVEN))
    assert rules.default_targets == "h:8466"
    assert rules.allowed_targets == ("a:*", "b:1")
    assert rules.reason
    assert CaptureRules.of(parser.parse_args([])) == CaptureRules()
    assert parser.format_help().count("--master_tpu_unsecure_channel ADDR") >= 1


PROGRAM = """
import sys
from tensorboard import default, program
from tb_tpuprof.serve.loader import ProfileLoader
given = sys.argv[2:]
mine, peer = [ProfileLoader], []
if sys.argv[1] != "alone":
    from xprof.profile_plugin_loader import ProfilePluginLoader
    peer = [ProfilePluginLoader]
order = {"alone": mine, "before": mine + peer, "after": peer + mine}[sys.argv[1]]
board = program.TensorBoard(default.get_static_plugins() + order)
board.configure(["tensorboard", "--logdir", "x", *given])
from tb_tpuprof.serve.rules import CaptureRules
print(CaptureRules.of(board.flags))
"""


@pytest.mark.parametrize(
    "order", ["alone", *(pytest.param(order, marks=pytest.mark.slow) for order in ("before", "after"))]
)
def test_tensorboards_own_parser(order: str) -> None:
    python = sys.executable if order == "alone" else peer_if_any()
    if not python:
        pytest.skip("*** NOT RUN: no interpreter has xprof; name one in TPUPROF_PEER_PYTHON. ***")
    done = subprocess.run(
        [python, "-c", PROGRAM, order, *GIVEN],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "default_targets='h:8466'" in done.stdout
    assert "allowed_targets=('a:*', 'b:1')" in done.stdout
