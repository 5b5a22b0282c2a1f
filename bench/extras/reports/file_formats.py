"""The formats of the files that reports keep, for docs/formats.json."""

from bench.extras.reports.program import ProgramUse
from bench.extras.reports.speed import sitting

FORMATS = {"programs.jsonl": ProgramUse, sitting.FILE: sitting.Sitting}
