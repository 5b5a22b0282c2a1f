"""Satellites: what a comparison, a ladder or a profile does without. Each is a folder.

- `course`: an assignment for a class written, tried by a student, graded.
- `fleet`: cases on several devices of this machine or of a cluster; accuracy in parts.
- `reports`: what a course report published, or which speed goals there are, beside what is measured here.

No module outside imports one (a contract in pyproject.toml); they are found by their folders
(`bench.kinds.found`): `command.py` with `COMMAND`, a function or a group of commands of the command line;
`cluster.py` with `measure`, what `--cluster` does; `formats.py` with `FORMATS`, the types of files that it
writes.
"""
