"""Stacks of calls → trees of time: which function takes how long, called by whom.

`stacks` merges a host's threads into one tree within chosen steps, `frames` says whose code each node is,
`nodes` cuts the tree to what a screen can show, `function` looks at one function from both sides, `calls`
keeps the order in time, and `modules` follows PyTorch's layers.
"""
