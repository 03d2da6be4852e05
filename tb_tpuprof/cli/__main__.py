"""`python -m tb_tpuprof.cli`."""

import sys

from tb_tpuprof.cli import main

if __name__ == "__main__":
    sys.exit(main())
