"""From an ONNX file to a plan: importing, checks, groups of nodes, the planner and its memory."""
