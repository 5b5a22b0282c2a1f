"""From a graph to a plan for a device: which nodes are one step, which kernel and which rung each step takes,
and nodes taken out of their model alone."""
