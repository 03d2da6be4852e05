"""Perfetto's traces of track events (`.pftrace`) → the same raw events as from Chrome trace JSON.

Start at `decoder.py`. `packets.py` cuts a file into packets and orders them, `interned.py` looks up names
that a file stores once, `clocks.py` puts all times on one clock, `tracks.py` says which thread an event is
on, and `annotations.py` reads arguments.
"""
