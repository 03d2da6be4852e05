"""Which Python runs what: this project here, the peers and JAX in environments of their own under `.bench/`.

`TPUPROF_PEER_PYTHON`, `TPUPROF_TF_PYTHON` and `TPUPROF_ML_PYTHON` name interpreters that exist already;
otherwise they are made on first use. `python -m bench.environments` makes those that tests use: what cannot
be had here is said, and its tests are skipped.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORK_DIR = ROOT / ".bench"
_PYTHON = "Scripts/python.exe" if os.name == "nt" else "bin/python"
_DONE = ".installed"
PEER_REQUIREMENTS = ("xprof==2.24.2", "tensorboard>=2.20")
TF_REQUIREMENTS = ("tensorflow-cpu==2.18.1",)
ML_REQUIREMENTS = ("jax==0.10.2", "tensorflow-cpu==2.21.0", "tensorboard>=2.20")


def work_dir() -> Path:
    """The folder of environments, traces and caches; it ignores itself in git."""
    WORK_DIR.mkdir(exist_ok=True)
    ignore = WORK_DIR / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n")
    return WORK_DIR


def peer_python(peer: str = "peer") -> str:
    """The interpreter that has xprof or, for the peer `tf`, an old TensorFlow; this one for the peer
    `one_core`.
    """
    if peer == "one_core":
        return sys.executable
    if peer == "tf":
        return os.environ.get("TPUPROF_TF_PYTHON") or _made("tf", TF_REQUIREMENTS)
    return os.environ.get("TPUPROF_PEER_PYTHON") or _made("peer", PEER_REQUIREMENTS)


def ml_python() -> str:
    """The interpreter that has JAX."""
    return os.environ.get("TPUPROF_ML_PYTHON") or _made("ml", ML_REQUIREMENTS)


def peer_if_any() -> str:
    """The interpreter that has xprof if there is one already, else empty."""
    interpreter = work_dir() / "peer" / _PYTHON
    named = os.environ.get("TPUPROF_PEER_PYTHON") or (
        str(interpreter) if (work_dir() / "peer" / _DONE).exists() else ""
    )
    return named if named and Path(named).exists() else ""


def versions(python: str, packages: tuple[str, ...]) -> dict[str, str]:
    """Versions of Python and of the packages in another interpreter."""
    code = (
        "import sys, platform; from importlib.metadata import version;"
        "print(platform.python_version(), *(version(name) for name in sys.argv[1:]))"
    )
    listing = subprocess.run(
        [python, "-c", code, *packages], check=True, capture_output=True, text=True
    ).stdout.split()
    return dict(zip(("Python", *packages), listing, strict=True))


def _made(name: str, requirements: tuple[str, ...]) -> str:
    folder = work_dir() / name
    python = folder / _PYTHON
    done = folder / _DONE
    if not done.exists() or done.read_text() != "\n".join(requirements):
        print(f"installing {', '.join(requirements)} into {folder.relative_to(ROOT)}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        # Modules are compiled when they are first imported: most of TensorFlow's never are.
        install = [str(python), "-m", "pip", "install", "--quiet", "--no-compile", *requirements]
        subprocess.run(install, check=True)
        done.write_text("\n".join(requirements))
    return str(python)


def main() -> None:
    """Create the environments of tests with real servers and with the peer."""
    for make in (ml_python, peer_python):
        try:
            make()
        except subprocess.CalledProcessError as error:
            print(
                f"*** {make.__name__}: not installed here ({error}); the tests that need it are skipped. ***",
                file=sys.stderr,
            )


if __name__ == "__main__":
    main()
