"""The tf.data bottleneck analysis: `view.py` answers, `tables.py` declares its tables and numbers."""
