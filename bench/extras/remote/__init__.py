"""Machines elsewhere that measure for this one: reached by ssh, through a queue, or in a container.

- `places`: what is known of each, and the command that runs something there. `command`: `remote`.
- `installing`: this program and its packages set up there: `packing` is what is sent, `there` what is done
  there by its text alone, `asking` the way between. `doctor` is what runs there afterwards.
- `line`: a worker there, as its supervisor here sees it. `keeper`: it goes on there when the line drops.
  `frames`: what the two say to each other; `sending`: what of this machine a job names.
- `elsewhere`: what the rest of the program asks.
"""
