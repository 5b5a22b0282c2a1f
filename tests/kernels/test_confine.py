"""What is shut in can neither write, nor read what is not for it, nor reach the network or its judge."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernels import confine

TRIES = """
import os, signal, socket, sys
from kernels import confine
if confine.alone() and "network" in sys.argv: print("no walls"); sys.exit()
if confine.shut(tuple(sys.argv[2:3])): print("no walls"); sys.exit()
def tried(what, *deed):
    try:
        deed[0](*deed[1:])
    except OSError as error:
        print(what, "refused")
    else:
        print(what, "done")
tried("read", open, sys.argv[2] + "/allowed")
tried("read of another", open, sys.argv[1] + "/other")
tried("list", os.listdir, sys.argv[1])
tried("write", open, sys.argv[2] + "/allowed", "w")
tried("make", os.mkdir, sys.argv[2] + "/new")
tried("signal", os.kill, os.getppid(), 0)
tried("network", socket.create_connection, ("127.0.0.1", int(sys.argv[3])), 2)
import numpy; tried("null", open, "/dev/null", "w")
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the walls are Linux's")
def test_what_is_shut_in_reads_what_it_needs_and_nothing_else(tmp_path: Path) -> None:
    import socket

    (tmp_path / "other").write_text("another's")
    allowed = tmp_path / "mine"
    allowed.mkdir()
    (allowed / "allowed").write_text("one's own")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        command = [sys.executable, "-c", TRIES, str(tmp_path), str(allowed), port]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    if said == ["no walls"]:
        pytest.skip("this kernel has no Landlock")
    wanted = {
        "read done",
        "read of another refused",
        "list refused",
        "write refused",
        "make refused",
        "null done",
    }
    assert wanted <= set(said)
    assert "network refused" in said
    if "signal refused" not in said:
        assert tuple(map(int, os.uname().release.split(".")[:2])) < (6, 12)


def test_memory_is_limited_for_what_is_started_too() -> None:
    code = (
        "import subprocess, sys; from kernels import confine, ends; confine.limit(300)\n"
        "child = 'from kernels import ends; ends.unlimited(); bytearray(1 << 30)'\n"
        "sys.exit(subprocess.run([sys.executable, '-c', child], stderr=subprocess.DEVNULL).returncode)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 1
    assert confine.CONFINED not in os.environ
