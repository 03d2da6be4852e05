"""`python -m tb_tpuprof`, and the command `tpuprof`. Ctrl-C shows no traceback, not even during imports."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line; returns its exit code."""
    try:
        from tb_tpuprof.cli import main as run

        return run()
    except KeyboardInterrupt:
        sys.stderr.write("\ntpuprof: cancelled.\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
