"""The roofline model: `view.py` answers, `tables.py` declares what the answer holds."""
