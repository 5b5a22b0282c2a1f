"""Runs from outside: what may be asked for, the worker's other end, what watches it and how it goes."""
