"""What a newcomer does with the package, in this order. Each step raises BrokenError, or is done."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

from bench.extras.remote import packing
from bench.words import version
from tests import sampling
from tests.bench.extras.remote import loopback
from tests.package import building, installed
from tests.package.installed import BrokenError, Installed

Step = Callable[[Installed], None]
# Before all else: nothing of the program is to be found by whoever imports the package.
IMPORTED = """
import importlib.util, sys
before = set(sys.modules)
import kernelscope
from kernelscope import program
new = {name.partition(".")[0] for name in set(sys.modules) - before}
strange = sorted(name for name in new - {"kernelscope"} if name not in sys.stdlib_module_names)
assert not strange, strange
rooms = ("main", "bench", "engine", "gui", "kernels", "models")
found = [name for name in rooms if importlib.util.find_spec(name)]
assert not found, found
print(program.version())
"""
# The window as `kernelscope` opens it, on a screen that nobody sees; it is looked at, and closed.
WINDOW = """
import sys
from kernelscope import program
sys.path.insert(0, str(program.root()))
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication
from gui.menus import about
from gui.shell import app
from gui.shell.main_window import MainWindow
application = QApplication(sys.argv[:1])
seen = []
def look():
    window = next(it for it in application.topLevelWidgets() if isinstance(it, MainWindow))
    picture = window.grab().toImage()
    across, down = range(0, picture.width(), 7), range(0, picture.height(), 7)
    seen.append(len({picture.pixel(x, y) for x in across for y in down}))
    window.close()
QTimer.singleShot(2500, look)
code = app.run()
print(seen, len(about.licence()))
sys.exit(code)
"""
# From Python: a right and a wrong kernel, and a run as a data frame.
FROM_PYTHON = """
import sys
import kernelscope as ks
kernel = '''
import numpy as np

def bind(p, inputs, output, workspace):
    x = inputs[0]

    def run():
        powers = np.exp(x - x.max(axis=1, keepdims=True))
        np.divide(powers, powers.sum(axis=1, keepdims=True), out=output)
        if p.log:
            np.log(output, out=output)

    return run
'''
with ks.Judge(op="softmax", batch=1024, budget=0.05) as judge:  # so long that it is timed on a busy machine
    right, wrong = judge(kernel), judge(kernel.replace("x.max(axis=1", "x.max(axis=0"))
assert right.right is True and right.time_s > 0, right.why
assert wrong.right is False and wrong.finding is not None, wrong.why
comparison = ks.compare("lenet5-digits", batch=[1, 4], budget=0.02, images=8, charts="none")
frame = comparison.frame()
assert type(frame).__module__.startswith("pandas") and len(frame) == len(comparison.rows) == 4, frame
assert set(frame["backend"]) == {"engine-cpu", "ort-cpu"} and (frame["median_s"] > 0).all()
assert comparison.verdicts and "<table" in comparison._repr_html_()
rooms = {"main", "bench", "engine", "gui", "kernels", "models"}
assert not rooms.intersection(name.partition(".")[0] for name in sys.modules)
print(frame.to_string())
"""
QUICK = ("--batch", "1", "--charts", "none", "--no-layer-pass", "--images", "8")

COMPARE = ("kernelscope", "compare", "lenet5-digits", *QUICK, "--budget", "0.02")


def wanted(good: object, what: str) -> None:
    if not good:
        raise BrokenError(what)


def imports_nothing_of_the_program(there: Installed) -> None:
    """`import kernelscope` brings the standard library at most, and no `models` or `gui` to find."""
    said = there.run(there.python, "-c", IMPORTED).stdout.strip()
    wanted(said == version.described(), f"{said!r} is not {version.described()!r}")


def says_its_version(there: Installed) -> None:
    for words in (("kernelscope",), (there.python, "-m", "kernelscope")):
        said = there.run(*words, "--version").stdout
        wanted(said == f"kernelscope {version.described()}\n", f"--version says {said!r}")
    told = there.run("kernelscope", "compar", code=2).stderr
    wanted("Did you mean 'compare'?" in told, told)
    wanted("Usage: kernelscope " in there.run("kernelscope", "--help").stdout, "--help names another command")


def the_doctor_finds_what_runs(there: Installed) -> None:
    said = there.run("kernelscope", "doctor").stdout
    for name in ("engine-cpu", "ort-cpu", "digits"):
        wanted(re.search(rf"✓\s+{name}", said), f"the doctor does not find {name}:\n{said}")
    wanted("make " not in said, f"the doctor names make, which a wheel does not have:\n{said}")


def the_default_comparison(there: Installed) -> None:
    """Without a display, and with less time a case than usual."""
    before = {*(there.home / "runs").glob("*/run.json")}  # such as those that Python asked for
    done = there.run("kernelscope", KERNELSCOPE_BUDGET="0.03", KERNELSCOPE_INSTANCES="1")
    wanted("there is no display" in done.stderr, done.stderr)
    (run,) = {*(there.home / "runs").glob("*/run.json")} - before
    held = json.loads(run.read_text(encoding="utf-8"))
    wanted(held["command"] == "kernelscope", held["command"])
    lines = (run.parent / "results.jsonl").read_text(encoding="utf-8").splitlines()
    wanted(len(lines) == len(held["cases"]) == 8, f"{len(lines)} cases of {len(held['cases'])}")
    wanted(len([*run.parent.glob("charts/*.png")]) > 5, "there are no charts")
    said = there.run("kernelscope", "runs", "report", run.parent, "--out", "report.html")
    wanted((there.home / "report.html").stat().st_size > 10_000, said.stderr)


def the_window(there: Installed) -> None:
    said = there.run(there.python, "-c", WINDOW, QT_QPA_PLATFORM="offscreen").stdout.split()
    colours, licence = (int(re.sub(r"\D", "", word)) for word in said)
    wanted(colours > 20, f"the window has {colours} colours")
    wanted(licence > 1000, "the window finds no licence")


def a_kernel_of_ones_own(there: Installed) -> None:
    done = there.run("kernelscope", "ladder", "--new", "conv", "mein Kern")
    again = re.search("try it: (.*)", done.stderr)
    wanted(again and again[1].startswith("kernelscope ladder conv "), done.stderr)
    options = ("--kernels", "mein Kern", "--device", "cpu", "--model", "lenet5-digits", "--node", "conv1")
    said = there.run(
        "kernelscope", "ladder", "conv", *options, "--rung", "90", "--budget", "0.05", "--charts", "none"
    ).stdout
    wanted(re.search(r"\b90\b.*\bok\b", said), f"the kernel is not right:\n{said}")


def a_student_checks_in_the_folder_that_was_handed_out(there: Installed) -> None:
    """By the command as the teacher's page, and the folder's own, print it; and the teacher grades that."""
    there.run("kernelscope", "course", "new", "task", "--op", "softmax")
    assignment = there.home / "task" / "assignment.toml"  # less time and fewer shapes than usual
    text = assignment.read_text(encoding="utf-8")
    brief = text.replace("budget = 0.5", "budget = 0.05").replace('checks = "full"', 'checks = "quick"')
    assignment.write_text(brief, encoding="utf-8")
    said = there.run("kernelscope", "course", "handout", "task", "in/Ada").stderr
    wanted("kernelscope course check" in said, said)
    kernel = there.home / "in" / "Ada" / "90_mine.py"
    kernel.write_text(f"{kernel.read_text(encoding='utf-8')}\nOWN = 1\n", encoding="utf-8")
    done = there.run("sh", "-c", "cd in/Ada && kernelscope course check")
    wanted("softmax (" in done.stdout and "passed" in done.stdout, done.stdout)
    there.run("kernelscope", "course", "grade", "in", "--assignment", "task", "--out", "grades", "--no-walls")
    wanted((there.home / "grades" / "students" / "Ada.html").is_file(), "there is no page")
    there.run("kernelscope", "course", "autograder", "task", "--out", "grader.zip")


def from_python(there: Installed) -> None:
    said = there.run(there.python, "-c", FROM_PYTHON).stdout
    wanted("engine-cpu" in said, said)


def the_settings_of_a_project(there: Installed) -> None:
    """A file in the folder holds, a variable goes before it, and what is wrong in it is told by its line."""
    file = there.home / "kernelscope.toml"
    file.write_text('threads = 1\nbudget = 0.02\nkernels = "mein Kern"\n', encoding="utf-8")
    said = " ".join(there.run("kernelscope", "config", KERNELSCOPE_BUDGET="0.01").stdout.split())
    wanted(f"threads 1 {file}, line 1" in said, said)
    wanted("budget 0.01 the variable KERNELSCOPE_BUDGET" in said, said)
    told = there.run("kernelscope", "compare", "lenet5-digits", *QUICK, code=2).stderr
    wanted("`kernelscope config --trust`" in told, told)
    there.run("kernelscope", "config", "--trust")
    there.run("kernelscope", "compare", "lenet5-digits", *QUICK, "--backend", "engine-cpu", "--out", "set")
    job = json.loads((there.home / "set" / "run.json").read_text(encoding="utf-8"))["job"]
    wanted((job["threads"], job["budget_s"]) == (1, 0.02), str(job))
    wanted(job["kernel_dirs"] == [str(there.home / "mein Kern")], str(job))
    file.write_text("\nbugdet = 1\n", encoding="utf-8")
    told = there.run("kernelscope", code=2).stderr
    wanted("kernelscope.toml, line 2: 'bugdet'" in told, told)
    file.unlink()


def colours_are_left_out_where_they_are_not_wanted(there: Installed) -> None:
    """In a terminal that shows them; util-linux's script is one."""
    if shutil.which("script") is None:
        return
    command = ("script", "-qec", "kernelscope doctor", "/dev/null")
    coloured = there.run(*command, TERM="xterm-256color", COLUMNS="120").stdout
    plain = there.run(*command, TERM="xterm-256color", COLUMNS="120", NO_COLOR="1").stdout
    wanted(re.search(r"\x1b\[[0-9;]*3[0-9]", coloured), "a terminal gets no colours, so nothing is shown")
    wanted(not re.search(r"\x1b\[[0-9;]*[349][0-9]", plain), "NO_COLOR does not keep colours away")


def the_shell_completes(there: Installed) -> None:
    """bash does; zsh and fish where they are to be had."""
    there.run("bash", "-c", "kernelscope --install-completion")
    asked = r"""
        source ~/.bashrc
        COMP_WORDS=(kernelscope compare --l2 c); COMP_CWORD=3
        _kernelscope_completion kernelscope; echo "${COMPREPLY[*]}"
        COMP_WORDS=(kernelscope lad); COMP_CWORD=1
        _kernelscope_completion kernelscope; echo "${COMPREPLY[*]}"
    """
    said = there.run("bash", "-c", asked).stdout.split()
    wanted(said == ["cold", "ladder"], f"bash completes {said}")
    reads = {
        "zsh": "autoload -Uz compinit; compinit -u; source ~/.zfunc/_kernelscope; print $_comps[kernelscope]",
        "fish": "source ~/.config/fish/completions/kernelscope.fish; complete -C 'kernelscope lad'",
    }
    for shell, read in reads.items():
        asks = {"_KERNELSCOPE_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
        said = there.run("kernelscope", _TYPER_COMPLETE_ARGS="kernelscope lad", **asks).stdout
        wanted("ladder" in said, f"{shell} is told {said!r}")
        if place := shutil.which(shell):
            there.run(place, "-c", "kernelscope --install-completion; true", SHELL=place)
            said = there.run(place, "-c", read).stdout
            wanted(("ladder" if shell == "fish" else "_kernelscope_completion") in said, f"{shell}: {said!r}")


def what_a_checkout_sends_elsewhere_is_what_the_wheel_holds(there: Installed) -> None:
    """The program that `remote add` packs out of a checkout, and out of this wheel."""

    def held(file: Path) -> dict[str, bytes]:
        with zipfile.ZipFile(file) as archive:
            names = (name for name in archive.namelist() if name.startswith("kernelscope/"))
            return {name: archive.read(name) for name in names if not name.endswith("/commit.txt")}

    ours, wheel = held(packing.program()), held(there.wheel)
    for name in ours.keys() ^ wheel.keys():
        raise BrokenError(f"{name} is {'only sent' if name in ours else 'not sent'}")
    wanted(ours == wheel, "a file that is sent is another one than in the wheel")


def a_machine_elsewhere_is_set_up(there: Installed) -> None:
    """With what the wheel holds, through OpenSSH, packages from the registry; a kernel is judged there; then
    nothing of it is left. A place's paths have a space and a letter beyond ASCII, as all of this has."""
    if loopback.SSHD is None:
        print("  note: without openssh-server nothing is set up elsewhere", flush=True)
        return
    with loopback.loopback(there.folder / "elsewhere") as server:
        if there.user:  # the client is that user's, who must own its key
            os.chown(server.folder / "key", installed.NOBODY, installed.NOBODY)
        path = f"{server.folder / 'bin'}:{there.environment['PATH']}"

        def run(*words: str) -> str:
            done = there.run("kernelscope", *words, PATH=path)
            return done.stdout + done.stderr

        said = run("remote", "add", "lab", loopback.HOST)
        wanted("lab is ready" in said and "engine-cpu" in said, said)
        said = run(
            "ladder", "softmax", "--device", "cpu", "--rung", "stable", "--on", "lab", "--budget", "0.05"
        )
        wanted("stable" in said, said)
        (place,) = server.home.glob(".kernelscope-place")
        said = run("remote", "remove", "lab")
        wanted("is gone" in said and not place.exists(), said)


def a_notebook(there: Installed) -> None:
    """Each cell, where the wheel is installed; what it packs is opened again. Of the notebooks one, by the
    commit, or those that it has changed: most of their cells are the same (KERNELSCOPE_SEED=all: each)."""
    shutil.copy(building.ROOT / "tests/api/notebook.py", there.home / "notebook.py")
    files = sorted((building.ROOT / "docs").glob("*.ipynb"))
    changed = [file for file in files if file in sampling.changes()]
    for file in changed or sampling.some("notebook", files, 1):
        print(f"  {file.name}", flush=True)
        shutil.copy(file, there.home / file.name)
        said = there.run("python", "notebook.py", file.name, "--here").stdout
        wanted("Figure size" in said, said)
        packs = re.findall(r"pack\(\\?\"(\w+\.zip)", file.read_text(encoding="utf-8"))
        wanted(len(packs) == (2 if file.stem == "elsewhere" else 0), f"{file.name} packs {packs}")
        for name, told in zip(packs, ("lenet5-digits", "mine"), strict=False):
            wanted(told in there.run("kernelscope", "runs", "show", name).stdout, f"{name} does not open")


def a_runtime_that_is_missing_is_mended_as_it_is_said(there: Installed) -> None:
    """Of ONNX Runtime there is none: what is said brings it, word for word."""
    building.run(building.uv(), "pip", "uninstall", "-q", "--python", there.python, "onnxruntime")
    done = there.run(*COMPARE, "--out", "without")
    wanted("warning: ONNX Runtime is not installed" in done.stderr, done.stderr)
    _mended(there, done.stderr)


def _mended(there: Installed, said: str, form: int = 1) -> None:
    """As the message says: 0 the form of pip, 1 that of uv."""
    command = re.findall("`(.*?)`", said)[form]
    wanted(f"'{there.python}'" in command, f"{command} is not for the interpreter in use")
    place = str(Path(building.uv()).parent)
    building.run("bash", "-c", f'PATH="{place}:$PATH"; {command}')
    shutil.rmtree(there.home / "again", ignore_errors=True)
    done = there.run(*COMPARE, "--out", "again")
    # That other programs are busy is no fault of the package.
    warned = re.search("^warning: .*onnx", done.stderr, re.IGNORECASE | re.MULTILINE)
    wanted(not warned and "ort-cpu" in done.stdout, done.stderr)


def without_installing(there: Installed) -> None:
    """`uvx` from the file."""
    said = building.run(
        building.uv(), "tool", "run", "--isolated", "--from", there.wheel, "kernelscope", "--version"
    )
    wanted(f"kernelscope {version.described()}" in said, said)


# ------------------------------------------------------------------------ what brings much from the registry


def from_one_build_to_the_other(there: Installed) -> None:
    """Both builds are there: what is said leaves one; then the other way."""
    for added, form in (("onnxruntime-gpu", 0), ("onnxruntime-gpu", 1)):
        building.run(building.uv(), "pip", "install", "-q", "--python", there.python, added, "pip")
        shutil.rmtree(there.home / "both", ignore_errors=True)
        done = there.run(*COMPARE, "--out", "both", code=None)  # with two builds anything may happen
        wanted("are both installed and overwrite each other" in done.stderr, done.stderr)
        _mended(there, done.stderr, form)


def pip_and_pipx(there: Installed) -> None:
    folder = there.folder / "by pip"
    building.run(sys.executable, "-m", "venv", folder)
    building.run(folder / "bin" / "python", "-m", "pip", "install", "-q", f"{there.wheel}[cpu]")
    building.run(folder / "bin" / "kernelscope", "doctor")
    places = {"PIPX_HOME": str(there.folder / "pipx"), "PIPX_BIN_DIR": str(there.folder / "pipx" / "bin")}
    building.run(building.uv(), "tool", "run", "pipx", "install", f"{there.wheel}[cpu]", **places)
    building.run(there.folder / "pipx" / "bin" / "kernelscope", "doctor")


def the_notebook_installs_the_wheel(there: Installed) -> None:
    """As on a machine that is a notebook: pip is there, the program is not, and the wheel lies beside it."""
    folder, python = there.folder / "notebook", there.folder / "of the notebook" / "bin" / "python"
    folder.mkdir()
    building.run(sys.executable, "-m", "venv", python.parents[1])
    for file in (
        building.ROOT / "tests/api/notebook.py",
        building.ROOT / "docs/elsewhere.ipynb",
        there.wheel,
    ):
        shutil.copy(file, folder)
    said = building.run(python, "notebook.py", "elsewhere.ipynb", "--here", cwd=folder)
    wanted("comparison.zip" in said and (folder / "ladder.zip").is_file(), said)


def every_extra_can_be_resolved(there: Installed) -> None:
    for extra in (
        "cpu",
        "cuda",
        "cuda12",
        "nvrtc",
        "cluster",
        "torch",
        "openvino",
        "cudnn",
        "cpu,nvrtc,cluster",
    ):
        dry = ("--dry-run", "--python-platform", "x86_64-unknown-linux-gnu", "--python", there.python)
        building.run(building.uv(), "pip", "install", "-q", *dry, f"{there.wheel}[{extra}]")


STEPS: tuple[Step, ...] = (
    imports_nothing_of_the_program,
    says_its_version,
    the_doctor_finds_what_runs,
    a_kernel_of_ones_own,
    a_student_checks_in_the_folder_that_was_handed_out,
    from_python,
    the_default_comparison,
    the_window,
    the_settings_of_a_project,
    colours_are_left_out_where_they_are_not_wanted,
    the_shell_completes,
    what_a_checkout_sends_elsewhere_is_what_the_wheel_holds,
    a_notebook,
    a_runtime_that_is_missing_is_mended_as_it_is_said,
    without_installing,
)
WHOLE: tuple[Step, ...] = (
    a_machine_elsewhere_is_set_up,
    from_one_build_to_the_other,
    every_extra_can_be_resolved,
    pip_and_pipx,
    the_notebook_installs_the_wheel,
)
