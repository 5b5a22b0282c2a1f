"""What is right: the float64 oracle, and the checks that compare answers, timed passes and layers with it."""
