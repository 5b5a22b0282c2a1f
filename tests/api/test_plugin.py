"""The pytest plugin, with a judge whose answers are given: what fails, what is kept, and what is loaded."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kernelscope import testing
from kernelscope.judging import Judgement
from kernelscope.records import Against
from kernelscope.running import KernelscopeError

pytest_plugins = "pytester"  # for pytest.Pytester

PLUGIN = ("-p", "kernelscope.pytest_plugin", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:pytest-qt")


def judgement(**fields: Any) -> Judgement:
    plain: dict[str, Any] = dict.fromkeys(
        ("finding", "time_s", "low_s", "high_s", "rel_l2_error", "error_bound")
    ) | dict.fromkeys(("against", "doubts", "notes", "unsteady"), ())
    known = {"name": "90 mine", "op": "softmax", "device": "cpu", "precision": "fp32", "title": "softmax"}
    known |= {"right": True, "outcome": "ok", "why": "", "grade": "none", "checks": 1, "samples": 1}
    return Judgement(**plain | known | {"compiled": {}, "took_s": 1.0} | fields)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the judge was asked. It finds kernels right but those whose file says "wrong" or "refused", and
    slower than any baseline."""
    calls: list[dict[str, Any]] = []

    class Stand:
        def judge(self, kernel: Any, op: str | None = None, **options: Any) -> Judgement:
            calls.append({"kernel": kernel, "op": op, **options})
            text = Path(kernel).read_text()
            if "wrong" in text:
                return judgement(right=False, outcome="incorrect", why="the bias is missing")
            if "refused" in text:
                return judgement(right=None, outcome="unsupported", why="it needs group = 1")
            if "cuda" in text:
                raise KernelscopeError("kernels for cuda cannot run here: there is no GPU", 2)
            if options.get("baseline") is None:
                return judgement()
            if options.get("threads"):
                raise KernelscopeError("the baseline was timed with other threads: give the same", 2)
            slow = Against(
                name="baseline", title="the baseline", speedup=0.5, speedup_low=0.4, speedup_high=0.6,
                verdict="SLOWER" if "slow" in text else "UNCLEAR",
            )  # fmt: skip
            return judgement(against=(slow,))

        def close(self) -> None:
            calls.append({"closed": True})

    monkeypatch.setattr(testing, "Judge", Stand)
    return calls


def test_a_marked_kernel_has_to_be_right_and_not_slower_than_its_baseline(
    pytester: pytest.Pytester, asked: list[dict[str, Any]]
) -> None:
    for name in ("fine", "wrong", "refused", "slow"):
        (pytester.path / f"90_{name}.py").write_text(f"# {name}\n")
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.kernel("90_fine.py", op="softmax", batch=16)
        def test_fine():
            pass

        @pytest.mark.kernel("90_wrong.py")
        def test_wrong():
            pass

        @pytest.mark.kernel("90_refused.py")
        def test_refused(kernelscope_benchmark):
            kernelscope_benchmark(budget=1)

        def test_slow(kernelscope_benchmark):
            assert kernelscope_benchmark("90_slow.py", batch=2).name == "90 mine"

        def test_no_kernel(kernelscope_benchmark):
            kernelscope_benchmark()

        def test_other():
            pass
        """
    )
    first = pytester.runpytest_inprocess(*PLUGIN)
    first.assert_outcomes(passed=3, failed=3)
    first.stdout.fnmatch_lines(
        ["*90 mine is wrong: the bias is missing*", "*could not be judged: it needs group = 1*"]
    )
    assert [call.get("op") for call in asked] == ["softmax", None, None, None, None]
    assert asked[0]["kernel"] == pytester.path / "90_fine.py"
    assert (asked[0]["batch"], asked[2]["budget"], asked[-1]) == (16, 1, {"closed": True})
    assert not list(pytester.path.glob("*.kernels.json"))
    pytester.runpytest_inprocess(
        *PLUGIN, "--kernelscope-update", "-k", "test_fine or test_slow"
    ).assert_outcomes(passed=2)
    (kept,) = pytester.path.glob("*.kernels.json")
    assert set(json.loads(kept.read_text())) == {"test_fine", "test_slow"}
    assert msgspec.json.decode(kept.read_bytes(), type=dict[str, Judgement])["test_fine"] == judgement()
    again = pytester.runpytest_inprocess(*PLUGIN, "-k", "test_fine or test_slow")
    again.assert_outcomes(passed=1, failed=1)
    again.stdout.fnmatch_lines(["*slower than the baseline: it takes 2.00× as long (1.67× to 2.50×)*"])
    kept.write_text("[]")
    broken = pytester.runpytest_inprocess(*PLUGIN, "-k", "test_fine")
    broken.assert_outcomes(failed=1)
    broken.stdout.fnmatch_lines(["*is no file of baselines*"])


def test_what_cannot_be_judged_is_a_sentence_and_no_traceback(
    pytester: pytest.Pytester, asked: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    (pytester.path / "90_gpu.cu").write_text("// cuda\n")
    (pytester.path / "90_fine.py").write_text("# fine\n")
    pytester.makepyfile(
        """
        import os, pytest

        @pytest.mark.kernel("90_gpu.cu")
        def test_gpu():
            pass

        def test_threads(kernelscope_benchmark):
            kernelscope_benchmark("90_fine.py", threads=int(os.environ.get("THREADS", "0")))
        """
    )
    pytester.runpytest_inprocess(*PLUGIN, "--kernelscope-update").assert_outcomes(passed=1, failed=1)
    monkeypatch.setenv("THREADS", "2")
    told = pytester.runpytest_inprocess(*PLUGIN)
    told.assert_outcomes(failed=2)
    told.stdout.fnmatch_lines(
        [
            "90_gpu.cu could not be judged: kernels for cuda cannot run here: there is no GPU",
            "90_fine.py could not be judged: *give the same; `pytest --kernelscope-update` keeps a new one",
        ]
    )
    told.stdout.no_fnmatch_line("*During handling*")


def test_only_a_mark_that_names_a_kernel_is_ours_and_each_is_judged_once(
    pytester: pytest.Pytester, asked: list[dict[str, Any]]
) -> None:
    (pytester.path / "90_fine.py").write_text("# fine\n")
    pytester.makeconftest(
        """
        import pytest

        class Line(pytest.Item):
            def runtest(self):
                pass

        class Lines(pytest.File):
            def collect(self):
                yield Line.from_parent(self, name="line")

        def pytest_collect_file(file_path, parent):
            if file_path.suffix == ".lines":
                return Lines.from_parent(parent, path=file_path)

        def pytest_collection_modifyitems(items):
            for item in items:
                if item.name in ("line", "test_added"):
                    item.add_marker(pytest.mark.kernel("90_fine.py", batch=3))
        """
    )
    (pytester.path / "a.lines").touch()
    pytester.makepyfile(
        """
        from unittest import mock
        import os, pytest

        @pytest.mark.kernel
        def test_bare():
            pass

        @pytest.mark.kernel(5, 4)
        def test_of_linux():
            pass

        def test_added():
            pass

        @pytest.mark.kernel("90_fine.py", batch=4)
        @mock.patch("os.getcwd")
        def test_patched(getcwd, kernelscope_benchmark):
            kernelscope_benchmark()

        @pytest.mark.kernel("90_fine.py", batch=5)
        def test_by_name(*, kernelscope_benchmark):
            kernelscope_benchmark()
        """
    )
    pytester.runpytest_inprocess(*PLUGIN).assert_outcomes(passed=6)
    assert sorted(call["batch"] for call in asked if "batch" in call) == [3, 4, 5]


def test_each_call_of_a_test_has_a_baseline_of_its_own(
    pytester: pytest.Pytester, asked: list[dict[str, Any]]
) -> None:
    (pytester.path / "90_fine.py").write_text("# fine\n")
    pytester.makepyfile(
        """
        def test_two(kernelscope_benchmark):
            for batch in 1, 2:
                kernelscope_benchmark("90_fine.py", batch=batch)
        """
    )
    pytester.runpytest_inprocess(*PLUGIN, "--kernelscope-update").assert_outcomes(passed=1)
    (kept,) = pytester.path.glob("*.kernels.json*")
    assert set(json.loads(kept.read_text())) == {"test_two", "test_two#2"}


@pytest.mark.skipif(sys.platform == "win32", reason="nothing locks there")
def test_processes_that_keep_baselines_at_once_keep_each_other_s(tmp_path: Path) -> None:
    file = tmp_path / "test_a.kernels.json"
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda number: testing._keep(file, f"test_{number}", judgement()), range(24)))
    assert len(testing._read(file)) == 24
