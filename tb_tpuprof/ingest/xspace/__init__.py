"""XSpace files (`.xplane.pb`) → planes, lines, events and stats as columns.

Start with `decoder.py`, which uses the compiled reader; `protobuf.py` is the plain one.
"""
