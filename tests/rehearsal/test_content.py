"""The hash of a tree: the same in a clone and in a copy, and another as soon as a file is."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.rehearsal.content import ROOT, content_hash, files

TREE = {
    "main.py": "print()\n",
    "docs/page.md": "text\n",
    "docs/results/h200.md": "figures\n",
    "bench/a.py": "1\n",
    ".gitignore": "__pycache__/\n*.pyc\n/runs/\n",
    ".ci/run": "make test\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    for name, text in TREE.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_a_copy_without_git_has_the_hash_of_the_clone(tree: Path, tmp_path: Path):
    subprocess.run(["git", "init", "-q"], cwd=tree, check=True)
    subprocess.run(["git", "add", "."], cwd=tree, check=True)
    copy = shutil.copytree(tree, tmp_path / "copy", ignore=shutil.ignore_patterns(".git"))
    for name in ("bench/__pycache__/a.cpython.pyc", "runs/x/run.json", ".venv/bin/python", ".wheels/x.whl"):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_text("not of the tree")
    for root in (tree, copy):  # an index may be older than the files
        (root / "untracked.py").write_text("git does not have it yet\n")
    (tree / "runs").mkdir()
    (tree / "runs" / "a.json").write_text("git leaves it\n")
    assert files(copy) == files(tree) == ["bench/a.py", "docs/page.md", "main.py", "untracked.py"]
    assert content_hash(copy) == content_hash(tree)


def test_it_changes_with_a_file_its_name_and_its_absence_and_not_with_results(tree: Path):
    first = content_hash(tree)
    (tree / "docs/results/rehearsal-h200.md").write_text("a page\n")
    (tree / "docs/results/h200.md").unlink()
    (tree / "docs/images").mkdir()
    (tree / "docs/images/compare.png").write_bytes(b"a picture of what was measured")
    assert content_hash(tree) == first
    (tree / "docs/page.md").write_text("texts\n")
    changed = content_hash(tree)
    (tree / "docs/page.md").rename(tree / "docs/pages.md")
    renamed = content_hash(tree)
    (tree / "docs/pages.md").unlink()
    assert len({first, changed, renamed, content_hash(tree)}) == 4


def test_of_this_tree_it_takes_what_the_program_is_made_of():
    found = files(ROOT)
    assert {"main.py", "kernels/cuda/conv/01_naive.cu", "README.md", "locks/cpu.txt"} <= set(found)
    assert not [name for name in found if name.startswith((".", "runs/", "docs/results/"))]
    assert len(content_hash()) == 64
