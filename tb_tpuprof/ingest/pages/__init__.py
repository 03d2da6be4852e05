"""Finished pages that profilers of TensorFlow 2.2 and older saved (`HOST.overview_page.json`, `.pb`) → what
they state, as tables. Start with `reading.py`.
"""
