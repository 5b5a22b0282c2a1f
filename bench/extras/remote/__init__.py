"""Machines elsewhere that measure for this one: reached by ssh, through a queue, or in a container.

- `places`: what is known of each, and the command that runs something there.
"""
