"""The formats of the files that reports keep, for docs/formats.json."""

from bench.extras.reports.program import ProgramUse

FORMATS = {"programs.jsonl": ProgramUse}
