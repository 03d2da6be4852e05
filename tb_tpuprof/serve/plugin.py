"""The TensorBoard plugin: its name, whether it has something to show, and its routes."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

from tensorboard.plugins import base_plugin

from tb_tpuprof.ingest.storage.runs import has_runs
from tb_tpuprof.serve.hosts import HostRules
from tb_tpuprof.serve.logdirs import Logdirs
from tb_tpuprof.serve.routes import Routes
from tb_tpuprof.serve.rules import CaptureRules

_RECHECK_SECONDS = 10.0
_FIRST_ANSWER_SECONDS = 0.2


def make_plugin(context: Any, name: str, tab: str) -> base_plugin.TBPlugin:
    """The plugin under a name; TensorBoard reads the name from the class, so each name has its own."""
    return type("ProfilePlugin", (_Plugin,), {"plugin_name": name, "tab_name": tab})(context)


class _Plugin(base_plugin.TBPlugin):  # type: ignore[misc]
    tab_name = ""

    def __init__(self, context: Any) -> None:
        flags = getattr(context, "flags", None)
        self.logdirs = Logdirs.of(context.logdir or "", getattr(flags, "logdir_spec", "") or "")
        self._rules = CaptureRules.of(flags)
        self._hosts = HostRules.of(flags)
        self._executor = str(
            getattr(flags, "tpuprof_executor", "") or ""
        )  # empty: as the environment says, else auto
        self._watch = RunWatch(self.logdirs)

    def get_plugin_apps(self) -> Mapping[str, Any]:
        """WSGI applications by route."""
        return Routes(self.logdirs, self.plugin_name, self._rules, self._executor, self._hosts).apps()

    def is_active(self) -> bool:
        """Whether there is something to do: a profile can be captured, or the logdir has runs, as far as is
        known.

        TensorBoard hides an inactive plugin in a menu, where nobody looks for how to make a first profile.
        """
        return not self._rules.reason or self._watch.is_active()

    def frontend_metadata(self) -> base_plugin.FrontendMetadata:
        """Where TensorBoard finds the page, and the tab's name."""
        return base_plugin.FrontendMetadata(
            es_module_path="/index.js", tab_name=self.tab_name, disable_reload=True
        )


class RunWatch:
    """Searches for a first profile run in the background; until one is found, calls search again every ten
    seconds.
    """

    def __init__(self, logdirs: Logdirs) -> None:
        self._logdirs = logdirs
        self._has_runs: bool | None = None
        self._thread: threading.Thread | None = None
        self._checked_at = 0.0
        self._lock = threading.Lock()

    def is_active(self) -> bool:
        """Whether there is a run. True while unknown: an open tab that says what is missing is better than
        a hidden one.
        """
        if not self._has_runs:
            thread = self._start()
            if self._has_runs is None and thread:
                thread.join(_FIRST_ANSWER_SECONDS)
        return self._has_runs is not False

    def _start(self) -> threading.Thread | None:
        with self._lock:
            is_running = self._thread is not None and self._thread.is_alive()
            if not is_running and (
                self._has_runs is None or time.monotonic() - self._checked_at > _RECHECK_SECONDS
            ):
                self._checked_at = time.monotonic()
                self._thread = threading.Thread(target=self._look, name="tb_tpuprof run search", daemon=True)
                self._thread.start()
            return self._thread

    def _look(self) -> None:
        try:
            self._has_runs = any(has_runs(path) for _, path in self._logdirs.paths)
        except Exception:  # whatever the file system's driver raises; a later call searches again
            self._has_runs = False
