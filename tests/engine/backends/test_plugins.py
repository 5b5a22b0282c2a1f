"""Backends of others: found by entry point, opened in a process of their own, held to the same checks; and
what is wrong with one costs that one alone."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

import main
from bench.measure import environment
from bench.measure.answers import accuracy, oracle, timed_pass
from bench.measure.outcomes import Incorrect
from bench.results.records import ErrorStats
from engine import backends
from engine.backend import Options, Rival
from engine.isolated import pool
from engine.isolated.session import IsolatedSession
from kernels.environment import NEEDED, Environment
from kernels.errors import InputError, UnavailableError
from tests.engine.backends.nets import small_net

pytestmark = pytest.mark.slow

PLUGIN = """
from pathlib import Path
from engine.isolated import pool
from engine.isolated.pool import Kind
from engine.isolated.session import IsolatedSession

pool.register("toy", Kind("the toy", "toy_session", {stays}, folders=(Path(__file__).parent,)))

class Toy:
    name, title, device, reference, precisions = "{name}", "A toy", "{device}", "ort-cpu", ("fp32",)
    apart, asked_only, get, untried = "toy", True, "it is here", ""

    def unavailable(self): return None
    def supports(self, graph, batch, precision): return None
    def prepare(self, graph, batch, precision="fp32", options=None):
        session = IsolatedSession("toy", "the toy", batch, (graph, batch))
        session.backend = self.name
        return session

BACKEND = Toy()
"""
TOY = PLUGIN.format(name="toy", device="cpu", stays=True)
SESSION = """
import numpy as np
from onnx.reference import ReferenceEvaluator

class opened:
    def __init__(self, graph, batch):
        self._net = ReferenceEvaluator(graph.whole_proto())
        self.given = {"x": np.zeros((batch, 3, 12, 12), np.float32)}
        self._left = {"y": np.zeros((batch, 5), np.float32)}
        self.phases, self.memory, self.facts = {}, {}, {"made by": "a plugin"}

    def answers(self): return self._left
    def run(self): self._left["y"][:] = self._net.run(None, self.given)[0]
    def each(self, copies):
        for inputs, outputs in copies:
            for to, of in inputs: np.copyto(to, of)
            self.run()
            for to, of in outputs: np.copyto(to, of)
    def close(self): pass
"""


def plug(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str, point: str = "toy_backend") -> None:
    """As an installed package that names its module by entry point."""
    info = folder / "toy-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[kernelscope.backends]\ntoy = {point}\n")
    (folder / "toy_backend.py").write_text(text)
    (folder / "toy_session.py").write_text(SESSION)
    monkeypatch.syspath_prepend(str(folder))
    backends._found.cache_clear()


@pytest.mark.parametrize("place", ["a package", "the folder"])
def test_the_backend_of_the_page_runs_as_it_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    page = (Path(__file__).parents[3] / "docs/writing-a-backend.md").read_text("utf-8")
    module, session = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (tmp_path / "_my_session.py").write_text(session)
    if place == "a package":
        plug(tmp_path, monkeypatch, module)
    else:
        (tmp_path / "mine.py").write_text(module)
        monkeypatch.setattr(backends, "__path__", [*backends.__path__, str(tmp_path)])
        monkeypatch.delitem(sys.modules, "engine.backends.mine", raising=False)
        backends._found.cache_clear()
    mine = backends.get("mine-cpu")
    opened = mine.prepare(small_net(), 2)
    try:
        given = np.random.default_rng(0).standard_normal((2, 3, 12, 12)).astype(np.float32)
        opened.bind({"x": given})
        opened.run()
        (right,) = ReferenceEvaluator(small_net().whole_proto()).run(None, {"x": given})
        np.testing.assert_array_equal(opened.fetch()["y"], right)
        assert opened.time_runs(2) > 0
    finally:
        opened.close()


@pytest.fixture(autouse=True)
def unplugged() -> Iterator[None]:
    kinds = dict(pool.KINDS)
    yield
    # Not those of all others, which would be started anew for whoever is next.
    for key in [key for key in pool._children if key[0].partition(" ")[0] not in kinds]:
        pool._drop(key)
    pool.KINDS.clear()
    pool.KINDS.update(kinds)
    for name in ("toy_backend", "engine.backends.mine"):
        sys.modules.pop(name, None)
    backends._found.cache_clear()


def test_a_plugin_s_session_is_timed_and_its_timed_passes_are_rebuilt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plug(tmp_path, monkeypatch, PLUGIN.format(name="toy", device="cpu", stays=True))
    toy = backends.get("toy")
    assert list(backends.all_backends())[-1] == "toy"
    assert isinstance(toy, Rival)
    session = toy.prepare(small_net(), 2)
    assert isinstance(session, IsolatedSession)
    try:
        assert session.facts["made by"] == "a plugin"
        given = np.random.default_rng(0).standard_normal((2, 3, 12, 12)).astype(np.float32)
        session.bind({"x": given})
        session.run()
        first = session.fetch()["y"]
        assert session.time_runs(3) > 0
        stirring, kept = session.stirring, session.witnesses()
        assert stirring is not None
        assert kept
        for witness in kept:
            inputs = stirring.inputs_of(witness.number)
            assert not np.array_equal(inputs["x"], given)
            session.bind(inputs)
            session.run()
            places, values = witness.outputs["y"]
            again = session.fetch()["y"]
            np.testing.assert_array_equal(again.reshape(-1)[places], values)
            assert not np.array_equal(again, first)
    finally:
        session.close()


def test_a_plugin_that_answers_from_memory_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It works out one pass, and gives that answer in all that are timed."""
    plug(tmp_path, monkeypatch, PLUGIN.format(name="toy", device="cpu", stays=True))
    cheat = SESSION.replace("            self.run()\n", "")
    assert cheat != SESSION
    (tmp_path / "toy_session.py").write_text(cheat)
    session = backends.get("toy").prepare(small_net(), 2)
    assert isinstance(session, IsolatedSession)

    def again(inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        session.bind(inputs)
        session.run()
        return session.fetch()

    def right(inputs: Mapping[str, np.ndarray], answers: Mapping[str, np.ndarray]) -> ErrorStats:
        expected = oracle.run(small_net(), inputs, ["y"])["y"]
        return accuracy.error_stats(answers["y"], expected, "fp32")

    try:
        again({"x": np.random.default_rng(0).standard_normal((2, 3, 12, 12)).astype(np.float32)})
        session.time_runs(3)
        with pytest.raises(Incorrect):
            timed_pass.check(session, again, right, "fp32")
    finally:
        session.close()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x = 1\ndef (", "line 2: invalid syntax"),
        ("import there_is_no_such_module", "No module named 'there_is_no_such_module'"),
        ("import sys; sys.exit(3)", "it ends the program (3)"),
        ("raise KeyError('a\\nb')", "'a\\nb'"),
        ("", "has no attribute 'BACKEND'"),
        ("BACKEND = object()", "it has no name, title, device"),
        ("BACKENDS = 7", "not iterable"),
        (PLUGIN.format(name="engine-cpu", device="cpu", stays=True), "named engine-cpu already"),
        (
            PLUGIN.format(name="toy", device="cpu", stays=True).replace("return None", "return 7", 1),
            "gives 7",
        ),
        (PLUGIN.format(name="toy", device="cpu", stays=True).replace("return None", "1 / 0", 1), "division"),
    ],
)
def test_a_file_in_the_folder_that_gives_no_backend_costs_itself_a_line_and_nobody_else_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, told: str
) -> None:
    """As the page has it: a file beside ours. `doctor` shows these lines, and all else goes on."""
    before = set(backends.all_backends())
    (tmp_path / "my_own.py").write_text(text)
    monkeypatch.setattr(backends, "__path__", [*backends.__path__, str(tmp_path)])
    backends._found.cache_clear()
    try:
        found = backends.all_backends()
        assert set(found) == before | {"my-own"}
        reason = found["my-own"].unavailable() or ""
        assert reason.startswith("the file engine/backends/my_own.py gives no backend: ")
        assert told in reason
        shown = {info.name: info.unavailable for info in environment.backend_infos()}
        assert shown["my-own"] == reason
        assert (shown["engine-cpu"], shown["ort-cpu"]) == ("", "")
    finally:
        sys.modules.pop("engine.backends.my_own", None)


@pytest.mark.parametrize(
    ("text", "point", "told"),
    [
        ("import there_is_no_such_module", "toy_backend", "No module named 'there_is_no_such_module'"),
        ("", "toy_backend", "has no attribute 'BACKEND'"),
        ("BACKEND = object()", "toy_backend", "it has no name, title, device"),
        ("raise SystemError", "toy_backend", "SystemError"),
        (PLUGIN.format(name="ort-cpu", device="cpu", stays=True), "toy_backend", "named ort-cpu already"),
        (
            PLUGIN.format(name="Not Mine", device="cpu", stays=True),
            "toy_backend",
            "its name 'Not Mine' is not",
        ),
        (PLUGIN.format(name="toy", device="fpga", stays=True), "toy_backend", "neither cpu nor cuda"),
        ("", "nowhere_at_all", "No module named 'nowhere_at_all'"),
    ],
)
def test_a_plugin_that_gives_no_backend_says_why_and_costs_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, point: str, told: str
) -> None:
    before = set(backends.all_backends())
    plug(tmp_path, monkeypatch, text, point)
    found = backends.all_backends()
    assert set(found) == before | {"toy"}
    reason = found["toy"].unavailable() or ""
    assert reason.startswith("the plugin toy (")
    assert told in reason
    with pytest.raises(UnavailableError, match="toy cannot run here"):
        found["toy"].prepare(small_net(), 1)


def test_two_kinds_of_sessions_of_one_name_are_refused() -> None:
    with pytest.raises(InputError, match="a kind named 'ort'"):
        pool.register("ort", pool.Kind("others", "elsewhere"))
    assert pool.register("ort", pool.KINDS["ort"]) == "ort"


class TestEnvironment:
    """Which Python a rival runs in."""

    LACKING = Environment("no-such", "Nothing", "there_is_no_such_module", "it cannot be had")

    def test_where_the_package_is_nowhere_how_to_get_it_is_said(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv(self.LACKING.variable, raising=False)
        assert self.LACKING.missing() == "Nothing is not installed: it cannot be had"

    def test_a_python_that_is_named_and_is_none_is_said(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("KERNELSCOPE_PYTHON_NO_SUCH", "/there/is/no/python")
        said = self.LACKING.missing()
        assert said == "KERNELSCOPE_PYTHON_NO_SUCH names /there/is/no/python, which is no file"

    def test_one_that_is_named_comes_before_this_one(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        python = tmp_path / "bin" / "python"
        (tmp_path / "lib" / "python3.12" / "site-packages" / "numpy").mkdir(parents=True)
        python.parent.mkdir()
        python.touch()
        has = Environment("has-it", "NumPy", "numpy", "")
        assert has.interpreter() == sys.executable
        monkeypatch.setenv(has.variable, str(python))
        assert has.interpreter() == str(python)
        wants = Environment("has-it", "NumPy", "numpy", "", needs=("msgspec",))
        assert (wants.missing() or "").endswith("which has no msgspec")

    def test_a_build_without_what_is_wanted_is_told_from_one_with_it(self) -> None:
        built = Environment("b", "ONNX Runtime", "onnx", "", holds=("onnx", "checker.py"))
        assert built.missing() is None
        without = Environment("b", "It", "onnx", "get it", holds=("onnx", "libonnx_of_mars.*"))
        assert without.missing() == "It is not installed: get it"


def test_options_reach_no_rival_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELSCOPE_PYTHON_OPENVINO", "/there/is/no/python")
    with pytest.raises(UnavailableError, match="openvino-cpu cannot run here: KERNELSCOPE_PYTHON_OPENVINO"):
        backends.get("openvino-cpu").prepare(small_net(), 1, "fp32", Options())


@pytest.mark.parametrize(
    ("name", "package"), [("torch", "torch"), ("openvino", "openvino"), ("cudnn", "nvidia-cudnn-frontend")]
)
def test_a_rival_s_environment_has_what_its_process_needs_and_is_locked(name: str, package: str) -> None:
    root = Path(main.__file__).parent
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    listed = {re.split(r"[\[<>=;]", item)[0] for item in project["optional-dependencies"][name]}
    assert listed >= {package, *NEEDED}
    lock = (root / "locks" / f"{name}.txt").read_text()
    pinned = re.findall(r"^([a-z0-9-]+)==.*?\\\n( +--hash=sha256:[0-9a-f]{64})", lock, re.MULTILINE)
    assert {package for package, _ in pinned} >= listed
    assert "://" not in lock
    assert package not in {re.split(r"[\[<>=!~; ]", item)[0] for item in project["dependencies"]}
