"""What is wrong with a package is found. That there is nothing, `python -m tests.package` sees."""

from __future__ import annotations

import datetime

import pytest

from bench.words import version
from tests.package import building, release

NAMES = ["kernelscope/__init__.py", "kernelscope-1.dist-info/METADATA"]
NAMES += [building.INSIDE + name for name in building.SHIPPED]
METADATA = f"""\
Version: {version.version()}
Requires-Dist: onnxruntime>=1; extra == 'cpu'
Requires-Dist: onnxruntime-gpu>=1; extra == 'cuda'
Requires-Dist: onnxruntime-gpu>=1; extra == 'cuda12'
Requires-Dist: cuda-bindings>=1; extra == 'nvrtc'
Requires-Dist: ray>=1; extra == 'cluster'

    make run
"""


def test_a_wheel_that_is_well_has_no_fault() -> None:
    assert list(building.faults(NAMES, 1, METADATA)) == []


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("gui/__init__.py", "more than one package at its top: gui"),
        ("kernelscope/_program/tests/test_cli.py", "tests/test_cli.py is none of a user's"),
        ("kernelscope/_program/bench/__pycache__/a.pyc", "none of a user's"),
        ("kernelscope/_program/runs/20260101/run.json", "none of a user's"),
        ("kernelscope/_program/.venv/a", "none of a user's"),
    ],
)
def test_a_file_that_does_not_belong_there_is_found(name: str, told: str) -> None:
    (fault,) = building.faults([*NAMES, name], 1, METADATA)
    assert told in fault


def test_what_is_missing_too_large_or_brought_by_itself_is_found() -> None:
    def faults(names: list[str] = NAMES, nbytes: int = 1, metadata: str = METADATA) -> str:
        (fault,) = building.faults(names, nbytes, metadata)
        return fault

    for name in building.SHIPPED:
        left = [it for it in NAMES if not it.startswith(building.INSIDE + name)]
        assert faults(left) == f"{name} is missing"
    assert "15,728,640" in faults(nbytes=building.MOST_NBYTES + 1)
    assert "by itself" in faults(metadata="Requires-Dist: onnxruntime>=1\n" + METADATA)
    assert "extra cluster" in faults(metadata=METADATA.replace("'cluster'", "'other'"))
    assert "calls itself 9" in faults(metadata=METADATA.replace(version.version(), "9"))
    assert "description" in faults(metadata=METADATA.replace("make run", ""))


def test_a_release_has_its_section_of_the_changelog() -> None:
    day = datetime.date(2026, 1, 2)
    text = "# Changes\n\n## Unreleased\n\n- a\n\n## 1.0, 2025-01-01\n\n- b\n"
    made = release.with_section(text, "1.1", day)
    assert made == text.replace("## Unreleased\n", "## Unreleased\n\n## 1.1, 2026-01-02\n")
    assert release.with_section(made, "1.1", day) == made
    assert release.with_section(made, "1.0", day) == made
    with pytest.raises(ValueError, match="neither"):
        release.with_section(made, "1.2", day)
    with pytest.raises(ValueError, match="empty"):
        release.with_section("# Changes\n\n## 1.2\n\n## 1.1\n\n- a\n", "1.2", day)
