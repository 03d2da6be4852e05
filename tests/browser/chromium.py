"""Finds a Chromium or Chrome of this machine; as a program prints its path, or ends with 1 where there is
none.
"""

import os
import shutil
import sys

NAMES = (
    "chromium-headless-shell",  # a third less work for the same pages
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)


def find_chromium() -> str | None:
    """Path of the browser: `TPUPROF_CHROMIUM`, else the first of the usual names."""
    candidates = (os.environ.get("TPUPROF_CHROMIUM", ""), *NAMES)
    return next((path for name in candidates if name and (path := shutil.which(name))), None)


if __name__ == "__main__":
    found = find_chromium()
    print(found or "no Chromium was found")
    sys.exit(0 if found else 1)
