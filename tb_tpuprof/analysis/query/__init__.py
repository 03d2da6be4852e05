"""The query line of the timeline: `dur>1ms name~^dot track:stream` → the events that match.

In: a text and a `Trace`. Out: matching events, their totals by group, and where they are in a picture. Start
with `grammar.py`, which defines the language; `matching.py` applies it to a trace.
"""
