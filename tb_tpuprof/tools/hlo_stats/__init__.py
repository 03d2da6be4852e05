"""The HLO stats: `view.py` answers, `tables.py` declares the answer's tables and numbers."""
