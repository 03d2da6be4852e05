"""The timeline: tracks, boxes, flows and counters, prepared so that any window of millions of events can be
drawn in milliseconds.

In: a `Trace`. Out: columns per layer. Start with `timeline.py`; `totals.py` answers questions
about a window.
"""
