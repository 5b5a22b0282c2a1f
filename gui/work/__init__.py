"""What the window works on: comparisons, ladders, profiles, their state, and the processes that do them."""
