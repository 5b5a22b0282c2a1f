"""A machine elsewhere that is this one: OpenSSH's own server on the loopback, with a port, keys and a home of
its own. The client finds it by a name, through a configuration of its own, as in a `~/.ssh/config`."""

from __future__ import annotations

import contextlib
import getpass
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from bench.extras.remote import places
from bench.extras.remote.there import OURS, WHOLE
from bench.words import version

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
HOST = "loopback"
needs_sshd = pytest.mark.skipif(
    not (SSHD and shutil.which("ssh")), reason="openssh-server or openssh-client is not installed"
)


@dataclass
class Loopback:
    """folder: of keys, logs and configuration; home: of the user there. `ssh` on PATH is the client with this
    configuration, while this is in use (`entered`)."""

    folder: Path
    port: int = 0
    process: subprocess.Popen[bytes] | None = None
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def log(self) -> str:
        return (self.folder / "sshd.log").read_text(errors="replace")

    def start(self) -> None:
        """Also again, after `stop`: on the same port."""
        self.port = self.port or _free_port()
        (self.folder / "sshd_config").write_text(self._config())
        assert SSHD is not None
        words = [SSHD, "-D", "-e", "-f", str(self.folder / "sshd_config")]
        with (self.folder / "sshd.log").open("ab") as log:
            # In a session of its own, so that `stop` finds all that it started.
            self.process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stderr=log, start_new_session=True
            )
        until = time.monotonic() + 20
        while time.monotonic() < until:
            if self.process.poll() is not None:
                raise AssertionError(f"sshd ended with {self.process.returncode}: {self.log}")
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1) as asked:
                asked.recv(4)
                return
            time.sleep(0.02)
        raise AssertionError(f"sshd does not answer: {self.log}")

    def place(self, name: str = "lab", **entries: Any) -> places.Place:
        """A place here as if this program had been installed: the environment of the tests, this program."""
        folder = self.home / ".kernelscope-place"
        env, program = folder / "env-tests", folder / "program-tests"
        if not folder.exists():
            (program / "kernelscope").mkdir(parents=True)
            (program / "kernelscope" / "_program").symlink_to(version.ROOT)
            (program / WHOLE).touch()
            self.link_environment(env)
            (folder / OURS).write_text("tests")
        known = {
            "host": HOST,
            "folder": str(folder),
            "python": sys.executable,
            "version": version.described(),
        }
        place = places.Place(name=name, env=env.name, program=program.name, **known | entries)
        places.save(place)
        return place

    def link_environment(self, env: Path) -> None:
        """The environment of the tests as one that was installed there."""
        env.mkdir(parents=True)
        for part in ("bin", "lib", "pyvenv.cfg"):
            (env / part).symlink_to(Path(sys.prefix, part))
        (env / WHOLE).touch()

    def lead_through(self, port: int) -> None:
        """Have the client reach this server through another port, as of a proxy."""
        kind, key, *_ = (self.folder / "host_key.pub").read_text().split()
        with (self.folder / "known_hosts").open("a") as known:
            known.write(f"[127.0.0.1]:{port} {kind} {key}\n")
        config = self.folder / "config"
        config.write_text(config.read_text().replace(f"Port {self.port}\n", f"Port {port}\n"))

    def stop(self) -> None:
        """The server and its connections; what sessions there have left behind goes on."""
        if self.process is not None:
            for pid in [*self.connections(), self.process.pid]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self.process.wait()
            self.process = None

    def connections(self) -> list[int]:
        """Processes of the server, one or two for each connection."""
        assert self.process is not None
        found, look = [], [self.process.pid]
        while look:
            pid = look.pop()
            with contextlib.suppress(OSError):
                for child in map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()):
                    if Path(f"/proc/{child}/comm").read_text().startswith("sshd"):
                        found.append(child)
                        look.append(child)
        return found

    def cut(self) -> None:
        """Every connection that there is breaks; new ones can be made."""
        for pid in self.connections():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _config(self) -> str:
        own, folder = {"HOME": str(self.home)} | self.variables, self.folder
        lines = {
            "Port": self.port,
            "ListenAddress": "127.0.0.1",
            "HostKey": f'"{folder / "host_key"}"',
            "PidFile": "none",
            "AuthorizedKeysFile": f'"{folder / "authorized_keys"}"',
            "StrictModes": "no",
            "UsePAM": "no",
            "PasswordAuthentication": "no",
            "KbdInteractiveAuthentication": "no",
            "PermitRootLogin": "yes",
            "MaxStartups": "100",
            "MaxSessions": "100",
            "SetEnv": " ".join(f'"{name}={value}"' for name, value in own.items()),
        }
        return "".join(f"{name} {value}\n" for name, value in lines.items())


def _free_port() -> int:
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        port: int = asked.getsockname()[1]
        return port


@contextlib.contextmanager
def loopback(folder: Path, **variables: str) -> Iterator[Loopback]:
    """A server that is ended with the block. variables: of every command there, beside its HOME."""
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # where a server of root's keeps its unprivileged part
    there = Loopback(folder, variables=variables)
    there.home.mkdir(parents=True)
    for name in ("host_key", "key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    shutil.copyfile(folder / "key.pub", folder / "authorized_keys")
    there.start()
    kind, key, *_ = (folder / "host_key.pub").read_text().split()
    (folder / "known_hosts").write_text(f"[127.0.0.1]:{there.port} {kind} {key}\n")
    (folder / "config").write_text(
        f"Host {HOST}\n  HostName 127.0.0.1\n  Port {there.port}\n  User {getpass.getuser()}\n"
        f'  IdentityFile "{folder / "key"}"\n  IdentitiesOnly yes\n'
        f'  UserKnownHostsFile "{folder / "known_hosts"}"\n  GlobalKnownHostsFile none\n'
    )
    own = folder / "bin" / "ssh"
    own.parent.mkdir()
    client = shutil.which("ssh")
    assert client is not None
    own.write_text(f'#!/bin/sh\nexec {client} -F {shlex.quote(str(folder / "config"))} "$@"\n')
    own.chmod(0o755)
    try:
        yield there
    finally:
        there.stop()


@contextlib.contextmanager
def entered(there: Loopback) -> Iterator[None]:
    """While the block runs, `ssh` is the client of this server, places are kept beside it, and connections
    that are kept end with it."""
    sockets = Path(f"/tmp/ks-{os.getpid()}-{there.port}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{there.folder / 'bin'}{os.pathsep}{os.environ['PATH']}")
        patch.setenv("KERNELSCOPE_CONFIG", str(there.folder / "settings" / "kernelscope.toml"))
        patch.setenv("XDG_RUNTIME_DIR", str(sockets))
        sockets.mkdir(mode=0o700)
        try:
            yield
        finally:
            for path in (sockets / "kernelscope-ssh").glob("*"):
                subprocess.run(
                    ["ssh", "-o", f"ControlPath={path}", "-O", "exit", HOST], capture_output=True, check=False
                )
            shutil.rmtree(sockets)
