"""A class of whom each tries to gain, to learn what is not for students, or to harm others (`hostile.toml`),
each beside an honest classmate, graded behind a wall; what of it succeeded (a bite) is counted.

`python -m tests.bench.extras.course.hostile [--walls bubblewrap|uid] [--part 1/4] [NAME…]` grades them and
says what bit; exit code 1 where something did. `--no-walls` grades the few that do no harm to this machine
(`HARMLESS`), and each of them has to bite: else this command would not see what it is to find.

A bite is:
- what a student is told holds a hidden shape, a secret of the grader's environment, a file that is not
  theirs;
- a listener outside hears something; a process, a file or a change is left behind;
- a row is missing, or the grading ends; an honest classmate has another band than alone;
- the work of others, or half of it, passes; or honest work looks faster than it is.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from bench.extras.course import walls
from bench.extras.course.records import KIND, Graded
from kernels import processes, registry
from tests import sampling

CORPUS = Path(__file__).with_name("hostile.toml")
ROOT = Path(__file__).resolve().parents[4]
# Some that stand for the others.
SAMPLE = (
    "environment-on-the-stack", "says-it-later", "slows-all", "a-listener-by-its-path", "onnxruntime",
    "cuda-secrets",
)  # fmt: skip
# Without a wall these do what they are to do, and no more.
HARMLESS = ("environment", "passwd", "secrets", "a-rung-by-name")
ASSIGNMENT = """\
name = "hostile"
device = "{device}"
[limits]
seconds = {seconds}
budget = {budget}
memory_mib = 1024
[[exercise]]
name = "softmax"
op = "softmax"
params = {{outer = 400, axis = 100, inner = 1}}
points = 10
checks = "quick"
{thresholds}
[[exercise.hidden]]
params = {{outer = 3, axis = 70001, inner = 1}}
"""
THRESHOLDS = """\
[[exercise.threshold]]
rung = "stable"
ratio = 0.4
points = 5
[[exercise.threshold]]
rung = "stable"
ratio = 2.5
points = 20
"""
SECRET = "kept-by-the-grader-7c1f"
CANARY = "written-by-somebody-else-b02e"
# Hidden sizes as they are, and their product; what lies in files; names of the judge's.
TOLD = re.compile(
    rf"70[,' ]?001|210[,' ]?003|0x11171\b|{SECRET}|{CANARY}|root:[x*!$]|daemon:|nologin", re.IGNORECASE
)
ALONE = 2  # the band of who works honestly: right, and as fast as the rung that it is
FASTER = 1.6  # than the rung that it is: no honest work is

_TEXT = """

import ctypes, os, sys, time
import numpy as np

libc = ctypes.CDLL(None, use_errno=True)
PORT, PATH, NAME, SECRETS, SEEN = {port}, {path!r}, {name!r}, {secrets!r}, []
_honest = bind


def leak(text):
    raise ValueError(text)


def nr(x86, arm):
    return x86 if os.uname().machine == "x86_64" else arm


{top}


def bind(p, inputs, output, workspace):
{bind}
    work = _honest(p, inputs, output, workspace)

    def run():
{run}
        work()

    return run
"""


@dataclass(frozen=True)
class Submission:
    """See the corpus."""

    name: str
    run: str = ""
    top: str = ""
    bind: str = ""
    cuda: str = ""
    kernel: str = ""
    gains: bool = False


@dataclass
class Outside:
    """What students are to leave alone, and what it hears. folder: where files lie that are not theirs."""

    folder: Path
    heard: list[str] = field(default_factory=list)
    port: int = 0

    @property
    def path(self) -> str:
        return str(self.folder / "listens")

    @property
    def name(self) -> str:
        return f"kernelscope-test-{self.folder}"

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        stream = socket.create_server(("127.0.0.1", 0))
        self.port = stream.getsockname()[1]
        datagram = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        datagram.bind(("127.0.0.1", self.port))
        path, name = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
        path.bind(self.path)
        os.chmod(self.path, 0o777)
        name.bind(f"\0{self.name}")
        ends = {"a port": stream, "a datagram's port": datagram, "a path": path, "a name": name}
        for what, end in ends.items():
            if end is not datagram:
                end.listen()
            threading.Thread(target=self._hear, args=(what, end), daemon=True).start()
        try:
            yield
        finally:
            for end in ends.values():
                end.close()

    def _hear(self, what: str, end: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                end.recv(1) if end.type == socket.SOCK_DGRAM else end.accept()
                self.heard.append(what)


def corpus() -> list[Submission]:
    return [Submission(**entry) for entry in tomllib.loads(CORPUS.read_text())["submission"]]


def text_of(submission: Submission, outside: Outside, secrets: Sequence[str]) -> str:
    """The file that is handed in."""
    source = registry.find("cpu", "softmax", "stable").source
    source = re.sub(r"# rung = \d+", "# rung = 90", source, count=1)
    source = re.sub(r'# name = "\w+"', '# name = "mine"', source, count=1)

    def indented(text: str, by: int) -> str:
        return "\n".join(" " * by + line for line in text.strip("\n").splitlines())

    if not (submission.run or submission.top or submission.bind):
        return f"{source}\nOWN = 'what was handed out, and a line more'\n"
    return source + _TEXT.format(
        port=outside.port,
        path=outside.path,
        name=outside.name,
        secrets=list(secrets),
        top=submission.top,
        bind=indented(submission.bind, 4),
        run=indented(submission.run, 8),
    )


def state(folders: Sequence[Path]) -> dict[str, str]:
    """Files that nobody's kernel is to make or change, by what is in them."""
    found = {}
    for folder in folders:
        for path in sorted(folder.rglob("*")) if folder.is_dir() else []:
            with contextlib.suppress(OSError):
                if path.is_file() and not path.is_symlink():
                    found[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def left_behind(grader: int = 0) -> set[str]:
    """Names in the places that all may write, and what a process that has ended left in the temporary
    folder."""
    found = set()
    for folder in ("/tmp", "/var/tmp", "/dev/shm", "/run", os.path.expanduser("~")):
        with contextlib.suppress(OSError):
            found |= {f"{folder}/{name}" for name in os.listdir(folder) if "left-by-a-student" in name}
    own = Path(tempfile.gettempdir()).glob(f"kernelscope-work-{grader}-*")
    return found | set(map(str, own))


def graded(base: Path, wall: str, at_once: int) -> tuple[int, int, str, dict[str, Graded]]:
    """Grade what lies in base/in: the grader's process, its exit code, all that was printed, and what came of
    each."""
    command = [
        sys.executable, str(ROOT / "main.py"), "course", "grade", str(base / "in"), "--assignment", str(base),
        "--out", str(base / "out"), "--at-once", str(at_once),
    ]  # fmt: skip
    command += ["--no-walls"] if wall == walls.NONE else ["--walls", wall]
    told = {"KEPT_SECRET": SECRET, "KERNELSCOPE_DEVICE_LOCKS": str(base / "locks")}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, **told}
    ) as process:
        said, _ = process.communicate()
    with KIND.open(base / "out") as folder:
        return process.pid, process.returncode, said, {g.case.student: g for g in folder.measurements()}


@dataclass
class Found:
    """bites: by submission ("" where it is not known whose). same: of how many honest classmates the band was
    that of whoever worked alone; busy: of how many it is not known, as other programs used the cores;
    dispositions: how each ended."""

    bites: list[tuple[str, str]] = field(default_factory=list)
    same: tuple[int, int] = (0, 0)
    busy: int = 0
    dispositions: dict[str, str] = field(default_factory=dict)
    said: str = ""


def measured(
    submissions: Sequence[Submission],
    base: Path,
    wall: str,
    at_once: int = 2,
    budget: float = 0.3,
    seconds: int = 15,
    classmates: bool = True,
) -> Found:
    """Grade these in an empty folder, with an honest classmate beside each or without."""
    processes.keep_orphans()
    outside, found = Outside(base / "outside"), Found()
    outside.folder.mkdir(parents=True)
    (outside.folder / "canary.txt").write_text(CANARY)
    submissions = [each for each in submissions if not (each.cuda or each.kernel)]
    made = ASSIGNMENT.format(device="cpu", seconds=seconds, budget=budget, thresholds=THRESHOLDS)
    (base / "assignment.toml").write_text(f"{made}# {CANARY}\n")
    beside = submissions if classmates else []
    others = {f"{n:03d}-b-honest": Submission("honest") for n in range(len(beside))}
    names = {f"{n:03d}-a-{each.name}": each for n, each in enumerate(submissions)}
    secrets = [
        str(base / "assignment.toml"), str(outside.folder / "canary.txt"),
        str(base / "in" / "zzz-alone" / "canary.txt"), str(base / "out" / "results.jsonl"),
    ]  # fmt: skip
    before_processes = {each.pid for each in psutil.process_iter()}
    with outside.listening():
        for name, each in {**names, **others, "zzz-alone": Submission("honest")}.items():
            (base / "in" / name).mkdir(parents=True)
            (base / "in" / name / "90_mine.py").write_text(text_of(each, outside, secrets))
        (base / "in" / "zzz-alone" / "canary.txt").write_text(CANARY)
        kept = [base / "in", outside.folder, ROOT / "engine", ROOT / "kernels"]
        before, before_left = state(kept), left_behind()
        grader, code, found.said, came = graded(base, wall, at_once)
    after = state(kept)
    found.bites += [("", f"the grading ended with exit code {code}: {found.said[-500:]}")] * (code != 0)
    found.bites += [("", f"{path} was changed") for path in before if after.get(path) != before[path]]
    found.bites += [
        ("", f"{path} was made") for path in after if path not in before and "pycache" not in path
    ]
    found.bites += [("", f"{path} is left") for path in sorted(left_behind(grader) - before_left)]
    found.bites += [("", f"{what} heard something") for what in sorted(set(outside.heard))]
    found.bites += [("", f"a process is left: {words}") for words in _strangers(before_processes)]
    for name, each in names.items():
        found.bites += [(each.name, why) for why in _bites(each, name, base, came.get(name))]
        if name in came:
            found.dispositions[each.name] = f"{came[name].disposition}: {came[name].reason}"
    same = 0
    for (name, _), each in zip(others.items(), beside, strict=True):
        band = came[name].band if name in came else -1
        same += band == ALONE
        if band >= 0 and came[name].undecided:
            found.busy += 1
        elif band != ALONE:
            words = came[name].reason if name in came else "there is no row"
            found.bites.append((each.name, f"the classmate beside has band {band}, not {ALONE}: {words}"))
    found.same = same, len(others)
    return found


def _bites(each: Submission, name: str, base: Path, came: Graded | None) -> Iterator[str]:
    path = base / "out" / "gradescope" / name / "results.json"
    if came is None or not path.is_file():
        yield "it has no row"
        return
    told = path.read_text()
    json.loads(told)
    row = next(
        (line for line in (base / "out" / "grades.csv").read_text().splitlines() if line.startswith(name)), ""
    )
    for text in (came.reason, *came.notes, told, row):
        if hit := TOLD.search(text):
            yield f"a student reads {hit[0]!r}: {came.reason[:200]}"
            break
    if each.gains and came.disposition == "ok":
        yield "it passed"
    if came.band > ALONE and not came.undecided:
        yield f"it has band {came.band}, and what it is has {ALONE}"
    if came.disposition == "ok" and came.value > FASTER and not came.undecided:
        yield f"it looks {came.value:.2f} times as fast as what it is"


def _strangers(before: set[int]) -> list[str]:
    """Processes that are there since, and that a grading may have left: orphans come to this process."""
    time.sleep(0.3)
    mine = {p.pid for p in psutil.Process().children(recursive=True)}
    return [
        " ".join(each.info["cmdline"] or [])[:120] or f"process {each.pid}"
        for each in psutil.process_iter(["pid", "cmdline", "status"])
        if each.pid in mine - before and each.info["status"] != psutil.STATUS_ZOMBIE
    ]


# ----------------------------------------------------------------------------------------------------- CUDA

_COMPILE = """
import sys
from pathlib import Path
from kernels import nvrtc, registry
from kernels.errors import KernelscopeError
for folder in sys.argv[1:]:
    try:
        rung = registry.find("cuda", "softmax", "mine", [Path(folder)])
        print(Path(folder).name, "|", nvrtc.compile_rung(rung, "sm_80").name, flush=True)
    except Exception as error:
        print(Path(folder).name, "|", type(error).__name__, str(error).replace(chr(10), " "), flush=True)
"""


def compiled(submissions: Sequence[Submission], base: Path, wall: str) -> Found:
    """What the compiler says of those in CUDA, and of an honest one: nothing of a file that is not theirs."""
    found, source = Found(), _cuda_source()
    (base / "work").mkdir(parents=True)
    (base / "secret.h").write_text(f"int {CANARY.replace('-', '_')} = ;\n#error {CANARY}\n")
    folders = []
    submissions = [each for each in submissions if each.cuda and not each.kernel]
    for each in [Submission("honest"), *submissions]:
        folder = base / "work" / each.name
        folder.mkdir()
        folders.append(str(folder))
        line = each.cuda.replace("SECRET", f'"{base / "secret.h"}"')
        (folder / "90_mine.cu").write_text(source + "\n" + line + "\n")
    command = [sys.executable, "-P", "-c", _COMPILE, *folders]
    around = walls.Walls(wall, "cuda", 2048, (str(base / "secret"),)).around(
        command, base / "work", {"KEPT_SECRET": SECRET, "KERNELSCOPE_CACHE": str(base / "work" / "cache")}
    )
    with around as (whole, environment):
        done = subprocess.run(
            whole, capture_output=True, text=True, env={**os.environ, **environment}, check=False
        )
    said = dict(line.split(" | ", 1) for line in done.stdout.splitlines() if " | " in line)
    found.dispositions = said
    if not said.get("honest", "").endswith(".cubin"):
        found.bites.append(("honest", f"it does not compile: {said.get('honest')} {done.stderr[-500:]}"))
    for each in submissions:
        words = said.get(each.name, "")
        if not words:
            found.bites.append((each.name, f"nothing is said of it: {done.stderr[-300:]}"))
        elif words.endswith(".cubin") or TOLD.search(words):
            found.bites.append((each.name, words))
    return found


def _cuda_source() -> str:
    source = registry.find("cuda", "softmax", 1).source
    source = re.sub(r"^rung = \d+", "rung = 90", source, count=1, flags=re.MULTILINE)
    return re.sub(r'^name = "\w+"', 'name = "mine"', source, count=1, flags=re.MULTILINE)


def launched(submissions: Sequence[Submission], base: Path, wall: str, seconds: int = 15) -> Found:
    """Grade those in CUDA that are run: on the CPU where there is no GPU. Beside them is an honest one."""
    found, submissions = Found(), [each for each in submissions if each.kernel]
    if not submissions:
        return found
    base.mkdir(parents=True)
    made = ASSIGNMENT.format(device="cuda", seconds=seconds, budget=0.05, thresholds="")
    (base / "assignment.toml").write_text(f"{made}# {CANARY}\n")
    begins = "const SoftmaxParams p) {\n"
    before, after = _cuda_source().split(begins)
    before, kernel = before.split('extern "C"')
    for each in [Submission("honest", cuda="constexpr int OWN = 1;"), *submissions]:
        folder = base / "in" / f"a-{each.name}"
        folder.mkdir(parents=True)
        whole = f'{before}{each.cuda}\nextern "C"{kernel}{begins}{each.kernel}\n{after}'
        (folder / "90_mine.cu").write_text(whole)
    grader, code, found.said, came = graded(base, wall, 1)
    found.bites += [("", f"the grading ended with exit code {code}: {found.said[-500:]}")] * (code != 0)
    found.bites += [("", f"{path} is left") for path in sorted(left_behind(grader))]
    for each in submissions:
        one = came.get(f"a-{each.name}")
        found.bites += [(each.name, why) for why in _bites(each, f"a-{each.name}", base, one)]
        if one is not None:
            found.dispositions[each.name] = f"{one.disposition}: {one.reason}"
    honest = came.get("a-honest")
    if honest is None or honest.disposition != "ok":
        found.bites.append(("honest", f"it did not pass: {honest and honest.reason}"))
    return found


def _unseen(submissions: Sequence[Submission]) -> int:
    """How many of these are not seen to bite where nothing keeps them in."""
    with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
        # None of them goes on for ever.
        found = measured(submissions, Path(folder), walls.NONE, seconds=60, classmates=False)
    bitten = {name for name, _ in found.bites}
    missed = [each.name for each in submissions if each.name not in bitten]
    for name in missed:
        print(f"NOT SEEN {name}: {found.dispositions.get(name, 'it has no row')}")
    print(f"no walls: {len(submissions) - len(missed)} of {len(submissions)} that are harmless bite")
    return len(missed)


def _share(sample: Sequence[Submission], number: int, count: int) -> Sequence[Submission]:
    """What of a sample is tried behind one of so many walls: each behind one of them, and which, by the
    commit (KERNELSCOPE_SEED=all: each behind all)."""
    first = number + sampling.number("walls")
    return sample if sampling.whole() else sample[first % count :: count]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", help="of submissions; default: all")
    parser.add_argument("--walls", choices=walls.WALLS, action="append", default=[])
    parser.add_argument("--no-walls", action="store_true", help="whether what is harmless bites")
    parser.add_argument("--part", default="1/1", help="K/N: every Nth from the Kth on")
    parser.add_argument(
        "--sample",
        action="store_true",
        help="a few that stand for the others, each behind one wall, and one without walls",
    )
    parser.add_argument("--at-once", type=int, default=2)
    parser.add_argument("--no-classmates", action="store_true", help="a third of the time")
    parser.add_argument("--seconds", type=int, default=15, help="of an exercise; more on a busy machine")
    given = parser.parse_args()
    part, parts = map(int, given.part.split("/"))
    names = given.names or (SAMPLE if given.sample else ())
    chosen = [each for each in corpus() if not names or each.name in names][part - 1 :: parts]
    bites = 0
    if given.no_walls or given.sample:
        sampling.settle()
        drawn = sampling.number("harmless") % len(HARMLESS)
        tried = HARMLESS if given.no_walls else HARMLESS[drawn : drawn + 1]
        bites += _unseen([each for each in corpus() if each.name in tried])
    there = []
    for wall in () if given.no_walls else given.walls or walls.WALLS:
        if lacking := walls.standing()[wall]:
            print(f"{wall}: not to be had here ({lacking})")
        else:
            there.append(wall)
    for number, wall in enumerate(there):
        behind = _share(chosen, number, len(there)) if given.sample else chosen
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
            found = measured(
                behind,
                Path(folder) / "cpu",
                wall,
                given.at_once,
                0.05 if given.no_classmates else 0.3,
                given.seconds,
                not given.no_classmates,
            )
            more = compiled(behind, Path(folder) / "cuda", wall)
            run = launched(behind, Path(folder) / "launched", wall, given.seconds)
        for name, what in sorted((found.dispositions | more.dispositions | run.dispositions).items()):
            print(f"  {name}: {what[:160]}")
        every = found.bites + more.bites + run.bites
        for whose, why in every:
            print(f"BITE {whose or '(whose is not known)'}: {why}")
        same, of = found.same
        count = len(every)
        bites += count
        print(
            f"{wall}: {count} bites of {len(behind)} submissions; the classmate beside had the same band as "
            f"alone in {same} of {of} (not decided: {found.busy}); {time.monotonic() - began:.0f} s"
        )
    return 1 if bites else 0


if __name__ == "__main__":
    sys.exit(main())
