"""The launch that a header says itself, of any number of kernels in one file:

    workspace = "4 * ceil(n, BLOCK)"   # bytes, whose pointer they take behind the output's; absent: none

    [[launch]]
    kernel = "scan_blocks"             # absent: called as the operator or task
    grid = "ceil(n, BLOCK)"            # blocks; of several axes a list: ["ceil(n, 32)", "ceil(m, 32)"]
    block = "BLOCK"                    # threads, likewise
    shared = "4 * BLOCK"               # bytes of dynamic shared memory; absent: 0
    repeat = 8                         # times, together with those beside it that say the same

The kernels start in the order in which they stand, each when the one before has ended, all with the same
arguments.
Expressions (kernels.expressions) are of the sizes, the header's defines, and `outputs`, the elements of the
answer. A kernel whose grid has no blocks is left out.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from kernels import expressions
from kernels.errors import KernelError
from kernels.header import sizes_of
from kernels.launch.core import Launch, Stage, shape
from kernels.ops import Params
from kernels.registry import Rung

MOST_REPEATED = 64
MOST_SHARED, MOST_WORKSPACE = 227 << 10, 1 << 40


@shape
def given(params: Params, rung: Rung) -> Launch:
    """As the rung's header says in [[launch]]."""
    if not rung.stages:
        raise KernelError(f'{rung.path}: launch = "given" is said by [[launch]] tables, and there are none')
    defines = {name: value for name, value in rung.defines.items() if isinstance(value, int)}
    names = {"outputs": params.outputs, **sizes_of(params), **defines}

    def value(text: int | str, what: str, most: int) -> int:
        try:
            found = expressions.value(text, names)
        except expressions.ExpressionError as error:
            raise KernelError(f"{rung.path}: {what} = {text!r} {error}") from None
        if not 0 <= found <= most:
            raise KernelError(
                f"{rung.label}: {what} = {text!r} is {found:,} for {params}, not from 0 to {most:,}"
            )
        return found

    def axes(told: Any, what: str) -> tuple[int, int, int]:
        sides = [value(text, what, 2**31 - 1) for text in (told if isinstance(told, list) else [told])]
        x, y, z = (*sides, 1, 1)[:3]
        return x, y, z

    def made(stage: Mapping[str, Any]) -> Stage:
        return Stage(
            stage.get("kernel", rung.op),
            axes(stage["grid"], "grid"),
            axes(stage["block"], "block"),
            value(stage.get("shared", 0), "shared", MOST_SHARED),
        )

    stages: list[Stage] = []
    for repeat, together in itertools.groupby(rung.stages, lambda stage: stage.get("repeat", 1)):
        stages += [made(stage) for stage in together] * value(repeat, "repeat", MOST_REPEATED)
    for stage in stages:
        if not stage.function.startswith(rung.op):
            raise KernelError(
                f"{rung.path}: the kernels of {rung.op} are called {rung.op} or {rung.op}_…, not "
                f"{stage.function}"
            )
        if 0 in stage.block:
            raise KernelError(f"{rung.path}: block is 0 for {params}; a block has at least one thread")
    started = tuple(stage for stage in stages if 0 not in stage.grid)
    if not started:
        raise KernelError(
            f"{rung.label}: no kernel would start for {params}; one of the grids has to have blocks"
        )
    workspace = value(rung.workspace, "workspace", MOST_WORKSPACE) if rung.workspace else None
    first, scalars = started[0], params.scalars()
    if len(started) == 1 and first.function == rung.op:
        return Launch(first.grid, first.block, scalars, first.shared_nbytes, workspace_nbytes=workspace)
    return Launch((0, 1, 1), first.block, scalars, workspace_nbytes=workspace, then=started)
