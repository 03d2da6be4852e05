"""The tf.data bottleneck analysis: `view.py` answers, `tables.py` declares what the answer holds."""
