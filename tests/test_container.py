"""The Containerfile, as far as it is known without running it: `python -m tests.container` does that."""

from __future__ import annotations

import re

import pytest

from tests import container


def test_all_that_it_copies_is_sent_and_all_that_is_sent_is_copied() -> None:
    image, files = container.read(container.FILE.read_text("utf-8")), container.sent()
    copied = {name for kind, step in image.steps if kind == "COPY" for name in container.copied(step, files)}
    assert copied == set(files)
    at = {to for kind, step in image.steps if kind == "COPY" for to in container.copied(step, files).values()}
    for wanted in (
        "kernelscope/__init__.py",
        "kernelscope/_program/main.py",
        "kernelscope/_program/engine/__init__.py",
    ):
        assert f"/opt/lib/{wanted}" in at


def test_it_runs_as_nobody_in_particular_from_locked_packages() -> None:
    text = container.FILE.read_text("utf-8")
    image = container.read(text)
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", image.user)
    assert "://" not in text
    installs = [step for kind, step in image.steps if kind == "RUN" and "pip install" in step]
    assert installs
    assert all(step.count("pip install") == step.count("--require-hashes") for step in installs)
    for extra in ("cpu", "cuda", "cuda12"):
        assert (container.ROOT / f"locks/{extra}.txt").is_file()


def test_what_is_not_sent_cannot_be_copied() -> None:
    with pytest.raises(ValueError, match=r"tests/ is not among the files"):
        container.copied("tests/ /opt/tests/", container.sent())
    with pytest.raises(ValueError, match="HEALTHCHECK"):
        container.read("FROM a\nHEALTHCHECK NONE\n")
