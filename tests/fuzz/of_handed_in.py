"""Hand-ins of a class, one of them changed: its author may lose their exercises, and nobody else's row
differs."""

from __future__ import annotations

import gzip
import io
import os
import random
import shutil
import tarfile
import warnings
import zipfile
from functools import cache
from pathlib import Path

import msgspec

from bench.extras.course import grading, people, written
from bench.extras.course.grading import Class
from bench.extras.course.marks import marks
from bench.extras.course.records import Asked, Exercise, Grade, Graded, GradeJob, Student, Threshold
from bench.extras.course.submissions import HandedIn, students
from tests.bench.extras.course import classroom
from tests.fuzz import changes

JOB = GradeJob(
    name="fuzzed",
    deadline="2026-11-30T23:59:00+00:00",
    exercises=(
        Exercise(name="a", op="gemm", params={}, points=5, thresholds=(Threshold(rung="blas", ratio=1.0),)),
        Exercise(name="b", op="pool", params={}, file="9*"),
    ),
    questions=(
        Asked(name="why", text="?"),
        Asked(name="n", text="?", kind="number", answer=5.0, within=0.1, points=2),
        Asked(name="c", text="?", kind="choice", choices=("x", "y"), answer="x"),
    ),
)
ANSWERS = b'why = "memory"\nn = 5.1\nc = "x"\n'
OTHERS = ("Anna B", "anna_b", "bert")
WRITTEN = 20  # of so many hand-ins one has all that is written of a class written, too
# What a header or an answer may hold that no reader likes.
VALUES = [
    "9" * 5000, "0x" + "f" * 5000, "[" * 20000, "{a = " * 3000, "nan", "-inf", "1e999",
    '"""', "'''", "\x00", "\x1b[2J", "\u202e", "=cmd()", "<script>", "2026-13-99", "1979-05-27T07:32:00Z",
    "'" * 40000, "[[a]]\n" * 4000, "true", "{}", '"' + "x" * 50000 + '"', "\r", "\ufeff",
    "9223372036854775808", "9223372036854775807", "-9223372036854775808", "-0.0", "[1, 2]",
]  # fmt: skip
KEYS = ["n", "x", "needs.a", "[needs]", "a." * 30000 + "a", '"' + "k" * 3000 + '"']
NAMES = [
    "90_mine.py", "answers.toml", "_helper.py", "a b", "a_b", "Anna B", "ANNA_B", "anna_b.py", "bert.zip",
    "..x", "-rf", "con", "=1+1.py", "Jose\u0301.py", "\u674e\u96f7.py", "x" * 200, "doe_1_2_90_mine.py",
    "doe_LATE_1_2_x.zip", "Jane_7_assignsubmission_file", "submission_9", "a\nb.py", "\udcff\udcfe.py",
    "(.py", "[a-z].py", "%s.py", "{0}.py", "roster.tar.gz", ".hidden.py", "a\\b.py", "a:b.py", "\u202ex.py",
]  # fmt: skip


@cache
def kernels() -> tuple[bytes, bytes]:
    return classroom.kernel("gemm", "right").encode(), classroom.kernel("pool", "right").encode()


@cache
def honest(folder: Path) -> tuple[Path, tuple[HandedIn, ...]]:
    """The class without the one that is changed, and what is read of it."""
    base = folder / "class"
    shutil.rmtree(base, ignore_errors=True)
    gemm, pool = kernels()
    for name in OTHERS:
        (base / name).mkdir(parents=True)
        (base / name / "90_gemm.py").write_bytes(gemm)
        (base / name / "91_pool.py").write_bytes(pool)
        (base / name / "answers.toml").write_bytes(ANSWERS)
    return base, students(base, JOB)


def handed_in(folder: Path, drawn: random.Random) -> int:
    """A hand-in of any kind beside those of others: read, marked, and written for all of them."""
    base, before = honest(folder)
    own = base / drawn.choice(NAMES)
    while own.exists():
        own = base / f"{drawn.randrange(1000)} {drawn.choice(NAMES)}"[:200]
    try:
        hand_in(own, drawn)
        graded_before = drawn.random() < 0.5
        found = students(base, JOB, known=[one.student for one in before] if graded_before else ())
        unharmed(before, found, own, graded_before)
        if drawn.randrange(WRITTEN) == 0:
            write(folder / "out", found)
    finally:
        if own.is_dir() and not own.is_symlink():
            shutil.rmtree(own)
        else:
            own.unlink(missing_ok=True)
    return 1


def unharmed(before: tuple[HandedIn, ...], found: tuple[HandedIn, ...], own: Path, kept: bool) -> None:
    """Raises RuntimeError where another's row is touched, or the own one is missing. kept: they were graded
    before, and keep what their files are called, too."""

    def row(one: HandedIn | None) -> object:
        if one is None or kept:
            return one
        return one.texts, one.helpers, msgspec.structs.replace(one.student, key="")

    others = {one.student.who: one for one in before}
    now = {one.student.who: one for one in found}
    for who, one in others.items():
        if row(now.pop(who, None)) != row(one):
            raise RuntimeError(f"{one.student.name}'s row is another beside {own.name!a}")
    if len(now) != (not own.name.startswith(".")):
        raise RuntimeError(f"{own.name!a} has {len(now)} rows")
    if len({people.folded(one.student.key) for one in found}) != len(found):
        raise RuntimeError("two students' files would be one")
    for one in found:
        if set(one.texts) | set(one.student.problems) != {"a", "b"} or set(one.student.digests) != {"a", "b"}:
            raise RuntimeError(f"an exercise of {one.student.key} is lost")


def write(out: Path, found: tuple[HandedIn, ...]) -> None:
    """All that a grading leaves, as if each kernel had passed."""
    of = Class(JOB, found)
    graded = [
        Graded(case=case, disposition="ok", digest=one.student.digests[case.exercise])
        for one in found
        for case in of.cases
        if case.student == one.student.key and case.exercise in one.texts
    ]
    graded += grading.without_kernel(of, of.cases)
    header = of.header()
    msgspec.json.decode(msgspec.json.encode(header), type=Grade)
    for one in graded:
        msgspec.json.decode(msgspec.json.encode(one), type=Graded)
    named: list[Student] = [one.student for one in found]
    written.write(out, header, marks(JOB, named, graded))
    shutil.rmtree(out)


# ----------------------------------------------------------------------------------------------- what is made


def hand_in(own: Path, drawn: random.Random) -> None:
    """Something at a path, of any kind."""
    match drawn.randrange(8):
        case 0:
            own.write_bytes(content(drawn))
        case 1:
            own.write_bytes(drawn.choice([packed_zip, packed_tar])(drawn))
        case 2:
            special(own, drawn)
        case _:
            own.mkdir()
            for _ in range(drawn.randint(0, 5)):
                place = own
                for _ in range(drawn.choice([0, 0, 0, 1, 2, 30])):
                    place = place / drawn.choice(["a", "b b", ".c", "__pycache__", "\udcff"])
                place.mkdir(parents=True, exist_ok=True)
                path = place / name(drawn)
                if not os.path.lexists(path):
                    special(path, drawn) if drawn.random() < 0.1 else path.write_bytes(content(drawn))


def name(drawn: random.Random) -> str:
    found = drawn.choice(
        [*NAMES, "90_mine.py", "91_mine.py", "answers.toml", "answers.toml", "x.zip", "x.tar.gz"]
    )
    return found if len(os.fsencode(found)) < 240 else found[:50]


def special(path: Path, drawn: random.Random) -> None:
    """What is no file."""
    match drawn.randrange(4):
        case 0:
            os.mkfifo(path)
        case 1:
            path.symlink_to(
                drawn.choice([".", "..", "/dev/zero", "/etc", "nowhere", path.parent / "90_gemm.py"])
            )
        case 2:
            path.mkdir()
        case _:
            with path.open("wb") as file:
                file.truncate(drawn.choice([1 << 40, 17 << 20, 2 << 20]))


def content(drawn: random.Random) -> bytes:
    """The bytes of a file: a kernel, answers or an archive, changed."""
    match drawn.randrange(8):
        case 0 | 1:
            return text(drawn.choice(kernels()), drawn, "# ")
        case 2 | 3:
            return text(ANSWERS, drawn, "")
        case 4:
            return changes.turned(drawn.choice(kernels()), drawn)
        case 5:
            return packed_zip(drawn)
        case 6:
            return packed_tar(drawn)
        case _:
            return drawn.randbytes(drawn.choice([0, 1, 100, 5000]))


def text(honest_text: bytes, drawn: random.Random, mark: str) -> bytes:
    """A text with a value of its header replaced, a line said twice or left out, or another put in."""
    lines = honest_text.decode().split("\n")
    for _ in range(drawn.randint(1, 3)):
        at = drawn.randrange(min(len(lines), 10))
        key, equals, _ = lines[at].partition("=")
        match drawn.randrange(4):
            case 0 if equals:
                lines[at] = f"{key}= {drawn.choice(VALUES)}"
            case 1:
                del lines[at]
            case 2:
                lines.insert(at, lines[at])
            case _:
                lines.insert(at, f"{mark}{drawn.choice(KEYS)} = {drawn.choice(VALUES)}")
        lines = lines or [""]
    data = "\n".join(lines).encode("utf-8", "surrogatepass")
    return changes.turned(data, drawn, 400) if drawn.random() < 0.2 else data


def members(drawn: random.Random) -> list[tuple[str, bytes]]:
    inner = [text(drawn.choice(kernels()), drawn, "# "), ANSWERS, drawn.choice(kernels()), b""]
    if drawn.random() < 0.1:
        inner.append(bytes(3 << 20))
    names = [
        drawn.choice(["", "a/", "../", "/etc/", "a\\"]) + name(drawn) for _ in range(drawn.randint(0, 5))
    ]
    return [(called.encode("utf-8", "replace").decode(), drawn.choice(inner)) for called in names]


def packed_zip(drawn: random.Random) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", drawn.choice([0, 8, 8, 8, 12, 14])) as archive:
        for called, data in members(drawn):
            info = zipfile.ZipInfo(called)
            info.compress_type = archive.compression
            info.external_attr = drawn.choice([0o644, 0o120777, 0o040755, 0]) << 16
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # of a name drawn twice
                archive.writestr(info, data)
    return broken(held.getvalue(), drawn)


def packed_tar(drawn: random.Random) -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w", format=drawn.choice([0, 1, 2])) as archive:
        for called, data in members(drawn):
            info = tarfile.TarInfo(called[:90])
            info.type = drawn.choice([b"0", b"0", b"0", b"1", b"2", b"3", b"5", b"6", b"S", b"x"])
            info.linkname = drawn.choice(["", "/etc/passwd", "90_gemm.py", called[:90]])
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    plain = broken(held.getvalue(), drawn)
    return broken(gzip.compress(plain, 1), drawn)


def broken(data: bytes, drawn: random.Random) -> bytes:
    """Half of them are left whole."""
    if drawn.random() < 0.5:
        return data
    if drawn.random() < 0.2:
        return data[: drawn.randrange(len(data) + 1)]
    return changes.turned(data, drawn, 600)
