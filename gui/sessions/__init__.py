"""What goes on behind the window: comparisons, ladders and profiles, their state, and the processes that do
them.
"""
