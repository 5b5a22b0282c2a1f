"""The package kernelscope as a Python program uses it: results, judgements, errors."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import pickletools
import re
import signal
import subprocess
import sys
import threading
import time
import types
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import kernelscope as ks
import main
from kernelscope import judging, kernel_text, program, results, running
from kernelscope.running import Ended, words
from tests import sampling
from tests.api import hostile, notebook

ROOT = Path(main.__file__).parent
SAMPLES = {
    "compare": ROOT / "bench/results/sample_run",
    "ladder": ROOT / "bench/results/sample_ladder",
    "profile": ROOT / "bench/results/sample_profile",
}
PROGRAM = ("bench", "engine", "gui", "kernels", "models")
LARGE = ("matplotlib", "numpy", "onnx", "onnxruntime", "pandas", "typer")
NAMES = ("GLOBAL", "SHORT_BINUNICODE", "BINUNICODE")  # what of a pickle may name a module


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str]]:
    """Commands of the client run in this process, where the program is loaded already. One that would measure
    shows the sample of its kind. The commands that were run."""
    ran: list[Sequence[str]] = []

    def run(arguments: Sequence[str], progress: bool = True) -> Ended:
        ran.append(arguments)
        output = io.StringIO()
        sample = SAMPLES.get(arguments[0])
        told = ["runs", "show", str(sample), "--format", "json"] if sample else list(arguments)
        with contextlib.redirect_stdout(output):
            code = main.main(told)
        if code:
            raise ks.KernelscopeError(f"{arguments} failed", code)
        return Ended(output.getvalue().encode(), 0, [f"run: {sample}"])

    monkeypatch.setattr(results, "run", run)
    return ran


def test_nothing_of_the_program_is_loaded_and_little_else() -> None:
    code = (
        "import sys, pytest\nbefore = set(sys.modules)\nimport kernelscope.pytest_plugin\n"
        "print(*sorted(set(sys.modules) - before))\n"
        f"import kernelscope as ks\nrun = ks.open({str(SAMPLES['ladder'])!r})\nassert run.rows\n"
        f"print(*sorted({{name.partition('.')[0] for name in sys.modules}} & set({PROGRAM + LARGE})))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["kernelscope kernelscope.pytest_plugin", ""]


def test_options_are_typed_as_on_the_command_line() -> None:
    typed = words(
        {
            "batch": [1, 64],
            "backend": ("engine-cpu", "ort-cpu"),
            "budget": 0.5,
            "layer_pass": False,
            "tune_reference": True,
            "rung": {"conv1": "tiled"},
            "shape": (1, 3, 28, 28, 8, 5),
            "kernels": Path("my kernels"),
            "out": None,
        }
    )
    assert typed == [
        *("--batch", "1,64", "--backend", "engine-cpu", "--backend", "ort-cpu", "--budget", "0.5"),
        *("--no-layer-pass", "--tune-reference", "--rung", "conv1=tiled", "--shape", "1,3,28,28,8,5"),
        *("--kernels", "my kernels"),
    ]


@pytest.mark.parametrize("kind", SAMPLES)
def test_a_run_has_verdicts_rows_tables_charts_and_a_report(kind: str, here: list[Sequence[str]]) -> None:
    run = ks.open(SAMPLES[kind])
    assert run.verdicts
    assert all(isinstance(text, str) for text in run.verdicts)
    assert run.rows
    assert "<table" in run._repr_html_()
    assert "<script" not in run._repr_html_()
    assert run.verdicts[0] in repr(run)
    if isinstance(run, ks.Comparison):
        row = run.rows[0]
        assert row.median_s is None or row.median_s > 0
        assert {line.contender for board in run.scoreboards for line in board.lines}
    if isinstance(run, ks.Profile):
        assert "findings" in run.tables
        with pytest.raises(KeyError, match=r"there are .*findings"):
            run.table("nothing")


def test_a_data_frame_is_made_by_what_is_installed(
    here: list[Sequence[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    ladder = ks.open(SAMPLES["ladder"])
    for name in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ks.KernelscopeError, match="pip install pandas"):
        ladder.frame()
    polars: Any = types.ModuleType("polars")
    polars.DataFrame = lambda columns, strict: columns
    monkeypatch.setitem(sys.modules, "polars", polars)
    columns = ladder.frame()
    assert columns["rung"] == [row.rung for row in ladder.rows]
    pandas: Any = types.ModuleType("pandas")
    pandas.DataFrame = types.SimpleNamespace(from_records=lambda found, columns: (found, columns))
    monkeypatch.setitem(sys.modules, "pandas", pandas)
    found, names = ladder.frame()
    assert found[0]["rung"] == ladder.rows[0].rung
    assert "median_s" in names


def test_settings_that_are_in_force_are_told(
    here: list[Sequence[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = results.run

    def run(arguments: Sequence[str], progress: bool = True) -> Ended:
        ended = usual(arguments, progress)
        ended.said.insert(0, "settings: --budget 2 (`kernelscope config` says where from)")
        return ended

    monkeypatch.setattr(results, "run", run)
    with pytest.warns(UserWarning, match="^settings: --budget 2 ") as told:
        ks.ladder("conv")
    assert told[0].filename == __file__


def test_a_run_is_found_from_another_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    run = results.Run(Path("bench"), None)
    monkeypatch.chdir("/")
    assert run.path == ROOT / "bench"


@pytest.mark.sampled(4, "long")
def test_what_is_no_run_and_a_wrong_command_are_sentences(tmp_path: Path) -> None:
    with pytest.raises(ks.KernelscopeError, match="holds no run") as none:
        ks.open(tmp_path)
    assert none.value.exit_code == 2
    with pytest.raises(ks.KernelscopeError, match="did you mean") as wrong:
        ks.compare("lenet5-digit")
    assert wrong.value.exit_code == 2
    with pytest.raises(TypeError, match="frame"):
        ks.ladder("conv", format="csv")


def test_numbers_of_numpy_are_numbers() -> None:
    assert words({"batch": np.array([1, 64]), "shape": (np.int64(3), 4), "budget": np.float32(0.5)}) == [
        *("--batch", "1,64", "--shape", "3,4", "--budget", "0.5")
    ]
    assert words({"batch": np.int32(1 << 30), "threads": 3}) == ["--batch", "1073741824", "--threads", "3"]


def test_the_program_speaks_utf_8_whatever_the_locale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "latin-1")
    code = "import sys; print('1 µs'); print('2 µs', file=sys.stderr)"
    monkeypatch.setattr(program, "command", lambda *arguments: [sys.executable, "-S", "-c", code])
    ended = running.run(["compare"])
    assert (ended.output.decode().strip(), ended.said) == ("1 µs", ["2 µs"])


@pytest.mark.skipif(sys.platform == "win32", reason="pipes are handed on otherwise there")
def test_a_process_that_the_program_left_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import subprocess; print(subprocess.Popen(['sleep', '100']).pid)"
    monkeypatch.setattr(program, "command", lambda *arguments: [sys.executable, "-S", "-c", code])
    monkeypatch.setattr(running, "GRACE_S", 0.1)
    began = time.monotonic()
    left = int(running.run(["compare"]).output)
    assert time.monotonic() - began < 50
    os.kill(left, signal.SIGKILL)
    for reader in [thread for thread in threading.enumerate() if "_read" in repr(thread)]:
        reader.join()


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is told otherwise there")
def test_ctrl_c_ends_the_program_and_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[subprocess.Popen[bytes]] = []
    script = tmp_path / "main.py"
    script.write_text(
        "import signal, sys, time\nsignal.signal(signal.SIGINT, lambda *_: sys.exit(130))\n"
        "print('[1/2] one: ok', file=sys.stderr, flush=True)\ntime.sleep(60)\n"
    )

    def started(arguments: Sequence[str], **pipes: Any) -> subprocess.Popen[bytes]:
        kinds = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | pipes
        begun.append(subprocess.Popen([sys.executable, str(script)], start_new_session=True, **kinds))
        return begun[-1]

    def interrupted(bar: Any, done: int, total: int, text: str) -> None:
        assert (done, total, text) == (1, 2, "one: ok")
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(running, "started", started)
    monkeypatch.setattr(running._Bar, "at", interrupted)
    with pytest.raises(KeyboardInterrupt):
        running.run(["compare"])
    assert begun[0].returncode == 130
    assert not [t for t in threading.enumerate() if t.is_alive() and "_read" in repr(t)]


# ------------------------------------------------------------------------------------------------- judging


def outside(x: int) -> int:
    return x


def held(factor: int) -> Any:
    def bind(p: Any, inputs: Any, output: Any, workspace: Any) -> Any:
        return lambda: output.fill(factor)

    return bind


def uses_outside(p: Any, inputs: Any, output: Any, workspace: Any) -> Any:
    return lambda: outside(1)


def two(p: Any, inputs: Any) -> Any:
    return None


def has_default(p: Any, inputs: Any, output: Any, workspace: Any = 1) -> Any:
    return None


def fine(p: Any, inputs: Any, output: Any, workspace: Any) -> Any:
    return lambda: os.getpid()


class Holder:
    def bind(self, p: Any, inputs: Any, output: Any) -> Any:
        return None


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (held(2), "factor of the function around it"),
        (lambda p, inputs, output, workspace: None, "lambda"),
        (uses_outside, "uses outside, which is defined outside"),
        (two, r"a kernel is def bind\(p, inputs, output, workspace\)"),
        (has_default, "default values"),
        (Holder.bind, "a method"),
        (7, "of type int"),
        (print, "of type builtin_function_or_method"),
    ],
)
def test_a_function_that_cannot_be_taken_by_its_source_is_refused(function: Any, why: str) -> None:
    with pytest.raises(ks.KernelscopeError, match=why):
        kernel_text.given(function)


@pytest.mark.parametrize(
    ("kernel", "kind"),
    [
        ("90_mine.py", "file"),
        ("my kernels (2)/90 mine.cu", "file"),
        ("no/such/kernel", "file"),
        ("def bind(p, inputs, output, workspace): return lambda: output.fill(0)", "text"),
        ('/* op = "softmax" */ extern "C" __global__ void softmax(const float* x) {}', "text"),
        ("import numpy as np\n", "text"),
    ],
)
def test_one_line_may_be_a_path_or_the_whole_kernel(kernel: str, kind: str) -> None:
    assert list(kernel_text.given(kernel)) == [kind]


def test_a_function_is_a_module_with_its_imports() -> None:
    text = kernel_text.given(fine)["text"]
    made: dict[str, Any] = {}
    exec(text, made)
    assert made["bind"](None, (), None, None)() == os.getpid()


@pytest.fixture(scope="module")
def _server() -> Iterator[judging._Server]:
    made = judging._Server()
    yield made
    made.close()


@pytest.fixture
def one_server(_server: judging._Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """All judges of these tests are one process, which lives on."""

    class Lent(judging._Server):
        def __init__(self) -> None:
            self.__dict__ = _server.__dict__

        def close(self) -> None:
            assert self.alive

    monkeypatch.setattr(judging, "_Server", Lent)


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.timeout(300)
def test_each_kernel_has_its_own_answer_whatever_the_one_before_did(one_server: None) -> None:
    """`python -m tests.api.hostile` judges 200; here a few are drawn, of those that end by themselves."""
    slow = ("hangs", "sleeps", "writes garbage", "stops the judge")
    drawn = hostile.kernels(40, 20, sampling.number("hostile"), slow)
    some = [next(k for k in drawn if k.kind in kinds) for kinds in (hostile.HARM, ("right",))]
    assert hostile.judged(some) == []


@pytest.mark.slow
def test_a_judgement_is_held_against_an_earlier_one(one_server: None) -> None:
    judge = ks.Judge(op="softmax", **hostile.QUICK)
    first = judge(hostile.RIGHT.format(harm="pass"), reference=True)
    assert first.right is True
    assert first.time_s is not None
    assert first.reference is not None
    assert first.title
    with pytest.raises(TypeError, match=r"\.right"):
        bool(first)
    assert "<table" in first._repr_html_()
    assert str(first).startswith("90 mine: right, ")
    slower = msgspec.structs.replace(
        first,
        time_s=first.time_s / 1e3,
        low_s=first.time_s / 1e3,
        high_s=first.time_s / 1e3,
        against=tuple(
            msgspec.structs.replace(one, speedup=1e3, speedup_low=999.0, speedup_high=1001.0, undecided="",
                                    doubts=())
            for one in first.against
        ),
        unsteady=(),
        doubts=(),
    )  # fmt: skip
    second = judge(hostile.RIGHT.format(harm="pass"), reference=True, baseline=slower)
    held_against = second.beside("baseline")
    assert held_against is not None
    assert held_against.speedup is not None
    assert held_against.speedup < 0.1
    assert held_against.verdict in ("SLOWER", "UNCLEAR")  # this machine may be unquiet
    with pytest.raises(ks.KernelscopeError, match="only the same work"):
        judge(hostile.RIGHT.format(harm="pass"), batch=2, baseline=slower)
    with pytest.raises(ks.KernelscopeError, match="judge has no option speed"):
        judge(hostile.RIGHT.format(harm="pass"), speed=2)


@pytest.mark.sampled(6, "longest")
def test_examples_of_the_page_run_as_they_stand(
    here: list[Sequence[str]], one_server: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pickles: list[bytes] = []

    def loads(data: bytes) -> Any:
        pickles.append(data)
        return pickle.loads(data)

    monkeypatch.setattr(results, "loads", loads)
    page = ROOT / "docs/python.md"
    notebook.execute(notebook.cells(page), page.name)
    assert [words[0] for words in here[:3]] == ["compare", "ladder", "profile"]
    assert (tmp_path / "scoreboard.pdf").stat().st_size > 1000
    assert (tmp_path / "report.html").read_text("utf-8").startswith("<!")
    # Whoever loads a figure needs matplotlib, and nothing of the program.
    named = [str(argument) for opcode, argument, _ in pickletools.genops(pickles[0]) if opcode.name in NAMES]
    assert any(name.startswith("matplotlib.figure") for name in named)
    assert [name for name in named if name.partition(".")[0] in PROGRAM] == []


@pytest.mark.parametrize("name", ["notebook", "elsewhere"])
def test_a_notebook_is_of_today(name: str) -> None:
    """`python -m tests.package` executes one of them, and `python -m tests.api.notebook FILE` this one."""
    sources = notebook.cells(ROOT / f"docs/{name}.ipynb")
    used = {word for source in sources for word in re.findall(r"\bks\.(\w+)", source)}
    assert used <= set(ks.__all__)
    for source in sources:
        compile(source, "cell", "exec")


def test_the_notebooks_share_what_they_have_in_common() -> None:
    """What is shown in both is the same cell: changed in one, it is changed in the other."""
    one, other = (notebook.cells(ROOT / f"docs/{name}.ipynb") for name in ("notebook", "elsewhere"))
    for begin in ("assert judgement.right", "comparison = ks.compare", "figure = ladder.plot"):
        (shared,) = (cell for cell in one if cell.startswith(begin))
        assert shared in other
