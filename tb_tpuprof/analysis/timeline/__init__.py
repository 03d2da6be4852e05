"""The timeline: tracks, boxes, flows and counters, prepared so that any window of millions of events can be
drawn in milliseconds.

In: a `Trace`. Out: columns per layer. Start with `timeline.py`; `search.py` and `totals.py` answer questions
about a window.
"""
