"""Speed goals held against what was measured: reached or not, each with its interval and the reason.

`data/NAME.toml` holds the goals of a kind of machine, and what is measured for them; `presets` reads it.
`needs` takes the comparisons that are missing, each twice; `judged` holds a goal against them, `floors` says
how far from the machine's limits a case is and which of its steps takes most; `again` how far apart the two
runs are. `tables`, `flows` (from end to end) and `report` write it, as HTML or Markdown; `machines` says
where it was measured. `command` is `report goals NAME`.
"""
