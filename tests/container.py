"""The Containerfile without a tool for containers: `python -m tests.container`, as root on Debian, some
minutes.

An empty Debian with Python stands for the base image. There it copies what the file copies, runs its RUN
steps, and then, as its user, commands of Kernelscope. Needs `debootstrap`, and what `apt` and `pip`
reach. Exit codes: 0 all steps went well; 1 one did not.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "Containerfile"
SUITE = "trixie"  # what the base image is made of: its Python is the one that the file names
QUICK = "--batch 1 --images 8 --budget 0.3 --charts none"
COMMANDS = (
    "",  # the file's own CMD
    f"compare lenet5-digits --backend engine-cpu,ort-cpu {QUICK} --out run",
    "runs show run --format md",
    "ladder --new conv my_kernels --device cpu",
    "ladder conv --device cpu --model lenet5-digits --node conv1 --batch 1 --kernels my_kernels --rung mine"
    " --budget 0.2 --charts none --out ladder",
    "--version",
)


@dataclass
class Image:
    """What a Containerfile says. steps: (instruction, its words as they stand), in order."""

    base: str = ""
    arguments: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    steps: list[tuple[str, str]] = field(default_factory=list)
    user: str = ""
    folder: str = "/"
    entry: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)


def read(text: str) -> Image:
    """Raises ValueError for an instruction that is not known here."""
    image = Image()
    plain = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)
    for line in re.sub(r"\\\n\s*", "", plain).splitlines():
        name, _, rest = line.strip().partition(" ")
        if name == "FROM":
            image.base = rest
        elif name == "ARG":
            key, _, value = rest.partition("=")
            image.arguments[key] = value.strip('"')
        elif name == "ENV":
            image.environment |= dict(word.split("=", 1) for word in shlex.split(rest))
        elif name in ("COPY", "RUN"):
            image.steps.append((name, rest))
        elif name == "USER":
            image.user = rest
        elif name == "WORKDIR":
            image.folder = rest
        elif name in ("ENTRYPOINT", "CMD"):
            words = [word.strip('" ') for word in rest.strip("[]").split(",")]
            image.entry, image.command = (
                (words, image.command) if name == "ENTRYPOINT" else (image.entry, words)
            )
        elif name:
            raise ValueError(f"Containerfile: {name} is not known to tests/container.py")
    return image


def sent() -> list[str]:
    """The files that a build is given: those that git knows, less what .dockerignore leaves out."""
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    rules = [
        line
        for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines()
        if line and not line.startswith("#")
    ]
    return [name for name in names if (ROOT / name).is_file() and not _ignored(name, rules)]


def _ignored(name: str, rules: Sequence[str]) -> bool:
    """By the last rule that is about it, or about a folder that it is in."""
    parts = name.split("/")
    above = ["/".join(parts[: count + 1]) for count in range(len(parts))]
    ignored = False
    for rule in rules:
        pattern = rule.removeprefix("!").replace("**/", "*")
        if any(fnmatch.fnmatchcase(path, pattern) for path in above):
            ignored = not rule.startswith("!")
    return ignored


def copied(step: str, files: Sequence[str]) -> dict[str, str]:
    """file → where a COPY puts it. Raises ValueError if a source is not among the files."""
    *sources, to = step.split()
    found: dict[str, str] = {}
    for source in sources:
        inside = [name for name in files if name == source or name.startswith(source.rstrip("/") + "/")]
        if not inside:
            raise ValueError(f"COPY {step}: {source} is not among the files that a build is given")
        for name in inside:
            rest = name.removeprefix(source) if source.endswith("/") else Path(name).name
            found[name] = f"{to.rstrip('/')}/{rest}"
    return found


class Root:
    """A folder with a system of its own, in which commands are run."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder = folder
        self.environment = {
            "PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "LANG": "C.UTF-8",
            **environment,
        }

    def run(self, words: Sequence[str], user: str = "0:0", at: str = "/") -> int:
        """The exit code; in namespaces of its own, with /proc and /dev."""
        inner = (
            f"mount -t proc proc {self.folder}/proc && mount --rbind /dev {self.folder}/dev &&"
            f' exec chroot --userspec={user} {self.folder} sh -c "cd {at} && exec \\"\\$@\\"" sh "$@"'
        )
        outer = ["unshare", "--mount", "--pid", "--fork", "sh", "-c", inner, "sh", *words]
        environment = {**self.environment, "HOME": "/root" if user.startswith("0") else "/home/kernelscope"}
        return subprocess.run(outer, env=environment, check=False).returncode


def made(folder: Path, mirror: str) -> None:
    """An empty Debian with Python."""
    words = ["debootstrap", "--variant=minbase", "--include=python3-venv,ca-certificates", SUITE, str(folder)]
    subprocess.run([*words, mirror] if mirror else words, check=True, stdout=subprocess.DEVNULL)


def begun(folder: Path, base: Path | None, mirror: str) -> None:
    """An empty Debian, or a copy of one that was made before, which reaches what is reached here."""
    if base is not None:
        # Its devices are copied as devices, and not read.
        subprocess.run(["cp", "--archive", "--one-file-system", str(base), str(folder)], check=True)
    else:
        made(folder, mirror)
    for name in ("/etc/resolv.conf", "/etc/hosts", "/etc/ssl/certs/ca-certificates.crt", "/etc/pip.conf"):
        if Path(name).exists():  # what reaches the packages here
            shutil.copyfile(name, folder / name[1:])


def prepared(folder: Path) -> None:
    """Its Python is found as in the base image: in /usr/local, with pip, and nobody's."""
    if Root(folder, {}).run(["python3", "-m", "venv", "/usr/local"]):
        raise OSError("python3 -m venv did not come out")


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.container", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--extra", default="", help="the build argument EXTRA")
    parser.add_argument("--mirror", default="", help="where debootstrap fetches packages (default: its own)")
    parser.add_argument("--base", type=Path, metavar="DIR", help="a system that debootstrap made before")
    asked = parser.parse_args(given)
    image = read(FILE.read_text("utf-8"))
    if asked.extra:
        image.arguments["EXTRA"] = asked.extra
    with tempfile.TemporaryDirectory() as kept:
        folder = Path(kept) / "root"
        begun(folder, asked.base, asked.mirror)
        prepared(folder)
        reached = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        building = Root(folder, {**reached, **image.arguments})
        files = sent()
        for name, step in image.steps:
            print(f"{name} {step}", flush=True)
            if name == "COPY":
                for file, to in copied(step, files).items():
                    target = folder / to[1:]
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(ROOT / file, target)
            elif code := building.run(["sh", "-c", step]):
                print(f"exit code {code}")
                return 1
        used = Root(folder, image.environment)
        # As its user: it can write where it has to, and nowhere in the program.
        if not used.run(["touch", "/opt/lib/kernelscope/_program/x"], image.user, image.folder):
            print("the user of the image can write into the program")
            return 1
        for command in COMMANDS:
            words = [*image.entry, *(shlex.split(command) or image.command)]
            print(f"$ {shlex.join(words)}", flush=True)
            if code := used.run(words, image.user, image.folder):
                print(f"exit code {code}")
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
