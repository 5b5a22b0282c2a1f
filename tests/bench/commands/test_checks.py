"""The doctor says what is there, what is not, and what would help, and never stops halfway."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import msgspec
import pytest

from bench.commands import checks as machine
from bench.measure import environment
from bench.results.records import BackendInfo
from gui.base import display


def by_name(found: list[machine.Check]) -> dict[str, machine.Check]:
    return {check.name: check for check in found}


def test_every_topic_has_its_line() -> None:
    found = machine.checks("no window can open: no display")
    topics = {check.topic for check in found}
    assert {
        "python",
        "packages",
        "gpu",
        "backends",
        "providers",
        "nvrtc",
        "window",
        "models",
        "data sets",
        "disk",
    } <= topics
    assert all(check.text for check in found)
    checks = by_name(found)
    assert {"numpy", "onnx", "msgspec"} <= checks.keys()
    assert checks["engine-cpu"].status == "ok"
    assert checks["display"].text == "no window can open: no display"
    assert checks["display"].status == "note"
    assert machine.runs_anything(found)


@pytest.mark.parametrize("there", [(), machine.RUNTIMES])
@pytest.mark.parametrize(("extra", "build"), [("cpu", "onnxruntime"), ("cuda", "onnxruntime-gpu")])
def test_no_build_of_onnx_runtime_and_two_are_told_with_what_mends_it(
    there: tuple[str, ...], extra: str, build: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commands are for the Python in use, and name the build that this machine can run."""
    monkeypatch.setattr(sys, "executable", "/a b/python")
    monkeypatch.setattr(machine, "of_package", lambda name: "1.0" if name in there else "")
    monkeypatch.setattr(machine.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr("engine.ort.sessions.two_builds", lambda: "both are in one folder")
    monkeypatch.setenv("KERNELSCOPE_EXTRA", extra)
    (check,) = (c for c in machine.checks() if c.name == "onnxruntime" and c.topic == "packages")
    assert check.status == "missing"
    pip, uv = re.findall("`(.*?)`", check.text)
    assert f"'/a b/python' -m pip install '{build}>=" in pip
    assert f"uv pip install --python '/a b/python' '{build}>=" in uv
    for command in (pip, uv):
        assert ("uninstall" in command and " onnxruntime onnxruntime-gpu && " in command) == bool(there)


def test_one_build_of_onnx_runtime_is_well(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in machine.RUNTIMES:
        monkeypatch.setattr(machine, "of_package", lambda asked, name=name: "1.0" if asked == name else "")
        assert machine.runtime_problem() is None


def test_a_missing_package_names_what_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "of_package", lambda name: "")
    checks = by_name(list(machine._packages()))
    assert checks["numpy"].status == "missing"
    assert "pip install numpy" in checks["numpy"].text


def test_a_check_that_breaks_is_a_line_of_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> list[machine.Check]:
        raise RuntimeError("half an installation")

    monkeypatch.setattr(machine, "_backends", broken)
    found = machine.checks()
    check = by_name(found)["backends"]
    assert check.status == "missing"
    assert "half an installation" in check.text
    assert not machine.runs_anything(found)


def test_a_machine_where_nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    info = BackendInfo(
        name="b", device="cpu", precisions=("fp32",), reference="b", unavailable="no such thing"
    )
    monkeypatch.setattr(environment, "backend_infos", lambda: (info,))
    found = machine.checks()
    assert not machine.runs_anything(found)
    assert by_name(found)["b"].text == "no such thing"


def test_rivals_are_listed_with_how_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = BackendInfo(
        name="r", device="cpu", precisions=("fp32",), reference="b", rival=True, get="`make r` brings it"
    )
    missing = msgspec.structs.replace(plain, name="gone", unavailable="no driver", untried="nobody ran it")
    again = msgspec.structs.replace(missing, name="gone too", untried="")
    monkeypatch.setattr(environment, "backend_infos", lambda: (plain, missing, again))
    found = by_name(machine.checks())
    assert (found["r"].topic, found["r"].status) == ("rivals", "ok")
    assert "where it is named: --backend" in found["r"].text
    assert found["gone"].text == "no driver; untried: nobody ran it"
    assert found["gone too"].text == "no driver", "what was told once is not told again"
    monkeypatch.setattr(environment, "backend_infos", lambda: (missing,))
    found = by_name(machine.checks())
    assert found["gone"].text == "no driver; `make r` brings it; untried: nobody ran it"
    assert not machine.runs_anything(found.values()), "a rival alone has nothing to be compared with"


def test_a_cache_that_does_not_exist_yet_is_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELSCOPE_CACHE", str(tmp_path / "not" / "there"))
    checks = [c for c in machine.checks() if c.name == "cache"]
    assert {c.topic for c in checks} == {"models", "disk"}
    assert all(c.status != "missing" for c in checks)
    assert not (tmp_path / "not").exists()


# ------------------------------------------------------------------------------------------- the display


def test_no_display_is_said() -> None:
    assert "neither DISPLAY nor WAYLAND_DISPLAY" in (display.problem({}, "linux") or "")


def test_what_the_window_is_made_with_is_asked_for_by_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        display, "PACKAGES", {"json": "j", "nowhere_to_be_found": "a-package", "nor_this": "b"}
    )
    said = display.problem({}, "linux")
    assert said == (
        "no window can open: nowhere_to_be_found, nor_this are not installed; "
        "`pip install a-package b` brings them"
    )


def test_an_offscreen_platform_is_no_display() -> None:
    assert "QT_QPA_PLATFORM=offscreen" in (display.problem({"QT_QPA_PLATFORM": "offscreen"}, "linux") or "")


def test_missing_libraries_are_named_by_their_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = {"libxcb-cursor.so.0", "libxcb-icccm.so.4"}
    monkeypatch.setattr(display, "_loads", lambda library: library not in gone)
    text = display.problem({"DISPLAY": ":0"}, "linux") or ""
    assert "apt-get install libxcb-cursor0 libxcb-icccm4`" in text


def test_wayland_needs_no_xcb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(display, "_loads", lambda library: "xcb" not in library)
    assert display.problem({"WAYLAND_DISPLAY": "wayland-0"}, "linux") is None


def test_a_display_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(display, "_loads", lambda library: True)
    if not Path("/usr/lib/x86_64-linux-gnu/libxcb.so.1").exists():
        pytest.skip("libxcb is not installed")
    assert "does not answer" in (display.problem({"DISPLAY": ":4711"}, "linux") or "")


def test_other_systems_have_their_own_windows() -> None:
    assert display.problem({}, "win32") is None
