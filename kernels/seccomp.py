"""System calls that a process of a user's kernels does without.

Such a process is stopped while nobody asks for its work. What it has started would go on all the same: other
processes, timers (which can also have it go on itself), the system's own asynchronous reads, counters that
interrupt a core. Numbers and layouts are those of linux/seccomp.h, linux/filter.h and linux/audit.h.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct

_SET_NO_NEW_PRIVS = 38
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_MODE_FILTER, _ALL_THREADS, _AS_FAST_AS_BEFORE = 1, 1, 4
_ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_OTHER_NUMBERS = 0x40000000  # of x86_64's second set
# fork, vfork, timer_create, timerfd_create, io_setup, perf_event_open, sched_setattr, bpf, ptrace
_REFUSED = {
    "x86_64": (57, 58, 222, 283, 206, 298, 314, 321, 101),
    "aarch64": (107, 85, 0, 241, 274, 280, 117),
}
# clone3, whose flags a filter cannot see, and io_uring_setup: whoever calls them has another way
_ABSENT = (435, 425)
_CLONE = {"x86_64": 56, "aarch64": 220}
_THREAD = 0x10000  # of clone's flags: it starts no process
_NUMBER, _ARCH, _FIRST_ARGUMENT = 0, 4, 16  # of struct seccomp_data
_LOAD, _EQUAL, _AT_LEAST, _ANY_OF, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000


def program(machine: str) -> bytes:
    """The filter, of instructions of eight bytes each."""
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


def install() -> bool:
    """From now on no thread of this process may call any of these: the call fails (EPERM, ENOSYS). Whether
    the system has such filters, for this machine."""
    machine = os.uname().machine
    if machine not in _SECCOMP:
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    code = program(machine)
    held = ctypes.create_string_buffer(code, len(code))
    told = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(held))  # struct sock_fprog
    if libc.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return False
    # As fast as before: else older systems hold such a process back against leaks that are none here.
    return bool(libc.syscall(_SECCOMP[machine], _MODE_FILTER, _ALL_THREADS | _AS_FAST_AS_BEFORE, told) == 0)
