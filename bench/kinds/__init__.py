"""What every kind of run (a comparison, a ladder, a profile, …) has in common, whichever kinds there are.

A kind is a folder of `bench` with a module `kind.py` that holds its `KIND`: a `bench.kinds.registry.Kind`,
light (records and words alone), found by its file. What it names by module path is loaded where it is used:
its worker, its tables, charts and reports, what makes it small. Nothing here knows a kind by name.

- `registry`: the descriptor, and which kinds there are. `folder`: one on the disk. `folders`: one of any kind
  opened, copied. `summaries`: one as a line of a list, read quickly. `note`: what the user calls one. `thin`
  (`public`): made small enough to ship.
- `options`: what an option is, from which come command line, form and checks.
- `sample_run` is a comparison thinned (`python main.py runs thin RUN bench/kinds/sample_run` made it),
  `sample_ladder` and `sample_profile` are a ladder and a profile: with them every page has something to show.
"""
