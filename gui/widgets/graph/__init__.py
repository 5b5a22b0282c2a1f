"""A model as a graph: its boxes, where they lie, the view of them and its zoom."""
