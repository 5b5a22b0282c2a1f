"""A run leaves out files by their text only where none of their tests was asked for."""

from pathlib import Path

import pytest

from tests import marks

HERE = Path(__file__).parent
ALL, SOME, NONE = (
    HERE / name
    for name in ("kernels/test_cuda_rungs.py", "engine/backends/test_operators.py", "engine/ops/test_ops.py")
)


@pytest.mark.parametrize(
    ("expression", "left_out"),
    [
        ("", set()),
        ("not gpu", {ALL}),
        ("not gpu and not slow", {ALL}),
        ("gpu and not real_gpu", {NONE}),
        ("sampled and not gpu", set()),
        ("screen_sample and not gpu", set()),
    ],
)
def test_only_files_without_a_test_that_was_asked_for_are_left_out(
    expression: str, left_out: set[Path]
) -> None:
    assert {path for path in (ALL, SOME, NONE) if marks.without_a_part(path, expression)} == left_out


def test_what_is_no_file_of_tests_is_let_be() -> None:
    assert not marks.without_a_part(HERE / "conftest.py", "gpu")


def test_a_test_for_a_gpu_that_no_text_shows_is_told(request: pytest.FixtureRequest) -> None:
    """As by a mark that a hook adds."""
    assert marks.forgotten([request.node]) == set()
    request.node.add_marker("gpu")
    assert marks.forgotten([request.node]) == {Path(__file__)}
