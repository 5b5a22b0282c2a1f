"""What is right: the float64 oracle, and answers, timed passes and layers held against it."""
