"""Restrictions for a process that runs untrusted code: no network, no files, no other processes, limited
memory. What the system does not offer is left out, and reported.

- `isolate_network` is for a process that has started no thread yet: it gets a user namespace and a network
  namespace of its own.
- `restrict` is for a process that runs only kernels: it may read what Python needs, write nothing, and signal
  or trace no process (Landlock, Linux 5.13 and later; signals from 6.12 on). Processes that it starts are
  restricted, too.
- `forbid_background_work` is for every process of a user's kernels: nothing that it started goes on while it
  is stopped, and it cannot change the machine for others, nor this program, its caches and results.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import site
import struct
import sys
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path

from kernels.cache import cache_dir

# For a process that starts others apart: `engine.isolated` shuts them in where this is set.
CONFINED = "KERNELSCOPE_CONFINED"
MEMORY = "KERNELSCOPE_CONFINED_MIB"
OPEN = "KERNELSCOPE_KERNELS_NOT_KEPT"  # set: `forbid_background_work` does nothing
KEPT = "KERNELSCOPE_NOT_WRITTEN"  # folders that no process of a user's kernels may write to, with os.pathsep
NO_NETWORK = "KERNELSCOPE_CONFINED_FROM_NETWORK"  # whoever started us has taken it away
_ROOT = Path(__file__).resolve().parents[1]
_NEWUSER, _NEWNET = 0x10000000, 0x40000000
_SET_NO_NEW_PRIVS, _SET_DUMPABLE = 38, 4
_CAPBSET_DROP, _CAP_SYS_PTRACE, _CAPABILITY_VERSION_3 = 24, 19, 0x20080522
# What root may change of the machine, by the numbers of linux/capability.h: network, modules, ports,
# accounting, settings, restarts, priorities, limits, the clock, devices, counters, BPF.
_OF_THE_MACHINE = (12, 16, 17, 20, 21, 22, 23, 24, 25, 27, 38, 39)
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_PATH_BENEATH = 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _REFER = 1, 2, 4, 8, 1 << 13
_MAKE_DEVICES = 1 << 6 | 1 << 11
# Of folders: remove folders and files; make folders, files, sockets, pipes and links; truncate.
_CHANGE = 3 << 4 | 7 << 7 | 1 << 10 | 1 << 12 | 1 << 14
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | 1 << 14 | 1 << 15  # and: truncate, ioctl
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_OPEN_PATH = 0x200000 | 0x80000  # O_PATH | O_CLOEXEC
# How many kinds of access to files each version of Landlock knows.
_FILE_BITS = {1: 13, 2: 14, 3: 15, 4: 15}
_forbidden = False  # this process
_PROCESSES = 512  # and threads, in a namespace of their own


def isolate_network() -> str:
    """Take the network away from this process. Returns why that failed, "" if it worked."""
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


def hide_memory() -> None:
    """Other processes of the same user cannot read the memory or open files of this process."""
    if sys.platform.startswith("linux"):
        _libc().prctl(_SET_DUMPABLE, 0, 0, 0, 0)


def forbid_tracing() -> None:
    """This process cannot look into others that called `hide_memory`, nor write there, even as root."""
    if not sys.platform.startswith("linux"):
        return
    _without(_CAP_SYS_PTRACE)


def _without(*capabilities: int) -> None:
    """This thread, and those that it starts, lose these capabilities of root, whatever they execute."""
    libc = _libc()
    for capability in capabilities:
        libc.prctl(_CAPBSET_DROP, capability, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    sets = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable: of the first 32, then of the others
    if libc.capget(header, sets) == 0:
        for capability in capabilities:
            for place in range(3):
                sets[3 * (capability // 32) + place] &= ~(1 << capability % 32)
        libc.capset(header, sets)


def forbid_background_work() -> None:
    """This process is about to run a user's code, and is stopped while others run. From now on it cannot
    start a process, a timer or anything else that works on while it is stopped; change the machine as root
    could (its clock, counters, /proc, /sys and /dev); write, move or remove anything of this program, its
    Python and its cache (but for `writable_cache`), what `keep_unwritten` names, or a file that lies in a
    folder around these; or signal others. What the system does not offer is left out; `missing_restrictions`
    tells."""
    global _forbidden
    if not sys.platform.startswith("linux") or OPEN in os.environ:
        return
    _forbidden = True
    _without(*_OF_THE_MACHINE)
    writes = _WRITE_FILE | _CHANGE | _MAKE_DEVICES | _REFER
    places = [f"/dev/{name}" for name in ("shm", "null", "zero", "full", "urandom", "random")]
    kept = [_ROOT, cache_dir(), *map(Path, (sys.prefix, sys.base_prefix, site.getusersitepackages()))]
    kept += [Path(name) for name in os.environ.get(KEPT, "").split(os.pathsep) if name]
    if compiled := os.environ.get("KERNELSCOPE_COMPILED"):  # where ours lie, see kernels.numba_support
        kept.append(Path(compiled))
    with contextlib.suppress(OSError):  # a home that cannot be written
        writable_cache().mkdir(parents=True, exist_ok=True)
        places.append(str(writable_cache()))
        _numba_keeps(writable_cache() / "numba")
    with contextlib.suppress(OSError):  # who is shut in sees nothing of this, and writes nothing
        places += _all_but({Path("/proc"), Path("/sys"), Path("/dev"), *(path.resolve() for path in kept)})
        _restricted(dict.fromkeys(places, writes), writes, network=False)
    install_filter()


def _numba_keeps(folder: Path) -> None:
    """What a kernel has Numba keep (`@njit(cache=True)`) goes to this folder: beside the kernel, and in the
    user's own cache, it may not be written."""
    os.environ.setdefault("NUMBA_CACHE_DIR", str(folder))
    if (numba := sys.modules.get("numba")) is not None:
        numba.config.CACHE_DIR = os.environ["NUMBA_CACHE_DIR"]


def forbidden() -> bool:
    """Whether `forbid_background_work` was called in this process, and not switched off."""
    return _forbidden


def writable_cache() -> Path:
    """The part of the cache that a user's kernels may write: compiled functions, which only they load."""
    return cache_dir() / "compiled-of-users"


def keep_unwritten(folder: str) -> None:
    """No process of a user's kernels that is started from now on may write to this folder."""
    whole = str(Path(folder).expanduser().resolve())
    names = [*filter(None, os.environ.get(KEPT, "").split(os.pathsep)), whole]
    os.environ[KEPT] = os.pathsep.join(dict.fromkeys(names))


def _all_but(kept: Set[Path]) -> Iterator[str]:
    """All folders that lie beside the kept ones, or beside a folder around these. Not files that lie there:
    there may be thousands. No links: they may lead to what is kept."""
    inner = {str(path) for path in kept}
    around = {str(folder) for path in kept for folder in path.parents}
    todo = ["/"]
    while todo:
        with contextlib.suppress(OSError), os.scandir(todo.pop()) as entries:
            for entry in entries:
                if entry.path in inner or not entry.is_dir(follow_symlinks=False):
                    continue
                if entry.path in around:
                    todo.append(entry.path)
                else:
                    yield entry.path


def missing_restrictions(pid: int) -> str:
    """In words, what a process of a user's kernels could still do although `forbid_background_work` was
    called; "" if nothing."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
            status = dict(line.split(":\t", 1) for line in file if ":\t" in line)
    except OSError:  # it has ended
        return ""
    return "" if status.get("Seccomp", "0").strip() == "2" else "start processes and timers"


def limit_memory(mib: int) -> str:
    """Limit the memory of this process, and of each process that it starts, to so many MiB; no core dumps.
    Returns why that failed, "" if it worked."""
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


def restrict(readable: Sequence[str] = (), writable: Sequence[str] = ()) -> str:
    """Restrict this process; see the module. readable: what it may read beside what Python needs; writable:
    folders in which it may do anything. Returns why that failed, "" if it worked."""
    if not sys.platform.startswith("linux"):
        return f"{sys.platform} has no Landlock"
    allowed = _allowed(readable) | dict.fromkeys(writable, -1)
    try:
        _restricted(allowed, -1)
    except OSError as error:
        return str(error.strerror)
    if os.readlink("/proc/self/ns/user") != _first_user_namespace():
        with contextlib.suppress(ImportError, OSError, ValueError):
            import resource

            resource.setrlimit(resource.RLIMIT_NPROC, (_PROCESSES, _PROCESSES))
    return ""


def _restricted(allowed: Mapping[str, int], handled: int, network: bool = True) -> None:
    """From now on this thread, and those that it starts, may access files only as `allowed` says, by path.
    handled: the kinds of access that are restricted. They cannot signal processes outside; without `network`
    they may use TCP. Raises OSError with the reason."""
    libc = _libc()
    version = libc.syscall(_CREATE_RULESET, None, 0, 1)
    if version < 1:
        raise OSError(errno.ENOSYS, "the kernel has no Landlock")
    handled &= (1 << _FILE_BITS.get(version, 16)) - 1
    tcp = 3 if version >= 4 and network else 0  # bind, connect
    scoped = 3 if version >= 6 else 0  # abstract sockets, signals
    size = 8 if version < 4 else 16 if version < 6 else 24
    attributes = struct.pack("<QQQ", handled, tcp, scoped)[:size]
    rules = libc.syscall(_CREATE_RULESET, attributes, size, 0)
    if rules < 0:
        raise OSError(ctypes.get_errno(), f"Landlock refuses ({os.strerror(ctypes.get_errno())})")
    try:
        for path, access in allowed.items():
            _allow(libc, rules, path, access & handled)
        libc.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if libc.syscall(_RESTRICT_SELF, rules, 0) != 0:
            raise OSError(ctypes.get_errno(), f"Landlock refuses ({os.strerror(ctypes.get_errno())})")
    finally:
        os.close(rules)


def restrict_by_environment() -> str:
    """Restrict this process as its environment variable says."""
    return restrict(tuple(filter(None, os.environ.get(CONFINED, "").split(os.pathsep))))


def _first_user_namespace() -> str:
    return f"user:[{0xEFFFFFFD}]"


def _allowed(readable: Sequence[str]) -> dict[str, int]:
    """What may be read (and run), and the few devices that may be written."""
    # Of the program its two lower floors alone: what judges, and what others handed in, is not to be read.
    ours = [str(_ROOT / name) for name in ("engine", "kernels")]
    python = [path for path in sys.path if path and Path(path).resolve() != _ROOT]
    system = ["/usr", "/lib", "/lib64", "/bin", "/etc", "/sys", "/proc"]
    python_homes = [sys.prefix, sys.base_prefix, sys.exec_prefix, sys.pycache_prefix or ""]
    allowed = {path: _READ for path in (*ours, *python, *system, *python_homes, *readable) if path}
    return allowed | {
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
            access &= _OF_FILES
        libc.syscall(_ADD_RULE, rules, _PATH_BENEATH, struct.pack("<Qi", access, opened), 0)
    finally:
        os.close(opened)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


# -------------------------------------------------------------------------------------------------- seccomp

# System calls that a process of a user's kernels does without.
#
# Such a process is stopped while nobody asks for its work. What it has started would go on all the same:
# other processes, timers (which can also have it go on itself), the system's own asynchronous reads, counters
# that interrupt a core. Numbers and layouts are those of linux/seccomp.h, linux/filter.h and linux/audit.h.


_SECCOMP = {"x86_64": 317, "aarch64": 277}
_MODE_FILTER, _ALL_THREADS, _AS_FAST_AS_BEFORE = 1, 1, 4
_ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_OTHER_NUMBERS = 0x40000000  # of x86_64's second set
# fork, vfork, timer_create, timerfd_create, io_setup, perf_event_open, sched_setattr, bpf, ptrace;
# socket, by which another process could be asked to do the work
_REFUSED = {
    "x86_64": (57, 58, 222, 283, 206, 298, 314, 321, 101, 41),
    "aarch64": (107, 85, 0, 241, 274, 280, 117, 198),
}
# clone3, whose flags a filter cannot see, and io_uring_setup: whoever calls them has another way
_ABSENT = (435, 425)
_CLONE = {"x86_64": 56, "aarch64": 220}
_THREAD = 0x10000  # of clone's flags: it starts no process
_NUMBER, _ARCH, _FIRST_ARGUMENT = 0, 4, 16  # of struct seccomp_data
_LOAD, _EQUAL, _AT_LEAST, _ANY_OF, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000


def filter_program_of(machine: str) -> bytes:
    """The seccomp filter: instructions of eight bytes each."""
    refused, absent = _ERROR | errno.EPERM, _ERROR | errno.ENOSYS
    steps = [(_LOAD, 0, 0, _ARCH), (_EQUAL, 1, 0, _ARCHITECTURE[machine]), (_RETURN, 0, 0, refused)]
    steps += [(_LOAD, 0, 0, _NUMBER), (_AT_LEAST, 0, 1, _OTHER_NUMBERS), (_RETURN, 0, 0, absent)]
    for number in _REFUSED[machine]:
        steps += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, refused)]
    for number in _ABSENT:
        steps += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, absent)]
    steps += [(_EQUAL, 0, 3, _CLONE[machine]), (_LOAD, 0, 0, _FIRST_ARGUMENT)]
    steps += [(_ANY_OF, 1, 0, _THREAD), (_RETURN, 0, 0, refused), (_RETURN, 0, 0, _ALLOW)]
    return b"".join(struct.pack("<HBBI", *step) for step in steps)


def install_filter() -> bool:
    """From now on these system calls fail (EPERM, ENOSYS) in every thread of this process. Returns whether
    the system has such filters for this machine."""
    machine = os.uname().machine
    if machine not in _SECCOMP:
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    code = filter_program_of(machine)
    instructions = ctypes.create_string_buffer(code, len(code))
    filter_program = struct.pack(
        "HxxxxxxP", len(code) // 8, ctypes.addressof(instructions)
    )  # struct sock_fprog
    if libc.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return False
    # As fast as before: else older systems hold such a process back against leaks that are none here.
    return bool(
        libc.syscall(_SECCOMP[machine], _MODE_FILTER, _ALL_THREADS | _AS_FAST_AS_BEFORE, filter_program) == 0
    )
