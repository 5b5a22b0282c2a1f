"""Measuring, and what was measured. docs/architecture.md says how a model becomes a picture; each folder's
`__init__.py` says what is in it. Six floors, from the top; a module imports its own floor and those below:

- `commands`: the commands of the command line. `extras`: what no run needs: grading, several machines, course
  reports, speed goals, weights of others.
- `views`: results as tables, charts, sentences, reports; two runs compared.
- `measure`: the worker process (cases, sessions, timing, checks, tuning; `ladder`: one operator; `profile`:
  events). It and `judge` (is a rung right, and if not, why) import the engine. `questions`: what is asked of
  a model or an operator before a run.
- `run`: the other end of a worker: it starts, watches and replaces it, and writes the run's folder.
  `run.kinds`: what each kind of run says of itself.
- `results`: records, folders of runs, files read within limits, rows, and their statistics.
- `words`: numbers and texts as people read and type them.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType


def modules(pattern: str) -> list[ModuleType]:
    """Modules of this package whose files fit a pattern ("extras/*/command.py"), by name: what is found by
    its folder is named nowhere."""
    names = {
        ".".join(("bench", *path.relative_to(place).with_suffix("").parts))
        for place in __path__
        for path in Path(place).glob(pattern)
    }
    return [importlib.import_module(name) for name in sorted(names)]
