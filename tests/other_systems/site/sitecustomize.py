"""Python runs this at its start: see tests/other_systems/__init__.py."""

import builtins
import os
import subprocess
import sys
import types

SYSTEM = os.environ.get("KERNELSCOPE_TEST_SYSTEM", "")
PROGRAM = ("main", "bench", "engine", "gui", "kernels", "models")
HIDDEN = ("/proc", "/sys", "/dev/shm", "/etc/os-release")

# What a module has on Linux and not there, by the beginning of its names.
LACKS = {
    "win32": {
        "os": (
            *("fork", "forkpty", "sched_", "getuid", "geteuid", "getgid", "getegid", "getloadavg", "killpg"),
            *("setsid", "getpriority", "setpriority", "PRIO_", "nice", "memfd_create", "MFD_", "pidfd_open"),
            *("waitid", "wait3", "wait4", "P_", "WNOHANG", "WSTOPPED", "WCONTINUED", "WEXITED", "WNOWAIT"),
            *("sysconf", "posix_", "getpgid", "setpgid", "mkfifo", "chown", "fchmod", "O_NOFOLLOW", "uname"),
            *("O_NONBLOCK", "O_CLOEXEC", "O_DIRECTORY", "O_PATH", "pipe2", "openpty", "eventfd", "statvfs"),
        ),
        "signal": (
            *(
                "SIGKILL",
                "SIGSTOP",
                "SIGCONT",
                "SIGHUP",
                "SIGUSR",
                "SIGALRM",
                "SIGCHLD",
                "SIGPIPE",
                "SIGQUIT",
            ),
            *(
                "SIGBUS",
                "SIGTSTP",
                "SIGTTOU",
                "SIGTTIN",
                "setitimer",
                "getitimer",
                "ITIMER_",
                "alarm",
                "pause",
            ),
            *("pthread_", "sigwait", "siginterrupt", "sigpending"),
        ),
        "select": ("poll", "epoll", "EPOLL", "POLL"),
        "socket": ("AF_UNIX", "send_fds", "recv_fds", "MSG_DONTWAIT", "SOCK_SEQPACKET"),
        "time": ("clock_gettime", "CLOCK_", "pthread_"),
    },
    "darwin": {
        "os": (
            *("sched_get", "sched_set", "memfd_create", "MFD_", "pidfd_open", "waitid", "P_", "O_PATH"),
            *("eventfd", "posix_fadvise", "posix_fallocate", "splice", "copy_file_range", "pipe2"),
        ),
        "signal": ("SIGSTKFLT", "SIGPWR", "SIGPOLL", "sigtimedwait", "sigwaitinfo"),
        "select": ("epoll", "EPOLL"),
        "socket": ("MSG_CMSG_CLOEXEC",),
        "resource": ("prlimit", "RLIMIT_MSGQUEUE", "RLIMIT_NICE", "RLIMIT_RTPRIO"),
    },
}
ABSENT = {
    "win32": {"fcntl", "resource", "pwd", "grp", "termios", "pty", "tty", "syslog", "readline"},
    "darwin": set(),
}
NAMES = {"win32": ("nt", "Windows"), "darwin": ("posix", "Darwin")}


def _ours(depth: int = 2) -> bool:
    """Whether a module of the program calls, directly or by pathlib."""
    frame = sys._getframe(depth)
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name.partition(".")[0] not in (
            "pathlib",
            "os",
            "io",
            "genericpath",
            "posixpath",
            "glob",
            "shutil",
        ):
            return name.partition(".")[0] in PROGRAM or name == "__main__"
        frame = frame.f_back
    return False


def _is_hidden(path: object) -> bool:
    return isinstance(path, (str, os.PathLike)) and os.fspath(path).startswith(HIDDEN)


def _hides(real: types.FunctionType) -> types.FunctionType:
    """The same function, for which what is hidden is not there if the program asks."""

    def asked(path="", *rest: object, **more: object) -> object:
        if _is_hidden(path) and _ours():
            raise FileNotFoundError(2, "No such file or directory", os.fspath(path))
        return real(path, *rest, **more)

    return asked


def _lacking(real: types.ModuleType, **changed: object) -> types.ModuleType:
    """A module as the other system has it."""
    lacks = LACKS[SYSTEM].get(real.__name__, ())
    made = types.ModuleType(real.__name__, real.__doc__)
    for name, value in vars(real).items():
        if not name.startswith(lacks) or not lacks:
            setattr(made, name, value)
    for name, value in changed.items():
        setattr(made, name, value)
    return made


class _Sys(types.ModuleType):
    """The real one, whose state others change, but for the platform."""

    def __getattr__(self, name: str) -> object:
        return getattr(sys, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(sys, name, value)


def _windows_ctypes() -> types.ModuleType:
    """With a kernel32 that makes job objects which do nothing."""
    import ctypes
    import ctypes.wintypes

    class Function:
        restype = argtypes = None

        def __call__(self, *_: object) -> int:
            return 1

    class Kernel32:
        def __init__(self, *_: object, **__: object) -> None:
            pass

        def __getattr__(self, name: str) -> Function:
            made = self.__dict__[name] = Function()
            return made

    def library(name: object, *rest: object, **more: object) -> object:
        if name is None:
            raise TypeError("LoadLibrary() argument 1 must be str, not None")
        return ctypes.CDLL(name, *rest, **more)

    subprocess.Popen._handle = 0  # type: ignore[attr-defined]
    return _lacking(ctypes, WinDLL=Kernel32, CDLL=library)


def _msvcrt() -> types.ModuleType:
    """Locks by those of this system."""
    import errno
    import fcntl

    made = types.ModuleType("msvcrt")
    made.LK_NBLCK, made.LK_UNLCK = 2, 0

    def locking(descriptor: int, _mode: int, _nbytes: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise PermissionError(errno.EACCES, "Permission denied") from error

    made.locking = locking
    return made


def install() -> None:
    import pathlib
    import platform
    import select
    import signal
    import socket
    import time

    for absent in filter(None, os.environ.get("KERNELSCOPE_TEST_WITHOUT", "").split(",")):
        sys.modules[absent] = None  # type: ignore[assignment]
    name, system = NAMES[SYSTEM]
    fake_sys = _Sys("sys")
    vars(fake_sys)["platform"] = SYSTEM
    for function in ("listdir", "stat", "scandir", "open", "readlink", "lstat"):
        setattr(os, function, _hides(getattr(os, function)))
    builtins.open = _hides(builtins.open)
    for method in ("open", "read_text", "read_bytes", "stat", "iterdir"):
        setattr(pathlib.Path, method, _hides(getattr(pathlib.Path, method)))
    changed = {module.__name__: _lacking(module) for module in (signal, select, socket, time)}
    changed["os"] = _lacking(os, name=name)
    changed["sys"] = fake_sys
    changed["platform"] = _lacking(platform, system=lambda: system)
    if SYSTEM == "win32":
        changed["ctypes"], changed["msvcrt"] = _windows_ctypes(), _msvcrt()
    else:
        import resource

        changed["resource"] = _lacking(resource)
    real = builtins.__import__

    def imported(name, globals=None, locals=None, fromlist=(), level=0):
        whose = (globals or {}).get("__name__", "").partition(".")[0]
        if level or not (whose in PROGRAM or whose == "__main__"):
            return real(name, globals, locals, fromlist, level)
        if name in ABSENT[SYSTEM]:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        if name in changed:
            return changed[name]
        found = real(name, globals, locals, fromlist, level)
        top = name.partition(".")[0]
        return changed[top] if top in changed and not fromlist else found

    builtins.__import__ = imported


if SYSTEM:
    install()
