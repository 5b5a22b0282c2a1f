"""Walls round a process that runs what a stranger wrote: no network, no files, no other process, so much
memory. What the system does not offer is left out and said.

`alone` is for a process that has started no thread yet: it takes the network away (a user and a network
namespace of its own). `shut` is for a process of kernels alone: it may read what Python needs, write nothing,
signal and trace nobody (Landlock, Linux 5.13 and later; signals from 6.12 on). Whatever these processes start
is within the same walls.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
import sys
from collections.abc import Sequence
from pathlib import Path

# For a process that starts others apart: `engine.apart` shuts them in where this is set.
CONFINED = "KERNELSCOPE_CONFINED"
MEMORY = "KERNELSCOPE_CONFINED_MIB"
NO_NETWORK = "KERNELSCOPE_CONFINED_FROM_NETWORK"  # whoever started us has taken it away
_ROOT = Path(__file__).resolve().parents[1]
_NEWUSER, _NEWNET = 0x10000000, 0x40000000
_SET_NO_NEW_PRIVS, _SET_DUMPABLE = 38, 4
_CAPBSET_DROP, _CAP_SYS_PTRACE, _CAPABILITY_VERSION_3 = 24, 19, 0x20080522
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_PATH_BENEATH = 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_OPEN_PATH = 0x200000 | 0x80000  # O_PATH | O_CLOEXEC
# How many kinds of access to files each version of Landlock knows.
_FILE_BITS = {1: 13, 2: 14, 3: 15, 4: 15}
_PROCESSES = 512  # and threads, in a namespace of their own


def alone() -> str:
    """Take this process's network away. Why it could not be, "" where it was."""
    if not sys.platform.startswith("linux"):
        return f"{sys.platform} has no network namespaces"
    ids = os.geteuid(), os.getegid()
    if _libc().unshare(_NEWUSER | _NEWNET) != 0:
        return f"no network namespace can be made ({os.strerror(ctypes.get_errno())})"
    with contextlib.suppress(OSError):  # without a map it runs as nobody, which does as well
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{ids[0]} {ids[0]} 1")
        Path("/proc/self/gid_map").write_text(f"{ids[1]} {ids[1]} 1")
    return ""


def unseen() -> None:
    """Nobody of the same user may look into this process, or at its open files."""
    if sys.platform.startswith("linux"):
        _libc().prctl(_SET_DUMPABLE, 0, 0, 0, 0)


def blind() -> None:
    """This process may not look into others that are `unseen`, nor write there, even if it is root's."""
    if not sys.platform.startswith("linux"):
        return
    libc = _libc()
    libc.prctl(_CAPBSET_DROP, _CAP_SYS_PTRACE, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    held = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable: of the first 32, then of the others
    if libc.capget(header, held) == 0:
        for place in range(3):
            held[place] &= ~(1 << _CAP_SYS_PTRACE)
        libc.capset(header, held)


def limit(mib: int) -> str:
    """So much memory for this process, and for each that it starts; no core dumps. Why it could not be."""
    try:
        import resource
    except ImportError:
        return f"{sys.platform} has no limits for a process"
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for which in (resource.RLIMIT_DATA, resource.RLIMIT_FSIZE):
        _, hard = resource.getrlimit(which)
        wanted = mib << 20 if hard == resource.RLIM_INFINITY else min(mib << 20, hard)
        resource.setrlimit(which, (wanted, wanted))
    return ""


def shut(readable: Sequence[str] = (), writable: Sequence[str] = ()) -> str:
    """Shut this process in: see the module. readable: what it may read beside what Python needs; writable:
    folders in which it may do anything. Why it could not be, "" where it was."""
    if not sys.platform.startswith("linux"):
        return f"{sys.platform} has no Landlock"
    libc = _libc()
    version = libc.syscall(_CREATE_RULESET, None, 0, 1)
    if version < 1:
        return "the kernel has no Landlock"
    handled = (1 << _FILE_BITS.get(version, 16)) - 1
    network = 3 if version >= 4 else 0  # TCP: bind, connect
    scoped = 3 if version >= 6 else 0  # abstract sockets, signals
    size = 8 if version < 4 else 16 if version < 6 else 24
    made = struct.pack("<QQQ", handled, network, scoped)[:size]
    rules = libc.syscall(_CREATE_RULESET, made, size, 0)
    if rules < 0:
        return f"Landlock refuses ({os.strerror(ctypes.get_errno())})"
    try:
        for path, access in _allowed(readable).items():
            _allow(libc, rules, path, access & handled)
        for path in writable:
            _allow(libc, rules, path, handled)
        libc.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if libc.syscall(_RESTRICT_SELF, rules, 0) != 0:
            return f"Landlock refuses ({os.strerror(ctypes.get_errno())})"
    finally:
        os.close(rules)
    if os.readlink("/proc/self/ns/user") != _first_user_namespace():
        with contextlib.suppress(ImportError, OSError, ValueError):
            import resource

            resource.setrlimit(resource.RLIMIT_NPROC, (_PROCESSES, _PROCESSES))
    return ""


def shut_as_told() -> str:
    """Shut this process in as its environment says."""
    return shut(tuple(filter(None, os.environ.get(CONFINED, "").split(os.pathsep))))


def _first_user_namespace() -> str:
    return f"user:[{0xEFFFFFFD}]"


def _allowed(readable: Sequence[str]) -> dict[str, int]:
    """What may be read (and run), and the few devices that may be written."""
    # Of the program its two lower floors alone: what judges, and what others handed in, is not to be read.
    ours = [str(_ROOT / name) for name in ("engine", "kernels")]
    python = [path for path in sys.path if path and Path(path).resolve() != _ROOT]
    system = ["/usr", "/lib", "/lib64", "/bin", "/etc", "/sys", "/proc"]
    kept = [sys.prefix, sys.base_prefix, sys.exec_prefix, sys.pycache_prefix or ""]
    found = {path: _READ for path in (*ours, *python, *system, *kept, *readable) if path}
    return found | {
        "/dev/null": _READ_FILE | _WRITE_FILE,
        "/dev/urandom": _READ_FILE,
        "/dev/zero": _READ_FILE,
    }


def _allow(libc: ctypes.CDLL, rules: int, path: str, access: int) -> None:
    try:
        opened = os.open(path, _OPEN_PATH)
    except OSError:
        return  # not there on this machine
    try:
        if not os.path.isdir(path):
            access &= ~_READ_DIR
        libc.syscall(_ADD_RULE, rules, _PATH_BENEATH, struct.pack("<Qi", access, opened), 0)
    finally:
        os.close(opened)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
