"""Satellites: what a comparison, a ladder or a profile does without. Each is a folder.

- `course`: an assignment for a class written, tried by a student, graded.
- `fleet`: cases on several devices of this machine or of a cluster; accuracy in parts.
- `remote`: measuring on a machine elsewhere, reached by ssh, a queue or a container.
- `weights`: trained weights of Caffe, NumPy and PyTorch made into models of the user's.
- `reports`: what a course report published, or which speed goals there are, beside what is measured here.

No module outside imports one (a contract in pyproject.toml). They are found by their folders
(`bench.modules`): `command.py` with `COMMAND`, a function or a group of commands of the command line;
with `GROUP` and `NAME` it is a function that joins a group that there is. `cluster.py` has `measure`, what
`--cluster` does; `file_formats.py` has `FORMATS`, the types of files that it writes; `templates/` its
reports.
"""
