"""Executes a notebook or the examples of a page, as a reader would, in a folder of its own:

    python -m tests.api.notebook docs/notebook.ipynb

With --here in the current folder, where what it writes stays.
Exit status: 1 where a cell fails.
"""

from __future__ import annotations

import ast
import contextlib
import json
import os
import re
import sys
import tempfile
import types
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def cells(path: Path) -> list[str]:
    """The code of a notebook's cells, or of a page's blocks."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return BLOCK.findall(text)
    return ["".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]


def execute(sources: Iterable[str], name: str) -> list[Any]:
    """Execute cells one after the other in the current folder; what each shows: the value of its last
    expression, asked for as a notebook asks for it (None where it shows nothing)."""
    module = types.ModuleType(f"cells_of_{re.sub(r'[^a-z]', '_', name)}")
    sys.modules[module.__name__] = module  # where `inspect` looks for the module of a function
    shown = []
    for number, source in enumerate(sources):
        file = Path(f"cell_{number}.py").absolute()  # as a notebook keeps cells: `inspect` finds functions
        file.write_text(source, encoding="utf-8")
        tree = ast.parse(source, str(file))
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, str(file), "exec"), module.__dict__)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), str(file), "eval"), module.__dict__)
            html = getattr(value, "_repr_html_", None)
            shown.append((html() if html is not None else None) or repr(value))
        else:
            shown.append(None)
    return shown


@contextlib.contextmanager
def _empty_folder() -> Iterator[None]:
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def main(arguments: Sequence[str] | None = None) -> int:
    names = list(sys.argv[1:] if arguments is None else arguments)
    here = "--here" in names
    for name in filter(lambda it: it != "--here", names):
        sources = cells(Path(name))
        with contextlib.nullcontext() if here else _empty_folder():
            for number, value in enumerate(execute(sources, name)):
                if value is not None:
                    print(f"cell {number}: {value[:400]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
