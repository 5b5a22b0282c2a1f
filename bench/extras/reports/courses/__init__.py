"""Course reports, filled in: each table and figure that one published, with this machine's numbers beside.

`data/NAME.toml` holds what was published, and what has to be measured for it; `presets` reads it. `values`
looks a figure up in what was measured; `claims` holds what a report said against it; `tables` and `page`
tell it.
"""
