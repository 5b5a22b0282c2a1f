"""What runs behind the window: comparisons, ladders and profiles, their states, and the processes that do
the work."""
