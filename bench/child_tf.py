"""One request answered by TensorFlow's own profiler in a fresh process: the last peer that still had the
tf.data analysis.
"""

from __future__ import annotations

import glob
import gzip
import os
import sys

from tensorflow.python.profiler.internal import _pywrap_profiler

from bench.requests import Answer, measured, read_request, write_sample

GZIP_LEVEL = 9


def main() -> None:
    """Answer one request."""
    request = read_request(sys.argv)
    files = sorted(glob.glob(os.path.join(request.run_dir, "*.xplane.pb")))

    def ask(_window: tuple[float, float] | None, _search: str) -> Answer:
        body, is_success = _pywrap_profiler.xspace_to_tools_data(files, request.tool)
        if not is_success:
            raise SystemExit(f"no answer for {request.tool}")
        return Answer(body if isinstance(body, bytes) else body.encode())

    write_sample(measured(request, ask, lambda body: gzip.compress(body, GZIP_LEVEL)))


if __name__ == "__main__":
    main()
