"""Course reports, filled in: each table and figure that one published, with this machine's numbers beside.

`data/NAME.toml` holds what was published, and what has to be measured for it; `presets` reads it. `needs`
finds the runs that there are and takes those that are missing; `program` runs a whole program as
/usr/bin/time sees it. `values` looks a figure up in what was measured; `claims` holds what a report said
against it; `tables` and `report` write it, as HTML or Markdown. `command` is `report course NAME`.
"""
