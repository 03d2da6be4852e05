"""TensorFlow graphs: event files, SavedModels and GraphDefs → `Graph` (see `trace/graph.py`). Start with
`files.py`.
"""
