"""What is kept for the next run is found by its own key alone, whatever lies there, and is bounded."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from kernels.cache import Store
from kernels.environment import for_children
from kernels.errors import KernelError

pytestmark = pytest.mark.usefixtures("own_cache")

STORE = Store("things", 2, "what was found", most=3)
KEY = {"machine": "one", "model": "net"}


def test_an_entry_is_found_by_its_own_key_and_version_alone() -> None:
    assert STORE.read("a", KEY, list[int]) is None
    STORE.write("a", KEY, [1, 2])
    assert STORE.read("a", dict(reversed(KEY.items())), list[int]) == [1, 2]
    assert STORE.read("b", KEY, list[int]) is None
    assert STORE.read("a", KEY | {"model": "other"}, list[int]) is None
    assert Store("things", 3, "").read("a", KEY, list[int]) is None
    assert Store("others", 2, "").read("a", KEY, list[int]) is None
    STORE.forget("a", KEY)
    assert STORE.read("a", KEY, list[int]) is None


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"\xff\xfe", b'{"version": 2}', b'{"version": 2, "key": 1, "value": 1}', b"[" * 100_000],
)
def test_what_is_broken_is_no_entry_and_is_written_anew(data: bytes) -> None:
    STORE.write("a", KEY, [1])
    STORE.path("a", KEY).write_bytes(data)
    assert STORE.read("a", KEY, list[int]) is None
    STORE.write("a", KEY, [2])
    assert STORE.read("a", KEY, list[int]) == [2]


def test_an_entry_of_another_type_or_key_is_none() -> None:
    STORE.write("a", KEY, ["text"])
    assert STORE.read("a", KEY, list[int]) is None
    other = STORE.path("a", KEY | {"machine": "two"})
    other.write_bytes(STORE.path("a", KEY).read_bytes())
    assert STORE.read("a", KEY | {"machine": "two"}, list[str]) is None


def test_the_oldest_entries_go() -> None:
    keys = [KEY | {"model": str(at)} for at in range(5)]
    for at, key in enumerate(keys):
        STORE.write("a", key, [at])
        os.utime(STORE.path("a", key), (at, at))
    STORE.write("b", KEY, [9])
    STORE.write("a", keys[0], [0])
    held = [STORE.read("a", key, list[int]) for key in keys]
    assert held == [[0], None, None, [3], [4]]
    assert STORE.read("b", KEY, list[int]) == [9]


def test_of_many_who_write_one_entry_it_is_always_whole() -> None:
    STORE.write("a", KEY, [0] * 500)
    over = threading.Event()

    def write(number: int) -> None:
        for _ in range(20):
            STORE.write("a", KEY, [number] * 500)

    writers = [threading.Thread(target=write, args=(number,)) for number in (1, 2)]
    for writer in writers:
        writer.start()
    while not over.is_set():
        held = STORE.read("a", KEY, list[int])
        assert held is not None
        assert len(held) == 500
        assert len(set(held)) == 1
        if not any(writer.is_alive() for writer in writers):
            over.set()


def test_where_nothing_can_be_written_it_says_what_would_work(own_cache: Path) -> None:
    own_cache.write_text("a file")
    with pytest.raises(KernelError, match=r"what was found cannot be kept in .* point KERNELSCOPE_CACHE"):
        STORE.write("a", KEY, [1])
    assert STORE.read("a", KEY, list[int]) is None


SAYS = """
import os, subprocess, sys
from kernels.cache import atomic_file, cache_dir
print(cache_dir(), cache_dir() == cache_dir(), flush=True)
with atomic_file(cache_dir() / "file") as file:
    file.write_text("kept")
if "CHILD" not in os.environ:
    subprocess.run([sys.executable, "-c", sys.argv[1], ""], env=os.environ | {"CHILD": ""}, check=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="homes are found by other variables")
@pytest.mark.parametrize("planted", ["nothing", "a link", "open to all"])
def test_where_the_home_cannot_be_written_the_cache_is_a_folder_of_one_s_own_said_once(
    tmp_path: Path, planted: str
) -> None:
    """A home that is no folder: nobody can write there, root included. What somebody else could write into is
    not taken, for compiled kernels are read from it."""
    (tmp_path / "file").touch()
    (tmp_path / "temporary").mkdir()
    usual = tmp_path / "temporary" / f"kernelscope-{os.getuid()}"
    if planted == "a link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        usual.symlink_to(tmp_path / "elsewhere")
    if planted == "open to all":
        usual.mkdir()
        usual.chmod(0o777)
    environment = for_children() | {"HOME": str(tmp_path / "file" / "home"), "TMPDIR": str(usual.parent)}
    for name in ("KERNELSCOPE_CACHE", "XDG_CACHE_HOME"):
        environment.pop(name, None)
    done = subprocess.run(
        [sys.executable, "-c", SAYS, SAYS], env=environment, capture_output=True, text=True, check=True
    )
    ours, of_child = done.stdout.splitlines()
    assert ours == of_child
    folder = Path(ours.removesuffix(" True"))
    assert folder.parent == usual.parent
    assert (folder == usual) == (planted == "nothing")
    assert folder.stat().st_mode & 0o077 == 0
    assert (folder / "file").read_text() == "kept"
    (said,) = done.stderr.splitlines()
    assert "cannot be written" in said
    assert str(folder) in said
