"""The ladder: every kernel of ours, one rung a file, and what describes them.

The lowest layer: it imports nothing of the project but itself.
"""
