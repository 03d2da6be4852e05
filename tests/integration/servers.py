"""Jobs that train small steps behind a real profiler server of JAX or TensorFlow, each in a process of its
own.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tb_tpuprof.capture.targets import Target
from tests.capture.double import free_target
from tests.integration.jobs import environment, python_with

HERE = Path(__file__).parent


@contextmanager
def training(framework: str, *words: str) -> Iterator[Target]:
    """A job that trains when the block begins (`idle`: does nothing); the address of its profiler server."""
    target = Target("localhost", free_target().port)
    command = [python_with(framework), str(HERE / f"job_{framework}.py"), str(target.port), *words]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, env=environment(), text=True, **pipes)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n", f"{framework} did not start"
        yield target
    finally:
        process.kill()
        process.communicate()
