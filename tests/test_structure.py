"""The house as it is built: no import leads back to where it began."""

from __future__ import annotations

import graphlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("gui", "bench", "engine", "kernels", "models")


def circle(imports: Mapping[str, set[str]]) -> list[str]:
    """Modules of which each imports the next, the first and the last of them the same; none where there is no
    such circle."""
    try:
        graphlib.TopologicalSorter(imports).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


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


@pytest.mark.sampled(4, "long")
@pytest.mark.slow
def test_a_comparison_needs_no_satellite(tmp_path: Path) -> None:
    """In a copy of the program without bench/extras all else works, and what needed it says so."""
    shutil.copyfile(ROOT / "main.py", tmp_path / "main.py")
    lacking_extras = shutil.ignore_patterns("extras")
    shutil.copytree(ROOT / "bench", tmp_path / "bench", ignore=lacking_extras)  # its bytecode, too
    if sys.pycache_prefix:
        ours, copy = (
            Path(f"{sys.pycache_prefix}{path}") for path in (ROOT / "bench", (tmp_path / "bench").resolve())
        )
        shutil.copytree(ours, copy, ignore=lacking_extras)
    # The copy's own folder comes first.
    paths = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH", ""), str(ROOT))))

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "main.py", *words]
        environment = os.environ | {"PYTHONPATH": paths}
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )

    case = ("compare", "lenet5-digits", "--backend", "ort-cpu", "--batch", "1", "--no-layer-pass")
    quick = ("--budget", "0.01", "--images", "1", "--charts", "none")
    done = run(*case, *quick, "--out", "run")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run" / "results.jsonl").read_text().count("\n") == 1
    lacking = run(*case, *quick, "--cluster", "local")
    assert lacking.returncode == 2
    assert "--cluster needs bench/extras/fleet" in lacking.stderr
