"""TensorBoard's --logdir and --logdir_spec → the folders to look for runs in, and the run behind a name."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tb_tpuprof.errors import ProfilerError, RunNotFound
from tb_tpuprof.ingest.storage.run_info import RunInfo
from tb_tpuprof.ingest.storage.runs import find_run, find_runs


@dataclass(frozen=True)
class Logdirs:
    """(name, path) of each folder; the name, empty for --logdir, goes before the names of its runs."""

    paths: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, logdir: str, spec: str) -> Logdirs:
        """From the two flags; the spec is `name:path` or `path`, separated by commas."""
        if logdir:
            return cls((("", logdir),))
        paths = []
        for part in (part.strip() for part in spec.split(",")):
            name, colon, path = part.partition(":")
            is_named = bool(colon) and not path.startswith("//") and "/" not in name
            if part:
                paths.append((name, path) if is_named else ("", part))
        return cls(tuple(paths))

    def runs(self) -> list[RunInfo]:
        """All runs of all folders, newest first."""
        runs = [_named(run, name) for name, path in self.paths for run in find_runs(path)]
        return sorted(runs, key=lambda run: (run.captured_at, run.name), reverse=True)

    def run(self, name: str) -> RunInfo:
        """The run of that name. Raises RunNotFound."""
        last: ProfilerError = RunNotFound(name)
        for prefix, path in self.paths:
            if prefix and not name.startswith(prefix + "/"):
                continue
            try:
                return _named(find_run(path, name.removeprefix(prefix + "/") if prefix else name), prefix)
            except RunNotFound as error:
                last = error
        raise last


def _named(run: RunInfo, prefix: str) -> RunInfo:
    return replace(run, name=f"{prefix}/{run.name}") if prefix else run
