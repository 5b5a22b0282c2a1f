"""What is fuzzed: honest files, one of which is changed, and everything that the program does with such a
file when it is given one. Whatever comes of it but an error of ours is a finding.

A target is a function of its name in its module: where it may write, and its generator → how many files or
records were tried. A module is loaded by its own targets alone, so that they count anew when their code
changes.
"""

from __future__ import annotations

_MODELS, _FOLDERS, _PACKED, _HANDED_IN = (
    f"tests.fuzz.of_{name}" for name in ("models", "folders", "packed", "handed_in")
)

# By name: the module, and the share of the time.
TARGETS: dict[str, tuple[str, float]] = {
    "model": (_MODELS, 8.0),
    "tensor": (_MODELS, 4.0),
    "lines": (_FOLDERS, 4.0),
    "records": (_FOLDERS, 2.0),
    "packed": (_PACKED, 2.0),
    "events": (_PACKED, 1.0),
    "shown": (_FOLDERS, 4.0),
    "written": (_FOLDERS, 3.0),
    "handed_in": (_HANDED_IN, 2.0),
}
