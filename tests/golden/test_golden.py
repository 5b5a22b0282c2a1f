"""What is read of saved runs stays as it is, byte for byte (tests.golden)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden.outputs import Command, commands, output
from tests.golden.store import changes, expected, names


@pytest.mark.sampled(4)
@pytest.mark.parametrize("command", commands(), ids=str)
def test_what_is_printed_and_written_is_as_it_was(
    command: Command, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if command.name.endswith("-md"):  # whose pictures are files of their own, which are not compared
        request.getfixturevalue("blank_pictures")
    found, before = output(command, tmp_path), expected(command.name)
    if found != before:
        pytest.fail("\n".join(changes(before, found).split("\n")[:60]), pytrace=False)


def test_nothing_is_kept_that_no_command_leaves() -> None:
    assert names() == {command.name for command in commands()}
