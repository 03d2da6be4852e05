"""One request answered by this project on one core: `python -m bench.child_one_core REQUEST` -> a Sample as
JSON.
"""

from __future__ import annotations

import os

from bench.child_ours import main

if __name__ == "__main__":
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    main()
