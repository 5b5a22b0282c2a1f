"""CUDA rungs in Python: found by their headers, refused where their compiler is missing, compiled by a
process apart, and launched as every other."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from bench.measure.ladder import compiled
from kernels import confine, environment, launch, nvrtc, registry
from kernels.errors import KernelError, UnavailableError
from kernels.languages import compiling
from kernels.languages.known import languages
from kernels.languages.signature import signature
from kernels.ops import OPS, codes
from kernels.ops.gemm import Gemm
from kernels.ops.softmax import Softmax

pytestmark = pytest.mark.slow

PACKAGES = Path(__file__).with_name("packages")
ROWS = Softmax(64, 10, 1)
# Defines of the launch shapes.
SHAPES = ("ROWS", "WIDTH", "KH", "KW", "N", "K", "TRANS_A", "TRANS_B", "STRIDE_A", "STRIDE_B")
RUNGS = [rung for op in OPS for rung in registry.rungs("cuda", op) if rung.language]
MINE = """# op = "softmax"
# rung = 90
# name = "mine"
# idea = "Mine."
# language = "triton"
# launch = "softmax_programs"
{more}import triton
import triton.language as tl
{top}

@triton.jit
def softmax({arguments}):
    pass
"""
ARGUMENTS = "x, y, outer, axis, inner, log_of_it, ROWS: tl.constexpr, WIDTH: tl.constexpr"


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No environment of this machine's, and a cache of the test's own."""
    monkeypatch.delenv("KERNELSCOPE_PYTHON_LANGUAGES", raising=False)
    monkeypatch.setenv("KERNELSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(environment, "ROOT", tmp_path)


@pytest.fixture
def triton(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for the package, where this Python and the isolated process find it."""
    monkeypatch.syspath_prepend(str(PACKAGES))
    monkeypatch.setenv("PYTHONPATH", str(PACKAGES))
    environment._place.cache_clear()
    yield
    environment._place.cache_clear()


@pytest.fixture
def nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither of the packages is installed."""
    monkeypatch.setattr(environment, "_place", lambda *_: None)


def write(folder: Path, text: str = "", more: str = "", top: str = "", arguments: str = ARGUMENTS) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "90_mine.py"
    path.write_text(text or MINE.format(more=more, top=top, arguments=arguments))
    return path


def mine(folder: Path, **changed: str) -> registry.Rung:
    write(folder / "kernels", **changed)
    return registry.find("cuda", "softmax", 90, [folder / "kernels"])


def test_each_language_has_conv_gemm_and_softmax_beside_the_ladder() -> None:
    assert {(rung.language, rung.op) for rung in RUNGS} == {
        (name, op) for name in languages() for op in ("conv", "gemm", "softmax")
    }
    for rung in RUNGS:
        assert rung.side
        assert rung not in registry.candidates("cuda", rung.op, rung.precision)
        assert rung not in registry.side_rungs("cuda", rung.op, rung.precision), "not everybody has it"
        takes = signature(rung.path, rung.op, rung.source)
        assert set(takes.constants) <= codes().keys() | {*rung.defines, *SHAPES}


@pytest.mark.usefixtures("nothing")
@pytest.mark.parametrize("rung", RUNGS, ids=lambda rung: f"{rung.op}-{rung.name}")
def test_without_its_package_a_rung_is_listed_and_refused_and_fails_nothing(rung: registry.Rung) -> None:
    params = {"softmax": ROWS, "gemm": Gemm(4, 4, 4)}.get(rung.op) or next(
        shape.params for shape in OPS["conv"](1, 1, 4, 4, 1, 3, 3, 2, 2).small_shapes()
    )
    language = languages()[rung.language]
    told = compiled.compiled(rung, params, "sm_90")
    assert told.disposition == "unsupported"
    assert told.reason == f"needs {language.title}: pip install {language.install}, or `make languages`"
    assert told.case.language == language.title
    with pytest.raises(UnavailableError, match=f"needs {language.title}: pip install"):
        nvrtc.compile_rung(rung, "sm_90")


@pytest.mark.parametrize("below", ["", "softmax", "cuda/softmax"])
def test_a_file_of_python_is_for_the_device_that_its_header_says(tmp_path: Path, below: str) -> None:
    write(tmp_path / below)
    cpu = 'op = "softmax"\nrung = 91\nname = "other"\nidea = "Mine; language = none."\n'
    (tmp_path / below / "91_other.py").write_text("".join(f"# {line}\n" for line in cpu.splitlines()))
    found = {device: registry.rungs(device, "softmax", [tmp_path]) for device in ("cuda", "cpu")}
    assert [rung.name for rung in found["cuda"] if rung.user] == ["mine"]
    assert "mine" not in [rung.name for rung in found["cpu"]]
    if not below.startswith("cuda"):
        assert [rung.name for rung in found["cpu"] if rung.user] == ["other"]


def test_what_a_header_may_say_of_a_language(tmp_path: Path) -> None:
    path = write(tmp_path)
    told = path.read_text()
    path.write_text(told.replace('"triton"\n', '"tritn"\n'))
    with pytest.raises(KernelError, match=r"language 'tritn' is unknown \(did you mean 'triton'"):
        registry.rungs("cuda", "softmax", [tmp_path])
    path.unlink()
    header = "".join(line[2:] + "\n" for line in told.splitlines() if line.startswith("# "))
    (tmp_path / "90_mine.cu").write_text(f"/*\n{header}*/\n")
    with pytest.raises(KernelError, match=r"'language' is said by a \.py file for CUDA alone"):
        registry.rungs("cuda", "softmax", [tmp_path])


@pytest.mark.usefixtures("triton")
def test_what_is_asked_of_the_compiler_and_what_becomes_of_the_launch(tmp_path: Path) -> None:
    rung = mine(tmp_path, arguments="x, y, axis, has_x, outer, ROWS: tl.constexpr, WIDTH: tl.constexpr")
    assert rung.refusal(ROWS, (9, 0)) is None
    how = launch.launch(ROWS, rung)
    cubin = nvrtc.compile_rung(rung, "sm_90", how.defines)
    asked = json.loads(cubin.read_bytes()[4:])
    assert asked == {
        "signature": {"x": "*fp32", "y": "*fp32", "axis": "i32", "has_x": "i32", "outer": "i64"}
        | {"ROWS": "constexpr", "WIDTH": "constexpr"},
        "constants": {"ROWS": 16, "WIDTH": 16},
        "arch": 90,
        "num_warps": 1,
        "num_stages": 3,
    }
    whole = compiling.settled(how, rung, cubin)
    (stage,) = whole.stages("softmax")
    assert (stage.function, stage.grid, stage.block, stage.shared_nbytes) == (
        "softmax",
        (4, 1, 1),
        (32, 1, 1),
        8192,
    )
    given = whole.arguments([1000], 2000, 0, rung, stage)
    assert given == (1000, 2000, 10, 1, 64, 0, 0)
    assert [type(it) for it in given[2:5]] == [np.int32, np.int32, np.int64]
    assert whole.arguments([0], 2000, 0, rung, stage)[3] == 0, "it is not there"
    used = nvrtc.resources(cubin, "softmax")
    assert used is not None
    assert used.registers == 40
    assert nvrtc.assembly(rung, "sm_90", how.defines)[0].startswith(".visible .entry softmax(")


@pytest.mark.usefixtures("triton")
def test_what_was_compiled_is_kept_until_anything_of_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rung = mine(tmp_path)
    first = nvrtc.compile_rung(rung, "sm_90", {"ROWS": 1, "WIDTH": 2})
    asked: list[str] = []
    monkeypatch.setattr(compiling, "_run", lambda rung, language, folder, told: asked.append(told) or "")
    assert nvrtc.compile_rung(rung, "sm_90", {"ROWS": 1, "WIDTH": 2}) == first
    assert not asked
    for arch, width in (("sm_80", 2), ("sm_90", 4)):
        with pytest.raises(KernelError, match="Triton said nothing"):
            nvrtc.compile_rung(rung, arch, {"ROWS": 1, "WIDTH": width})
    assert len(asked) == 2
    first.with_suffix(".json").unlink()
    with pytest.raises(KernelError, match="Triton said nothing"):
        nvrtc.compile_rung(rung, "sm_90", {"ROWS": 1, "WIDTH": 2})


@pytest.mark.usefixtures("triton")
def test_mistakes_are_told_with_the_file_and_its_line(tmp_path: Path) -> None:
    for changed, message in (
        ({"arguments": "x, y, axs"}, r"90_mine\.py: softmax takes 2 pointers .*, and x, y, axs stand there"),
        (
            {"arguments": "x, y, axis, axs"},
            r"90_mine\.py:12: axs is no scalar of softmax; there are outer, axis",
        ),
        ({"arguments": "x, axis"}, r"90_mine\.py:12: softmax takes 2 pointers first, .* and 1 stand there"),
        ({"arguments": "x, y, WIDE: tl.constexpr"}, r"90_mine\.py: no define is called WIDE"),
        ({"arguments": "x, y, *more"}, r"90_mine\.py:12: softmax takes plain arguments only"),
        ({"top": "def f(:"}, r"90_mine\.py:9: "),
        ({"top": "import nowhere"}, r"90_mine\.py:9: softmax 90 mine does not compile for sm_90: No module"),
        (
            {"text": MINE.replace("def softmax", "def sftmax")},
            r"90_mine\.py: it must define the function softmax",
        ),
    ):
        if "text" in changed:
            changed["text"] = changed["text"].format(more="", top="", arguments=ARGUMENTS)
        rung = mine(tmp_path, **changed)
        how = launch.launch(ROWS, rung)
        with pytest.raises(KernelError, match=message):
            compiling.settled(how, rung, nvrtc.compile_rung(rung, "sm_90", how.defines))


def test_a_package_that_compiles_nothing_here_is_refused_as_a_missing_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that knows no NumPy as new as ours: what fails is no fault of the rung's."""
    package = tmp_path / "packages" / "triton"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise AttributeError(\"module 'numpy' has no attribute 'old'\")\n")
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    monkeypatch.setattr(environment, "_place", lambda *_: package)
    rung = mine(tmp_path)
    told = compiled.compiled(rung, ROWS, "sm_90")
    assert told.disposition == "unsupported"
    assert told.reason.startswith(
        "cannot be compiled here: Triton does not compile the least kernel there is ("
    )
    assert "has no attribute 'old'" in told.reason
    assert "`make languages`" in told.reason


@pytest.mark.usefixtures("triton")
def test_blocks_of_another_size_than_was_compiled_for_are_refused(tmp_path: Path) -> None:
    rung = mine(tmp_path)
    how = launch.launch(ROWS, rung)
    cubin = nvrtc.compile_rung(rung, "sm_90", {**how.defines, "WARPS": 8})
    with pytest.raises(
        KernelError, match=r"blocks of 32 threads, and it is compiled for 256; WARPS is to be 1"
    ):
        compiling.settled(how, rung, cubin)


@pytest.mark.sampled(4, "long")
@pytest.mark.usefixtures("triton")
def test_a_file_that_never_ends_is_ended_and_one_that_ends_its_process_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiling, "WAIT_S", 1.0)
    with pytest.raises(KernelError, match=r"was not compiled by Triton within 1 s"):
        nvrtc.compile_rung(mine(tmp_path, top="while True: pass"), "sm_90", {"ROWS": 1, "WIDTH": 2})
    monkeypatch.setattr(compiling, "WAIT_S", 60.0)
    with pytest.raises(KernelError, match="Triton said nothing"):
        nvrtc.compile_rung(mine(tmp_path, top="import os; os._exit(0)"), "sm_90", {"ROWS": 1, "WIDTH": 2})


@pytest.mark.usefixtures("triton")
@pytest.mark.parametrize(
    ("written", "message"),
    [
        ({"failed.json": "{"}, r"wrote failed\.json itself"),
        ({"failed.json": "[]"}, r"wrote failed\.json itself"),
        ({"failed.json": '{"text": 1, "line": 0, "language": ""}'}, r"wrote failed\.json itself"),
        ({"facts.json": "[" * 100_000}, r"wrote facts\.json itself"),
        ({"facts.json": '{"shared_nbytes": 0, "threads": 32}'}, r"wrote facts\.json itself"),
        (
            {"facts.json": '{"shared_nbytes": 0, "threads": 32, "hidden": 1000000000000}'},
            "is said to have hidden = 1,000,000,000,000, and 64 is the most",
        ),
    ],
    ids=["broken", "a list", "no text", "deep", "a fact less", "a fact too large"],
)
def test_a_file_that_speaks_for_its_compiler_is_not_believed(
    written: dict[str, str], message: str, tmp_path: Path
) -> None:
    """What it says is kept beside the cubin, and read by who launches it."""
    files = {"rung.cubin": "", "rung.ptx": "", "rung.log": "", **written}
    write = f"import os, pathlib; [pathlib.Path(n).write_text(t) for n, t in {files!r}.items()]; os._exit(0)"
    rung = mine(tmp_path, top=write)
    with pytest.raises(KernelError, match=message):
        nvrtc.compile_rung(rung, "sm_90", {"ROWS": 1, "WIDTH": 2})
    assert not list((tmp_path / "cache").glob("cubin/*.cubin"))


@pytest.mark.usefixtures("triton")
@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked for in /proc")
def test_a_file_leaves_no_process_behind(tmp_path: Path) -> None:
    told = tmp_path / "told"
    fork = "import os, time; child = os.fork()"
    wait = "os.close(2) or time.sleep(100) if child == 0 else os._exit(0)"
    rung = mine(tmp_path, top=f"{fork}; {wait}")
    marked = f"KERNELSCOPE_MARKED={told}".encode()
    os.environ["KERNELSCOPE_MARKED"] = str(told)
    try:
        with pytest.raises(KernelError, match="said nothing"):
            nvrtc.compile_rung(rung, "sm_90", {"ROWS": 1, "WIDTH": 2})
    finally:
        del os.environ["KERNELSCOPE_MARKED"]
    left: list[int] = []
    for _ in range(50):  # what is killed takes a moment to be gone
        left = []
        for place in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                left += [int(place.parent.name)] if marked in place.read_bytes() else []
        if not left:
            break
        time.sleep(0.1)
    assert left == []


@pytest.mark.usefixtures("triton")
def test_a_file_writes_nowhere_but_into_its_own_folder(tmp_path: Path) -> None:
    code = "from kernels import confine; print(confine.restrict())"
    root = str(Path(confine.__file__).parents[1])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=True)
    if done.stdout.strip():
        pytest.skip(done.stdout.strip())
    victim = tmp_path / "victim"
    rung = mine(tmp_path, top=f"open({str(victim)!r}, 'w')")
    with pytest.raises(KernelError, match=r"90_mine\.py:9: .*Permission denied"):
        nvrtc.compile_rung(rung, "sm_90", {"ROWS": 1, "WIDTH": 2})
    assert not victim.exists()
