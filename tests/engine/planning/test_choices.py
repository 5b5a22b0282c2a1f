"""A choice that was timed holds as long as nothing has changed that makes a rung's time."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.planning import choices
from kernels import registry


@pytest.mark.parametrize("device", registry.SUFFIX)
def test_what_rungs_stand_on_is_there(device: str) -> None:
    for pattern in choices._SHARED[device]:
        assert list(registry.ROOT.glob(pattern)), pattern


@pytest.mark.parametrize("device", registry.SUFFIX)
def test_a_change_of_any_of_it_makes_another_choice(
    device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choices, "ROOT", tmp_path)
    digest = choices._shared.__wrapped__
    found = {digest(device)}
    for count, pattern in enumerate(choices._SHARED[device]):
        file = tmp_path / pattern.replace("*", "conv")
        file.parent.mkdir(parents=True, exist_ok=True)
        for text in ("as it was", "otherwise"):
            file.write_text(text, encoding="utf-8")
            found.add(digest(device))
        assert len(found) == 2 * count + 3, pattern


def test_how_an_operator_divides_is_part_of_a_choice_on_the_cpu() -> None:
    files = {path for pattern in choices._SHARED["cpu"] for path in registry.ROOT.glob(pattern)}
    assert registry.ROOT / "ops" / "conv.py" in files
