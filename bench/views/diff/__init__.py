"""Two runs of one kind held against each other: is B faster, is it right, what else differs, and which part
makes up the difference.

- `records`: what is said of a case by each run (Side, Pair), what comes of the two (Change), what differs
  around them (Difference), where the time between them went (Waterfall), and all of it (Diff).
- `between`: two folders → a Diff. What a kind of run has to say is in the module that its descriptor names
  (`Kind.diff`: `compared(one, other) -> Compared`); the verdicts are made here, by the one rule.
- `matching`: which case of the one is which of the other. `differs`: machines, versions, settings, clocks,
  facts, kernels. `judging`: ratios, verdicts, what a gate fails on. `sentences`, `tables`, `junit`: as people
  and machines read it. `baselines`: the run that others are held against.
"""
