"""`python -m tb_tpuprof`, and the commands `tpuprof` and `capture_tpu_profile`. Ctrl-C shows no traceback,
not even during imports or while the interpreter ends.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable


def main() -> int:
    """Run `tpuprof`; returns its exit code."""

    def run() -> int:
        from tb_tpuprof.cli import main

        return main()

    return _ended("tpuprof", run)


def capture_tpu_profile() -> int:
    """Run `capture_tpu_profile`; returns its exit code."""

    def run() -> int:
        from tb_tpuprof.cli.capture_tpu_profile import main

        return main()

    return _ended("capture_tpu_profile", run)


def _ended(name: str, run: Callable[[], int]) -> int:
    try:
        return run()
    except KeyboardInterrupt:
        sys.stderr.write(f"\n{name}: cancelled.\n")
        return 130
    finally:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # from here on, only the interpreter has to end


if __name__ == "__main__":
    sys.exit(main())
