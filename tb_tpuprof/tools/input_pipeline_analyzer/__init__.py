"""The input pipeline analyzer: `view.py` answers, `declared.py` declares its tables, `tables.py` fills them;
`torch_loader.py` does both for PyTorch's DataLoader.
"""
