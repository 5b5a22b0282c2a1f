"""The client of tests.gui.forked: `forked_client.py ADDRESS WORDS…` is a process of these words, Python's
executable the first, for whoever has started it. It loads little: this is run as each of the window's
processes."""

import marshal
import os
import socket
import sys

TAKEN = b"taken"


def run(address, words):
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as end:
            end.connect(f"\0{address}")  # of no file
            socket.send_fds(end, [marshal.dumps((words, dict(os.environ), os.getcwd()))], [0, 1, 2])
            if end.recv(len(TAKEN)) == TAKEN:
                null = os.open(os.devnull, os.O_RDWR)
                for fd in range(3):  # nobody but the other has them open
                    os.dup2(null, fd)
                _end_as(marshal.loads(end.recv(16)))
    except OSError:
        pass
    os.execv(words[0], words)


def _end_as(status):
    """End as one that has ended with this status."""
    if os.WIFSIGNALED(status):
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2:])
