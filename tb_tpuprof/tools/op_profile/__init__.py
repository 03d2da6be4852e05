"""The op profile: `view.py` answers, `details.py` describes one operation."""
