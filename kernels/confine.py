"""Restrictions for a process that runs untrusted code: no network, no files, no other processes, limited
memory. What the system does not offer is left out, and reported.

- `isolate_network` is for a process that has started no thread yet: it gets a user namespace and a network
  namespace of its own.
- `restrict` is for a process that runs only kernels: it may read what Python needs, write nothing, and signal
  or trace no process (Landlock, Linux 5.13 and later; signals from 6.12 on). Processes that it starts are
  restricted, too.
- `forbid_background_work` is for every process of a user's kernels: nothing that it started goes on while it
  is stopped, and it cannot change the machine for others, nor this program, its caches and results.
- `shut_in` is for what a stranger wrote (`course grade`), in its place: another root, with few files in it;
  no right, no signal, no socket and no setting of others; limits. Whoever built that root, and a wall around
  the judge as well, says so in the environment (bench.extras.course.walls).
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

# For `shut_in`: the folder that is to be the root; where the temporary folder lies in it; MiB of memory (0:
# no limit); the user that it becomes ("": whoever started it, who is not root).
WALLED_ROOT = "KERNELSCOPE_WALLED_ROOT"
WALLED_TMP = "KERNELSCOPE_WALLED_TMP"
WALLED_MIB = "KERNELSCOPE_WALLED_MIB"
WALLED_UID = "KERNELSCOPE_WALLED_UID"
OPEN = "KERNELSCOPE_KERNELS_NOT_KEPT"  # set: `forbid_background_work` does nothing
KEPT = "KERNELSCOPE_NOT_WRITTEN"  # folders that no process of a user's kernels may write to, with os.pathsep
_ROOT = Path(__file__).resolve().parents[1]
_NEWUSER, _NEWNET = 0x10000000, 0x40000000
_SET_NO_NEW_PRIVS, _SET_DUMPABLE = 38, 4
_LAST_CAP = 63
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
_PROCESSES = 512  # and threads, in a namespace or of a user of their own
_OPEN_FILES = 256
_BESIDE_DATA_MIB = 1024  # of addresses: stacks, what is mapped and what is reserved


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
    kept = keeps()
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
    os.environ[KEPT] = os.pathsep.join(dict.fromkeys((*_named(), whole)))


def keeps() -> tuple[Path, ...]:
    """The folders that no process of a user's kernels that is started now may write to."""
    names = [str(_ROOT), str(cache_dir()), sys.prefix, sys.base_prefix]
    names += [site.getusersitepackages(), *_named()]
    if compiled := os.environ.get("KERNELSCOPE_COMPILED"):  # where ours lie, see kernels.numba_support
        names.append(compiled)
    return tuple(map(Path, names))


def _named() -> list[str]:
    return [name for name in os.environ.get(KEPT, "").split(os.pathsep) if name]


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


def walled() -> bool:
    """Whether what strangers wrote is to be shut in by `shut_in`, in this process or in those it starts."""
    return WALLED_ROOT in os.environ


def shut_in(kept: int = 2) -> None:
    """Shut this process in as the environment says (WALLED_ROOT and those beside it): it is about to run, or
    to compile, what a stranger wrote. To be called by a process with one thread. kept: the descriptor that
    stays open beside the first three; what is printed goes nowhere. Raises OSError with the reason; then
    nothing may be run."""
    global _forbidden
    import resource

    root, tmp = os.environ[WALLED_ROOT], os.environ[WALLED_TMP]
    null = os.open(os.devnull, os.O_RDWR)
    for printed in (1, 2):  # which else lead to a file of the judge's, and may fill the disk
        os.dup2(null, printed)
    os.closerange(3, kept)
    os.closerange(max(3, kept + 1), os.sysconf("SC_OPEN_MAX"))
    if not stranger():
        _own_user_namespace()
    os.chroot(root)
    os.chdir(tmp)
    mib = int(os.environ.get(WALLED_MIB) or 0)
    for which, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NPROC, _PROCESSES),
        (resource.RLIMIT_NOFILE, _OPEN_FILES),
        *(((resource.RLIMIT_AS, _mapped_nbytes() + (mib + _BESIDE_DATA_MIB << 20)),) if mib else ()),
    ):
        _, hard = resource.getrlimit(which)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(which, (most, most))
    if mib:
        limit_memory(mib)
    become_stranger()
    told = {"HOME": tmp, "TMPDIR": tmp, "NUMBA_CACHE_DIR": tmp, "KERNELSCOPE_CACHE": f"{tmp}/cache"}
    for name in [name for name in os.environ if name.startswith(("KERNELSCOPE_", "PYTHON"))]:
        del os.environ[name]
    os.environ.update(told)
    _forbidden = True
    if not install_filter(walled=True):
        raise OSError(errno.ENOSYS, "this system has no seccomp filter for this processor")


def stranger() -> int:
    """The user that what strangers wrote runs as; 0: whoever started it."""
    return int(os.environ.get(WALLED_UID) or 0)


def become_stranger() -> None:
    """This process is that user from now on, and has no rights of root's."""
    if uid := stranger():
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    _without(*range(_LAST_CAP + 1))


def remove(folder: Path) -> None:
    """Remove what a stranger may have made: so many files and folders, in each other to any depth, that
    `shutil.rmtree` does not manage. A folder that something is mounted at stays, empty."""
    import subprocess

    subprocess.run(["/bin/rm", "-rf", "--", str(folder)], stderr=subprocess.DEVNULL, check=False)


@contextlib.contextmanager
def for_stranger() -> Iterator[None]:
    """Meanwhile this process acts as that user where it would act as root: a container's root may set the
    cores of its own processes alone."""
    if not (uid := stranger()):
        yield
        return
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)


def _own_user_namespace() -> None:
    """In which this process may change its root, and owns nothing. Raises OSError."""
    ids = os.geteuid(), os.getegid()
    libc = _libc()
    if libc.unshare(_NEWUSER) != 0:
        raise OSError(ctypes.get_errno(), "no user namespace can be made")
    libc.prctl(_SET_DUMPABLE, 1, 0, 0, 0)  # who is hidden may not write there either
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{ids[0]} {ids[0]} 1")
    Path("/proc/self/gid_map").write_text(f"{ids[1]} {ids[1]} 1")
    libc.prctl(_SET_DUMPABLE, 0, 0, 0, 0)


def _mapped_nbytes() -> int:
    """Bytes of addresses that this process has; 0 where /proc is not there to say."""
    with contextlib.suppress(OSError), open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    return 4 << 30


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
# For a stranger's kernel no newer call is there: nobody has looked at what one could do with it, and all
# libraries can do without.
_NEWER = 451
_COLUMN = {"x86_64": 0, "aarch64": 1}  # of the tables below; -1: that processor has no such call
_REFUSED = {  # for every user's kernel
    "fork": (57, -1), "vfork": (58, -1), "timer_create": (222, 107), "timerfd_create": (283, 85),
    "io_setup": (206, 0), "perf_event_open": (298, 241), "sched_setattr": (314, 274), "bpf": (321, 280),
    "ptrace": (101, 117), "socket": (41, 198),  # by which another process could be asked to do the work
}  # fmt: skip
_REFUSED_WALLED = {  # for a stranger's, beside those
    # How others are run, and this process beside them.
    "setpriority": (141, 140), "sched_setparam": (142, 118), "sched_setscheduler": (144, 119),
    "sched_setaffinity": (203, 122), "ioprio_set": (251, 30), "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    # What others hold, and signals to them.
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "process_madvise": (440, 440),
    "process_mrelease": (448, 448), "kcmp": (312, 272), "pidfd_open": (434, 434), "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424), "tkill": (200, 130), "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240), "userfaultfd": (323, 282),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    # Mounts and namespaces.
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "unshare": (272, 97), "setns": (308, 268), "open_tree": (428, 428), "move_mount": (429, 429),
    "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433),
    "mount_setattr": (442, 442), "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265),
    # Sockets of any family; what is there to be asked through stays.
    "connect": (42, 203), "accept": (43, 202), "accept4": (288, 242), "bind": (49, 200),
    "listen": (50, 201), "socketpair": (53, 199),
    # What the system has said of others, and dates of files, by which one kernel could tell the next.
    "syslog": (103, 116), "utime": (132, -1), "utimes": (235, -1), "futimesat": (261, -1),
    "utimensat": (280, 88),
    # What several see at once of a file that all may read, or of the machine: by it one could tell another
    # what it saw. Locks, how many names, who opens what, what lies in memory, room; how much there is of all.
    "flock": (73, 32), "link": (86, -1), "linkat": (265, 37), "inotify_init": (253, -1),
    "inotify_init1": (294, 26), "fanotify_init": (300, 262), "preadv2": (327, 286), "pwritev2": (328, 287),
    "mincore": (27, 232), "statfs": (137, 43), "fstatfs": (138, 44), "ustat": (136, -1),
    "sysinfo": (99, 179), "quotactl": (179, 60), "quotactl_fd": (443, 443), "get_robust_list": (274, 100),
    # What others wait for: a disk, and files that have to be read from it once more.
    "sync": (162, 81), "syncfs": (306, 267), "fsync": (74, 82), "fdatasync": (75, 83),
    "sync_file_range": (277, 84), "fadvise64": (221, 223), "readahead": (187, 213),
    # How the way to its judge behaves; segments of the processor.
    "setsockopt": (54, 208), "modify_ldt": (154, -1),
    # Memory that no limit counts.
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "shmget": (29, 194), "semget": (64, 190),
    "msgget": (68, 186), "mq_open": (240, 180),
}  # fmt: skip
# clone3, whose flags a filter cannot see, and io_uring: whoever calls them has another way.
_ABSENT = {"clone3": (435, 435), "io_uring_setup": (425, 425)}
_ABSENT_WALLED = {"io_uring_enter": (426, 426), "io_uring_register": (427, 427)}
# PR_SET_PDEATHSIG: that it ends with who started it may be said again, and not taken back.
_PRCTL, _ENDS_WITH, _SIGKILL = (157, 167), 1, 9
# Calls of a stranger's kernel that are refused by an argument, given by its place: where it is one of these;
_REFUSED_WITH = {
    # To wake who waits at a place that several processes have mapped: FUTEX_WAKE, FUTEX_REQUEUE,
    # FUTEX_CMP_REQUEUE, FUTEX_WAKE_OP, FUTEX_WAKE_BITSET without FUTEX_PRIVATE_FLAG.
    "futex": ((202, 98), 1, (1, 3, 4, 5, 10)),
    # MADV_MERGEABLE: the system compares pages meanwhile. MADV_COLD, MADV_PAGEOUT: others read them anew.
    "madvise": ((28, 233), 2, (12, 20, 21)),
    # PR_SCHED_CORE: a core whose other half stands still meanwhile; PR_SET_MEMORY_MERGE.
    "prctl": (_PRCTL, 0, (62, 67)),
}
# or where it is none of these;
_ALLOWED_WITH = {
    # F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC, F_GETPIPE_SZ, F_GET_SEALS. Not signals by
    # the system, pinned memory, locks and leases, nor a hint that stays with a file.
    "fcntl": ((72, 25), 1, (0, 1, 2, 3, 4, 1030, 1032, 1034)),
    # TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX.
    "ioctl": ((16, 29), 1, (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)),
    # The system's clocks and its own processor time. Any other number is the processor time of another.
    "clock_gettime": ((228, 113), 0, tuple(range(12))),
    "clock_getres": ((229, 114), 0, tuple(range(12))),
    "clock_nanosleep": ((230, 115), 0, tuple(range(12))),
}
# or where it is neither of this process nor, if that is said, 0: the argument that says whose it is.
_ALLOWED_OF_ITSELF = {
    "kill": ((62, 129), 0, False),
    "tgkill": ((234, 131), 0, False),
    "prlimit64": ((302, 261), 0, True),
    # Whether others are there, and how they are run.
    "getpgid": ((121, 155), 0, True),
    "getsid": ((124, 156), 0, True),
    "sched_getparam": ((143, 121), 0, True),
    "sched_getscheduler": ((145, 120), 0, True),
    "sched_getaffinity": ((204, 123), 0, True),
    "sched_getattr": ((315, 275), 0, True),
    "sched_rr_get_interval": ((148, 127), 0, True),
    "getpriority": ((140, 141), 1, True),
    "ioprio_get": ((252, 31), 1, True),
}
_CLONE = {"x86_64": 56, "aarch64": 220}
_THREAD = 0x10000  # of clone's flags: it starts no process
_NUMBER, _ARCH, _FIRST_ARGUMENT = 0, 4, 16  # of struct seccomp_data
_LOAD, _EQUAL, _AT_LEAST, _ANY_OF, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000


def filter_program_of(machine: str, walled: bool = False) -> bytes:
    """The seccomp filter for this process: instructions of eight bytes each. walled: for a stranger's
    kernel."""
    refused, absent, column = _ERROR | errno.EPERM, _ERROR | errno.ENOSYS, _COLUMN[machine]
    steps = [(_LOAD, 0, 0, _ARCH), (_EQUAL, 1, 0, _ARCHITECTURE[machine]), (_RETURN, 0, 0, refused)]
    steps += [(_LOAD, 0, 0, _NUMBER), (_AT_LEAST, 0, 1, _NEWER if walled else _OTHER_NUMBERS)]
    steps += [(_RETURN, 0, 0, absent)]
    for numbers in (_REFUSED | _REFUSED_WALLED if walled else _REFUSED).values():
        steps += [(_EQUAL, 0, 1, numbers[column]), (_RETURN, 0, 0, refused)] if numbers[column] >= 0 else []
    for numbers in (_ABSENT | _ABSENT_WALLED if walled else _ABSENT).values():
        steps += [(_EQUAL, 0, 1, numbers[column]), (_RETURN, 0, 0, absent)]
    if walled:
        for numbers, place, values in _REFUSED_WITH.values():
            tests = [step for value in values for step in ((_EQUAL, 0, 1, value), (_RETURN, 0, 0, refused))]
            if numbers == _PRCTL:
                tests += [(_EQUAL, 0, 3, _ENDS_WITH), (_LOAD, 0, 0, _FIRST_ARGUMENT + 8)]
                tests += [(_EQUAL, 1, 0, _SIGKILL), (_RETURN, 0, 0, refused)]
            steps += _on_argument(numbers[column], place, [*tests, (_RETURN, 0, 0, _ALLOW)])
        own = {name: (os.getpid(), 0) if it[2] else (os.getpid(),) for name, it in _ALLOWED_OF_ITSELF.items()}
        of_itself = ((it[0], it[1], own[name]) for name, it in _ALLOWED_OF_ITSELF.items())
        for numbers, place, values in (*_ALLOWED_WITH.values(), *of_itself):
            tests = [step for value in values for step in ((_EQUAL, 0, 1, value), (_RETURN, 0, 0, _ALLOW))]
            steps += _on_argument(numbers[column], place, [*tests, (_RETURN, 0, 0, refused)])
    steps += [(_EQUAL, 0, 3, _CLONE[machine]), (_LOAD, 0, 0, _FIRST_ARGUMENT)]
    steps += [(_ANY_OF, 1, 0, _THREAD), (_RETURN, 0, 0, refused), (_RETURN, 0, 0, _ALLOW)]
    return b"".join(struct.pack("<HBBI", *step) for step in steps)


_Step = tuple[int, int, int, int]


def _on_argument(number: int, place: int, then: Sequence[_Step]) -> list[_Step]:
    """What is done with a call of this number, by the lower half of an argument: all that they are of."""
    return [(_EQUAL, 0, len(then) + 1, number), (_LOAD, 0, 0, _FIRST_ARGUMENT + 8 * place), *then]


def install_filter(walled: bool = False) -> bool:
    """From now on these system calls fail (EPERM, ENOSYS) in every thread of this process. Returns whether
    the system has such filters for this machine."""
    machine = os.uname().machine
    if machine not in _SECCOMP:
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    code = filter_program_of(machine, walled)
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
