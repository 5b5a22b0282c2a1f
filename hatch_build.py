"""What a built distribution says of the commit that it was built from."""

from __future__ import annotations

import runpy
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Commit(BuildHookInterface):  # type: ignore[type-arg]
    """Puts `commit.txt` beside main.py: into a wheel, and into an sdist, from which a wheel takes it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        told = runpy.run_path(str(Path(self.root, "bench/words/version.py")))["commit"]()
        if told:
            self.kept = tempfile.TemporaryDirectory()
            file = Path(self.kept.name, "commit.txt")
            file.write_text(f"{told}\n", encoding="utf-8")
            inside = "kernelscope/_program/commit.txt" if self.target_name == "wheel" else "commit.txt"
            build_data["force_include"][str(file)] = inside
