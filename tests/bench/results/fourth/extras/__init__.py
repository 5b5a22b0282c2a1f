"""Beside the satellites that there are, for a while (`tests.bench.results.fourth`)."""
