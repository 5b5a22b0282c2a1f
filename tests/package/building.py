"""Building the source distribution and the wheel, and what they must and must not hold."""

from __future__ import annotations

import email
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.words import version

ROOT = Path(__file__).resolve().parents[2]
MOST_NBYTES = 15 << 20  # of a wheel
INSIDE = "kernelscope/_program/"
# Of each room of the program something that no import would miss.
SHIPPED = (
    "main.py",
    "LICENSE",
    "commit.txt",
    "pyproject.toml",
    "models/catalogue.toml",
    "models/data/digits.npz",
    "models/weights/lenet5-digits.npz",
    "bench/results/sample_run/results.jsonl",
    "bench/views/reports/templates/report.html.j2",
    "bench/words/glossary.md",
    "kernels/cuda/conv/01_naive.cu",
    "engine/cuda/stirring.cu",
    "gui/base/pictures",
    "docs/conformance.md",
)


def uv() -> str:
    """The uv that make has installed, or another."""
    beside = Path(sys.executable).with_name("uv")
    found = str(beside) if beside.is_file() else shutil.which("uv")
    if found is None:
        sys.exit("uv is not to be had: `pip install uv` brings it")
    return found


def run(*words: str | Path, cwd: Path = ROOT, **variables: str) -> str:
    """A command; what it said. Ends the program with that where it fails."""
    done = subprocess.run(
        list(map(str, words)),
        cwd=cwd,
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}: exit code {done.returncode}\n{done.stdout}")
    return done.stdout


def build(folder: Path, source: Path = ROOT) -> tuple[Path, Path]:
    """The source distribution, and the wheel that is built from it. Equal sources make equal bytes: no time
    of day is in them."""
    run(uv(), "build", "--quiet", "--clear", "--out-dir", folder, source, SOURCE_DATE_EPOCH=str(epoch()))
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return sdist, wheel


def build_wheel(folder: Path, source: Path = ROOT) -> Path:
    """The wheel from the files as they lie here, without a source distribution."""
    variables = {"SOURCE_DATE_EPOCH": str(epoch())}
    run(uv(), "build", "--quiet", "--wheel", "--out-dir", folder, source, **variables)
    return next(folder.glob("*.whl"))


def epoch() -> int:
    """When the commit was made, in seconds; of a copy that has no history, the earliest that a zip file can
    say."""
    if not (ROOT / ".git").exists():
        return 315532800
    return int(run("git", "log", "-1", "--format=%ct"))


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def faults(names: Sequence[str], nbytes: int, metadata: str) -> Iterator[str]:
    """What is wrong with a wheel of these files, of that size, that says this of itself."""
    tops = {name.partition("/")[0] for name in names}
    if strange := {top for top in tops if top != "kernelscope" and not top.endswith(".dist-info")}:
        yield f"there is more than one package at its top: {', '.join(sorted(strange))}"
    for name in SHIPPED:
        if not any(it == INSIDE + name or it.startswith(f"{INSIDE}{name}/") for it in names):
            yield f"{name} is missing"
    wrong = r"(^|/)(tests?|__pycache__|\.[^/]*)/|\.pyc$|/test_[^/]*\.py$|^kernelscope/_program/runs/"
    for name in names:
        if re.search(wrong, name):
            yield f"{name} is none of a user's"
    if nbytes > MOST_NBYTES:
        yield f"{nbytes:,} bytes are more than {MOST_NBYTES:,}"
    told = email.message_from_string(metadata)
    if told["Version"] != version.version():
        yield f"it calls itself {told['Version']}, and pyproject.toml {version.version()}"
    needed = told.get_all("Requires-Dist") or []
    if runtimes := [line for line in needed if re.match("onnxruntime", line) and "extra ==" not in line]:
        yield f"it brings a build of ONNX Runtime by itself: {runtimes[0]}"
    for extra in ("cpu", "cuda", "cuda12", "nvrtc", "cluster"):
        if not any(re.search(rf"extra == ['\"]{extra}['\"]", line) for line in needed):
            yield f"the extra {extra} is missing"
    if "make run" not in str(told.get_payload()):
        yield "the README is not its description"


def wheel_faults(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        return [*faults(names, wheel.stat().st_size, archive.read(metadata).decode())]


def sdist_faults(sdist: Path) -> list[str]:
    """It holds every file of the repository, and no other but what tells the commit."""
    with tarfile.open(sdist) as archive:
        names = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    if not (ROOT / ".git").exists():
        return []
    tracked = set(filter(None, run("git", "ls-files", "-z", "--cached").split("\0")))
    tracked = {name for name in tracked if (ROOT / name).exists()}
    missing, strange = tracked - names, names - tracked - {"PKG-INFO", "commit.txt"}
    return [*(f"{name} is missing" for name in missing), *(f"{name} is not ours" for name in strange)]
