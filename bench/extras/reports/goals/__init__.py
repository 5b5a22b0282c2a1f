"""Speed goals held against what was measured: reached or not, each with its interval and the reason.

`data/NAME.toml` holds the goals of a kind of machine, and what is measured for them, each twice; `presets`
reads it. `judged` holds a goal against the runs, `floors` says how far from the machine's limits a case is
and which of its steps takes most; `again` how far apart the two runs are; `machines` where they were
measured. `tables` and `page` tell it.
"""
