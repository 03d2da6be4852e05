"""TensorFlow graphs: event files, SavedModels and GraphDefs in, `Graph` (see `trace/graph.py`) out. Start
with `files.py`.
"""
