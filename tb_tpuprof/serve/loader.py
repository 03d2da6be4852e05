"""TensorBoard's entry point: chooses the plugin's name, then creates the plugin. Importing this module is
cheap.
"""

from __future__ import annotations

import argparse
import contextlib
from importlib import metadata
from typing import Any

from tensorboard.plugins import base_plugin

NAME, TAB = "profile", "Profile"
OTHER_NAME, OTHER_TAB = "tpuprof", "Profile (tpuprof)"
_OWN_PACKAGE = "tb_tpuprof"
_PEERS = ("xprof", "tensorboard_plugin_profile")
_FLAGS = (
    (
        "tpuprof_capture",
        "on|off",
        "Whether running jobs may be profiled from the page (default: the environment variable "
        "TPUPROF_CAPTURE, else on).",
    ),
    (
        "tpuprof_capture_targets",
        "PATTERNS",
        "Which targets may be profiled from the page: patterns of host:port separated by commas, such as "
        "localhost:*,*.internal:8466 (default: TPUPROF_CAPTURE_TARGETS, else all).",
    ),
    (
        "tpuprof_allowed_hosts",
        "NAMES",
        "Names, separated by commas, under which browsers reach this server, such as that of a proxy "
        "(default: TPUPROF_ALLOWED_HOSTS). A server bound to localhost otherwise answers only to localhost "
        "and IP addresses, which keeps other sites' pages out (DNS rebinding).",
    ),
    (
        "tpuprof_executor",
        "threads|processes|auto|dask://HOST:PORT",
        "Where runs of many hosts are analyzed (default: TPUPROF_EXECUTOR, else auto: processes for more "
        "than 16 hosts).",
    ),
    (
        "master_tpu_unsecure_channel",
        "ADDR",
        "Initial address in the page's capture dialog: host:port, or several.",
    ),
)


class ProfileLoader(base_plugin.TBLoader):  # type: ignore[misc]
    """Loads the plugin as `profile`, or as `tpuprof` where another installed distribution has that name
    already.
    """

    def define_flags(self, parser: argparse.ArgumentParser) -> None:
        """TensorBoard's flags for capturing and for reading many hosts."""
        group = parser.add_argument_group("profiler (tb_tpuprof)")
        for name, metavar, text in _FLAGS:
            # Another profile plugin may have defined the flag: the first one defines it, all of them read it.
            with contextlib.suppress(argparse.ArgumentError):
                group.add_argument(f"--{name}", metavar=metavar, type=str, default="", help=text)

    def load(self, context: Any) -> Any:
        """The plugin, for TensorBoard's context of flags and logdir."""
        from tb_tpuprof.serve.plugin import make_plugin

        name, tab = (OTHER_NAME, OTHER_TAB) if is_name_taken() else (NAME, TAB)
        return make_plugin(context, name, tab)


def is_name_taken() -> bool:
    """Whether another installed distribution registers a TensorBoard plugin that calls itself `profile`.

    Two plugins of one name keep TensorBoard from starting. Nothing is imported: the entry points name their
    modules.
    """
    for entry_point in metadata.entry_points(group="tensorboard_plugins"):
        package = entry_point.value.split(":")[0].split(".")[0]
        if package != _OWN_PACKAGE and (package in _PEERS or entry_point.name == NAME):
            return True
    return False
