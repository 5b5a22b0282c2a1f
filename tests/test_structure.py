"""The house as it is built: no import leads back to where it began, and nothing is too large to be read."""

from __future__ import annotations

import graphlib
from collections.abc import Mapping
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("gui", "bench", "engine", "kernels", "models")
MOST_LINES, MOST_MODULES = 400, 20
# Folders of a file an operator.
ONE_AN_OPERATOR = ("engine/ops", "kernels/ops", "bench/judge/mistakes", "bench/measure/answers/nodes")


def circle(imports: Mapping[str, set[str]]) -> list[str]:
    """Modules of which each imports the next, the first and the last of them the same; none where there is no
    such circle."""
    try:
        graphlib.TopologicalSorter(imports).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def too_large(root: Path) -> list[str]:
    """Modules of too many lines, and folders of too many modules; of operators, and of the rungs of one,
    there may be as many as there are, each found by its file."""
    found = []
    for folder in {path.parent for package in PACKAGES for path in (root / package).rglob("*.py")}:
        modules = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
        of_operators = folder in [root / each for each in ONE_AN_OPERATOR]
        if len(modules) > MOST_MODULES and not (folder.parent.parent == root / "kernels" or of_operators):
            found.append(f"{folder.relative_to(root)}: {len(modules)} modules")
        lines = {path: path.read_text(encoding="utf-8").count("\n") for path in modules}
        found += [f"{path.relative_to(root)}: {n} lines" for path, n in lines.items() if n > MOST_LINES]
    return sorted(found)


def test_no_import_leads_back_to_where_it_began() -> None:
    """Those within functions count, too; those for types alone do not."""
    graph = grimp.build_graph(*PACKAGES, exclude_type_checking_imports=True, cache_dir=None)
    assert circle({name: graph.find_modules_directly_imported_by(name) for name in graph.modules}) == []


@pytest.mark.parametrize(
    ("imports", "found"),
    [
        ({"a": {"b"}, "b": {"c"}, "c": set()}, 0),
        ({"a": {"b"}, "b": {"c"}, "c": {"b"}}, 3),
        ({"a": {"a"}}, 2),
    ],
)
def test_a_circle_is_found(imports: dict[str, set[str]], found: int) -> None:
    assert len(circle(imports)) == found


def test_nothing_is_too_large_to_be_read() -> None:
    assert too_large(ROOT) == []


def test_what_is_too_large_is_found(tmp_path: Path) -> None:
    for folder in ("bench/many", "kernels/cpu/gemm", "gui"):
        (tmp_path / folder).mkdir(parents=True)
    for number in range(MOST_MODULES + 1):
        for folder in ("bench/many", "kernels/cpu/gemm"):
            (tmp_path / folder / f"n{number}.py").touch()
    (tmp_path / "gui" / "long.py").write_text("\n" * (MOST_LINES + 1))
    assert too_large(tmp_path) == ["bench/many: 21 modules", "gui/long.py: 401 lines"]
