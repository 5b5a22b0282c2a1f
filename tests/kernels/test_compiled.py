"""Compiled CPU rungs: what is kept of them, loops of one's own, and machines without Numba."""

from __future__ import annotations

import functools
import importlib.util
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from kernels import cache, confine, numba_support, registry
from kernels.cpu import compiled, load
from kernels.errors import KernelError
from kernels.ops.conv import Conv
from kernels.ops.gemm import Gemm
from kernels.ops.unary import Unary

pytestmark = pytest.mark.slow

ROOT = Path(numba_support.__file__).parents[1]
here = pytest.mark.skipif(numba_support.unavailable() is not None, reason="Numba is not here")
HEADER = """\
# op = "unary"
# rung = 90
# name = "mine"
# idea = "Loops of mine."
# compiled = true
# [needs]
# kind = ["relu"]
"""
BODY = """
from kernels.cpu import simd
from kernels.cpu.compiled import Call, compiled


@compiled
def step(a, low, high, scratch):
    x, y = simd.floats(a[2]), simd.floats(a[3])
    for i in range(low, min(high, a[1])):
        y[i] = x[i] if x[i] > 0 else 0.0


def bind(p, inputs, output, workspace):
    return Call(step, [p.size, inputs[0], output], workspace, images=0, parts=p.size)
"""


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    paths = [environment.pop("FIRST", ""), str(ROOT), os.environ.get("PYTHONPATH", "")]
    return subprocess.run(
        [sys.executable, "-P", "-c", code],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))} | environment,
        capture_output=True,
        text=True,
        timeout=100,
    )


BETWEEN_WALLS = """
import ctypes
import itertools
import mmap
import numpy as np
from kernels import registry
from kernels.cpu import load
from kernels.ops import sized
from kernels.ops.conv import Conv
from kernels.ops.pool import Pool
from kernels.ops.qconv import QConv

def placed(of, walls):
    page = mmap.PAGESIZE
    assert of.nbytes % page == 0
    whole = np.frombuffer(mmap.mmap(-1, of.nbytes + 2 * page), np.uint8)
    place = whole[page:-page].view(of.dtype).reshape(of.shape)
    place[...] = of
    for wall in (whole[:page], whole[-page:]) if walls else ():
        address, size = ctypes.c_void_p(wall.ctypes.data), ctypes.c_size_t(page)
        assert ctypes.CDLL(None).mprotect(address, size, 0) == 0
    return place

def cases(step, dtype):
    side = 64 if dtype == "uint8" else 32
    padded = dict(stride_h=step, stride_w=step, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1)
    for group in (1, 4):
        conv = sized(Conv(1, 4, side, side, 4, 3, 3, 0, 0, **padded, group=group))
        yield (QConv(conv), 4) if dtype == "uint8" else (conv, 2)
    if dtype == "float32":
        yield sized(Conv(1, 4, side, side, 4, 1, 1, 0, 0, step, step)), 2
    yield sized(Pool("max", 1, 4, side, side, 3, 3, 0, 0, **padded, dtype=dtype)), 1

random, ran = np.random.default_rng(0), set()
several = (cases(step, dtype) for step in (1, 2, 3) for dtype in ("uint8", "float32"))
for p, inputs in itertools.chain(*several):
    c = p.product if p.op == "qconv" else p
    shapes = [(1, 4, c.h, c.w), (4, 4 // getattr(c, "group", 1), c.kh, c.kw), (1,), (1,)][:inputs]
    given = [random.integers(0, 9, shape).astype(p.dtype) for shape in shapes]
    for rung in registry.rungs("cpu", p.op):
        if not rung.compiled or rung.refusal(p):
            continue
        print(rung.label, p, flush=True)
        kernel, answers = load(rung), []
        for walls in (False, True):
            y = np.zeros((1, 4, c.out_h, c.out_w), p.out_dtype)
            workspace = np.zeros(kernel.workspace(p) // 4, np.float32)
            kernel.bind(p, [placed(given[0], walls), *given[1:]], y, workspace)()
            answers.append(y)
        assert (answers[0] == answers[1]).all()
        ran.add(rung.label)
print(*sorted(ran), sep=", ")
"""


@here
@pytest.mark.skipif(os.name != "posix", reason="pages are shut in another way here")
def test_windows_read_nothing_but_the_image() -> None:
    """Between two pages that nobody may read, for vectors reach beyond the first and the last image."""
    done = python(BETWEEN_WALLS)
    assert done.returncode == 0, done.stdout.splitlines()[-1:] + done.stderr.splitlines()[-1:]
    rungs = [rung for op in ("conv", "pool", "qconv") for rung in registry.rungs("cpu", op) if rung.compiled]
    assert done.stdout.splitlines()[-1] == ", ".join(sorted(rung.label for rung in rungs))


@pytest.mark.sampled(4, "long")
@here
def test_loops_of_ones_own_run_and_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And whoever finds them kept imports no Numba."""
    monkeypatch.setenv("KERNELSCOPE_COMPILED", str(tmp_path / "kept"))
    (tmp_path / "90_mine.py").write_text(HEADER + BODY)
    changed = BODY.replace("x[i] > 0", "x[i] > -1e9")
    code = f"""
import sys
import numpy as np
from pathlib import Path
from kernels import registry
from kernels.cpu import load
from kernels.ops.unary import Unary
kept = Path({str(tmp_path / "kept")!r})
x = np.arange(-500, 501, dtype=np.float32)
def answered():
    y = np.full(1001, np.nan, np.float32)
    rung = registry.find("cpu", "unary", "mine", [Path({str(tmp_path)!r})])
    load(rung).bind(Unary("relu", 1001), [x], y, np.empty(0, np.float32))()
    return y
assert (answered() == np.maximum(x, 0)).all()
print("numba" in sys.modules, len(list(kept.glob("*.o"))))
if "numba" in sys.modules:  # what was changed is compiled anew
    path = Path({str(tmp_path / "90_mine.py")!r})
    text = path.read_text()
    path.write_text({HEADER + changed!r})
    assert (answered() == x).all()
    path.write_text(text)
"""
    done = python(code)
    assert (done.stdout.strip(), done.returncode) == ("True 3", 0), done.stderr  # and two of the trial
    done = python(code)
    assert (done.stdout.strip(), done.returncode) == ("False 4", 0), done.stderr


@here
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("x[i] if x[i] > 0 else 0.0", "x[i].sum()", r"90_mine\.py:17: step does not compile: "),
        ("x[i] if x[i] > 0 else 0.0", "unknown(x[i])", r"90_mine\.py:17: step does not compile: .*unknown"),
        ("y[i] =", "print(y[i]); y[i] =", r"90_mine\.py:\d+: step (calls|does not compile)"),
    ],
)
def test_what_does_not_compile_is_told_with_its_line(old: str, new: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "90_mine.py").write_text(HEADER + BODY.replace(old, new))
    rung = registry.find("cpu", "unary", "mine", [tmp_path])
    with pytest.raises(KernelError, match=said):
        load(rung).bind(Unary("relu", 4), [np.ones(4, np.float32)], np.ones(4, np.float32), np.empty(0))


@pytest.fixture(scope="module")
def whole() -> bytes:
    """A compiled file; to compile it takes a while."""
    return compiled._made_tiles()


@here
def test_a_file_that_was_cut_off_is_compiled_anew(
    whole: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNELSCOPE_COMPILED", str(tmp_path))
    calls = []

    def made() -> bytes:
        calls.append(1)
        return whole

    assert compiled.kept("f", made) > 0
    assert compiled.kept("f", made) > 0
    assert len(calls) == 1
    (tmp_path / "f.o").write_bytes(b"")
    assert compiled.kept("f", made) > 0
    (tmp_path / "f.o").write_bytes(whole[: len(whole) // 2])
    assert compiled.kept("f", made) > 0
    assert len(calls) == 3


@here
def test_a_process_of_a_users_kernels_loads_ours_and_writes_beside_them(
    whole: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A net with one kernel of a user has many of ours, and to compile them anew would take longest."""
    monkeypatch.setenv("KERNELSCOPE_COMPILED", str(tmp_path / "ours"))
    monkeypatch.setenv("KERNELSCOPE_CACHE", str(tmp_path / "cache"))
    assert compiled.kept("f", lambda: whole) > 0
    (made,) = (tmp_path / "ours").glob("*.o")
    monkeypatch.setattr(confine, "forbidden", lambda: True)
    assert compiled.kept("f", lambda: pytest.fail("it lies among ours")) > 0
    assert compiled.kept("g", lambda: whole) > 0
    assert [*(tmp_path / "ours").glob("*.o")] == [made]
    assert [path.name for path in confine.writable_cache().glob("*.o")] == ["g.o"]
    # Ours are of no use where they are broken, and are not mended from there.
    made.write_bytes(b"")
    assert compiled.kept("f", lambda: whole) > 0
    assert made.read_bytes() == b""
    monkeypatch.setattr(confine, "forbidden", lambda: False)
    assert compiled.kept("g", lambda: whole) > 0
    assert (tmp_path / "ours" / "g.o").exists(), "what such a process wrote, nobody else loads"


@here
def test_what_another_process_compiles_is_waited_for_and_a_stopped_one_is_not(
    whole: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNELSCOPE_COMPILED", str(tmp_path))
    beside, calls = threading.Event(), []

    def made() -> bytes:
        calls.append(threading.current_thread().name)
        beside.set()
        time.sleep(0.3)
        return whole

    other = threading.Thread(target=compiled.kept, args=("f", made), name="other")
    other.start()
    assert beside.wait(60)
    assert compiled.kept("f", made) > 0
    other.join()
    assert calls == ["other"]
    with cache.turn(tmp_path / ".making" / "g", lambda: False):
        monkeypatch.setattr(compiled, "turn", functools.partial(cache.turn, wait_s=0.1))
        assert compiled.kept("g", made) > 0
    assert len(calls) == 2


def test_an_argument_keeps_its_bits() -> None:
    array = np.zeros(3)
    assert [compiled.word(of) for of in (3, -1, array)] == [3, -1, array.ctypes.data]
    assert np.int64(compiled.word(0.75)).view(np.float64) == 0.75
    with pytest.raises(KernelError, match="dense arrays"):
        compiled.word(np.zeros((4, 4))[:, 1])


def test_where_numba_is_not_installed_numpy_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda n, *a: None if n == "numba" else found(n, *a))
    numba_support.unavailable.cache_clear()
    try:
        for p in (Conv(2, 3, 8, 8, 4, 3, 3, 6, 6), Gemm(4, 5, 6, trans_b=True)):
            assert not registry.default("cpu", p).compiled
            (rung, *_) = (r for r in registry.rungs("cpu", p.op) if r.compiled)
            assert rung.refusal(p) == f"{rung.label} is compiled by Numba: the package numba is not installed"
    finally:
        numba_support.unavailable.cache_clear()


BROKEN = {
    "refuses": 'raise ImportError("Numba needs NumPy 9.9 or less")\n',
    "crashes": "import os\nos.abort()\n",
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("how", BROKEN)
def test_where_numba_breaks_on_import_numpy_serves(how: str, tmp_path: Path) -> None:
    """A whole session, in its process apart, with the reason told once and then kept."""
    for name in ("numba", "llvmlite"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(BROKEN[how])
        folder = tmp_path / f"{name}-0.1.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1\n")
    code = """
import numpy as np
from engine.backends.engine_cpu import BACKEND
from engine.graph import importer
from kernels import numba_support
from tests.engine.harness import one_node, random
graph = one_node("Conv", (2, 3, 9, 9), [random((4, 3, 3, 3))])
session = BACKEND.prepare(graph, 2)
session.bind({"x": random((2, 3, 9, 9))})
session.run()
(y,) = session.fetch().values()
print(np.isfinite(y).all(), session.plan.steps[0].rung, "compiled" in session.facts)
print(numba_support.unavailable())
"""
    kept = tmp_path / "kept"
    for _ in range(2):
        done = python(code, FIRST=str(tmp_path), KERNELSCOPE_COMPILED=str(kept))
        assert done.returncode == 0, done.stderr
        answer, reason = done.stdout.strip().splitlines()
        assert answer == "True winograd False" or answer == "True batched_im2col False"
        assert ("Numba needs NumPy 9.9 or less" if how == "refuses" else "exit code") in reason
        assert len(list(kept.glob("tried-*"))) == 1
