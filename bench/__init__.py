"""Measuring, and what was measured. docs/architecture.md says how a model becomes a picture; each folder's
`__init__.py` says what is in it.

- `measure`: the worker process (cases, sessions, timing, checks, tuning). It and `judge` (is a rung right,
  and if not, why) are the only folders that import the engine.
- `comparison`, `ladder`, `profile`: the kinds of run. `kinds`: what they share, without knowing any of them.
- `run`: the other end of a worker: it starts, watches and replaces it, and writes the run's folder.
- `results`: records, files read within limits, rows, and their statistics.
- `show`, `charts`, `diff`: results as tables, charts, reports, and two runs compared.
- `words`: numbers and texts as people read them.
- `commands`, `questions`: commands that measure nothing, and what is asked of a model before a run.
- `extras`: what no run needs: grading, several machines, course reports, speed goals, weights of others.
"""
