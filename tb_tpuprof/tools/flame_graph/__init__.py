"""flame_graph: which function takes the time, from the stacks of any threads."""
