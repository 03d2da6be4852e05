"""XSpace files (`.xplane.pb`): bytes in, planes, lines, events and stats as columns out.

Start with `decoder.py`, which uses the compiled reader; `protobuf.py` is the plain one.
"""
