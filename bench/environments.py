"""Which Python runs what: this project here, the peers and JAX in environments of their own under `.bench/`.

`TPUPROF_PEER_PYTHON`, `TPUPROF_TF_PYTHON` and `TPUPROF_ML_PYTHON` name interpreters that exist already; otherwise they are made
on first use.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORK_DIR = ROOT / ".bench"
PEER_REQUIREMENTS = ("xprof==2.24.2",)
TF_REQUIREMENTS = ("tensorflow-cpu==2.18.1",)
ML_REQUIREMENTS = ("jax==0.10.2",)


def work_dir() -> Path:
    """The folder of environments, traces and caches; it ignores itself in git."""
    WORK_DIR.mkdir(exist_ok=True)
    ignore = WORK_DIR / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n")
    return WORK_DIR


def peer_python(peer: str = "peer") -> str:
    """The interpreter that has xprof or, for the peer `tf`, an old TensorFlow."""
    if peer == "tf":
        return os.environ.get("TPUPROF_TF_PYTHON") or _made("tf", TF_REQUIREMENTS)
    return os.environ.get("TPUPROF_PEER_PYTHON") or _made("peer", PEER_REQUIREMENTS)


def ml_python() -> str:
    """The interpreter that has JAX."""
    return os.environ.get("TPUPROF_ML_PYTHON") or _made("ml", ML_REQUIREMENTS)


def versions(python: str, packages: tuple[str, ...]) -> dict[str, str]:
    """Versions of Python and of the packages in another interpreter."""
    code = (
        "import sys, platform; from importlib.metadata import version;"
        "print(platform.python_version(), *(version(name) for name in sys.argv[1:]))"
    )
    found = subprocess.run([python, "-c", code, *packages], check=True, capture_output=True, text=True).stdout.split()
    return dict(zip(("Python", *packages), found, strict=True))


def _made(name: str, requirements: tuple[str, ...]) -> str:
    folder = work_dir() / name
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    done = folder / ".installed"
    if not done.exists():
        print(f"installing {', '.join(requirements)} into {folder.relative_to(ROOT)}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *requirements], check=True)
        done.write_text("\n".join(requirements))
    return str(python)
