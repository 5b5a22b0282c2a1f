"""Checks a kernel that may begin before the one in front of it has ended (`overlaps` in a rung's header;
cuda/overlap.cuh): before it waits, it must not touch memory that the other one uses.

The PTX is checked, not the source. What is `const` and `__restrict__` the compiler reads by `ld.global.nc`,
as memory that never changes, and the assembler may move that read in front of the wait. The parameter that an
address comes from is followed through the 64-bit registers. "Before the wait" means above it in the text.
"""

from __future__ import annotations

import re
from collections.abc import Collection

CAPABILITY = (9, 0)  # of devices on which one may begin early

_KERNEL = re.compile(r"\.entry (\w+)\((.*?)\)[^{]*\{(.*?)\n\}", re.DOTALL)
_PARAMETER = re.compile(r"ld\.param\.u64\s+(%rd\d+), \[\w+_param_(\d+)\]")
_MADE = re.compile(r"^\s*(?:@!?%p\d+ )?([\w.]+)\s+(%rd\d+), (.*);", re.MULTILINE)
_REGISTER = re.compile(r"%rd\d+")
# Of global memory, or of what may be global; a copy has its source second.
_TOUCHED = re.compile(
    r"\b(?P<how>(?:ld|st|red|atom)(?!\.(?:param|shared|local|const))[\w.:]*)\s[^\[\n]*\[(?P<at>%rd\d+)"
    r"|\b(?P<copy>cp\.async[\w.:]*)\s+\[[^\]]*\], \[(?P<source>%rd\d+)"
)
_WAIT = "griddepcontrol.wait"


def fault(ptx: str, weights: Collection[int]) -> str | None:
    """What one of the kernels does wrong, or None. weights: the places of the parameters that no kernel
    writes; these may be read at any time."""
    kernels = _KERNEL.findall(ptx)
    if not kernels:
        return "no kernel is found in its PTX"
    for name, _, body in kernels:
        wait = body.find(_WAIT)
        if wait < 0:
            return f"its kernel {name} never calls wait_for_previous()"
        of = _parameters(body)
        for touch in _TOUCHED.finditer(body):
            how, register = (touch["how"], touch["at"]) if touch["how"] else (touch["copy"], touch["source"])
            sources = of.get(register, frozenset())
            parameters = " or ".join(f"parameter {place + 1}" for place in sorted(sources)) or "global memory"
            if not how.startswith(("ld", "cp")):
                if touch.start() < wait:
                    return f"its kernel {name} writes {parameters} before wait_for_previous()"
            elif sources and sources.issubset(weights):
                continue
            elif touch.start() < wait:
                return f"its kernel {name} reads {parameters} before wait_for_previous()"
            elif ".nc" in how:
                return (
                    f"its kernel {name} reads {parameters} as memory that never changes, which may happen "
                    "before wait_for_previous(): behind the wait, take the pointer anew, x = written(x)"
                )
    return None


def _parameters(body: str) -> dict[str, frozenset[int]]:
    """For each register, the places of the parameters that its value may come from."""
    of = {register: frozenset({int(place)}) for register, place in _PARAMETER.findall(body)}
    assignments = [
        (to, _REGISTER.findall(operands))
        for operation, to, operands in _MADE.findall(body)
        if not operation.startswith("ld.")
    ]
    grown = True
    while grown:
        grown = False
        for to, operands in assignments:
            before = of.get(to, frozenset())
            sources = before.union(*(of.get(register, frozenset()) for register in operands))
            if sources != before:
                of[to], grown = sources, True
    return of
