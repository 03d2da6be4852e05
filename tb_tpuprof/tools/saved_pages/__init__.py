"""saved_pages: what finished pages of an older profiler state. Start with `view.py`."""
