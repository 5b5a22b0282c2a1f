"""One step run: its folder with what it needs, the process, and what came of it, held against what it must
give."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from bench.commands import ladder_watch as watch
from bench.results.store import LOG_FILE
from kernels.cache import cache_dir
from tests.rehearsal import checks
from tests.rehearsal.content import ROOT
from tests.rehearsal.fixtures import MADE
from tests.rehearsal.machine import Machine
from tests.rehearsal.steps import PYTHON, Outcome, Step, Use

STANDIN = ("-m", "tests.standin")  # runs a command of the program against a simulated GPU
WAITS = "waiting for a file to be saved"  # what a ladder that is watched says
POLL_S = watch.POLL_S
LINES = 8  # of each file, to tell why a step failed
END_S = 20.0  # for a command to end in order after Ctrl-C
VISIBLE = "CUDA_VISIBLE_DEVICES"
OWN = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")  # of no account: the rehearsal has no screen


class Stopped(Exception):
    """The rehearsal was asked to end while a step ran; nothing came of it."""


class Runner:
    """Runs steps, each in a folder of its own below `work`. `stop`, once set, ends those in flight."""

    def __init__(self, work: Path, machine: Machine, stop: threading.Event) -> None:
        self.work = work
        self._machine = machine
        self._stop = stop
        # Which GPUs steps run on now: each takes the one with the fewest, the first where they are alike.
        self._on_gpu = dict.fromkeys(machine.gpus, 0)
        self._choosing = threading.Lock()

    def folder_of(self, step: Step) -> Path:
        return self.work / step.slug

    def made(self, step: Step) -> bool:
        """Whether what a step makes is there (of a step that makes nothing, the folder it ran in)."""
        folder = self.folder_of(step)
        return all((folder / name).exists() for name in step.expect.made) and folder.is_dir()

    def run(self, step: Step, known: dict[str, Step]) -> Outcome:
        """What came of it; known: the steps whose fixtures it may use. Raises Stopped."""
        folder = self.folder_of(step)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        if step.fresh:
            shutil.rmtree(self.work / step.fresh, ignore_errors=True)
        for use in step.uses:
            self._lay(use, known[use.fixture], folder)
        began, started = time.time(), time.monotonic()
        with self._some_gpu() as gpu:
            code = self._process(step, folder, gpu)
        seconds = time.monotonic() - started
        out = _read(folder / (step.into or "stdout.txt"))
        result = checks.Result(code, out, _read(folder / "stderr.txt"), folder, began)
        found = checks.problems(step, result, self._machine)
        plain = [text.replace(str(folder), "…").replace(str(self.work), "…") for text in found]
        return Outcome(
            name=step.name,
            outcome="failed" if found else "ok",
            seconds=round(seconds, 1),
            reason="; ".join(plain),
            at=time.strftime("%Y-%m-%d %H:%M"),
        )

    def _lay(self, use: Use, step: Step, folder: Path) -> None:
        source, target = self.folder_of(step) / MADE, folder / use.at
        target.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if source.is_dir() else shutil.copy2)(source, target)

    @contextlib.contextmanager
    def _some_gpu(self) -> Iterator[dict[str, str]]:
        """The environment in which a command sees one GPU alone; {} where there is no choice."""
        if len(self._on_gpu) < 2:
            yield {}
            return
        with self._choosing:
            gpu = min(self._on_gpu, key=self._on_gpu.__getitem__)
            self._on_gpu[gpu] += 1
        try:
            yield {VISIBLE: gpu}
        finally:
            with self._choosing:
                self._on_gpu[gpu] -= 1

    def _process(self, step: Step, folder: Path, gpu: Mapping[str, str]) -> int | None:
        """Its exit code; None where it was ended after its time. Raises Stopped."""
        with (
            (folder / (step.into or "stdout.txt")).open("wb") as out,
            (folder / "stderr.txt").open("wb") as err,
        ):
            process = subprocess.Popen(
                self.arguments(step),
                cwd=folder,
                env={**gpu, **self._environment(step)},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,  # Ctrl-C in the terminal reaches us alone
            )
            try:
                return self._until_done(process, step, folder)
            finally:
                _end(process)

    def _until_done(self, process: subprocess.Popen[bytes], step: Step, folder: Path) -> int | None:
        end = time.monotonic() + step.timeout_s
        saved = interrupted = False
        while (code := process.poll()) is None:
            if self._stop.wait(POLL_S):
                raise Stopped
            if time.monotonic() > end:
                return None
            if step.watch and not interrupted:
                waits = _read(folder / "stdout.txt").count(WAITS)
                if waits == 1 and not saved:
                    saved = True
                    _save_again(folder / step.watch)
                elif waits > 1:
                    interrupted = True
                    process.send_signal(signal.SIGINT)
        return code

    def arguments(self, step: Step) -> list[str]:
        """As the system is given it."""
        words = list(step.command)
        if words[:2] == [PYTHON, "main.py"]:
            words[1:2] = [*(STANDIN if self._machine.standin else ()), str(ROOT / "main.py")]
        return [sys.executable if word == PYTHON else word for word in words[:1]] + words[1:]

    def _environment(self, step: Step) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name not in OWN}
        paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH", "")])]
        common = {"PYTHONPATH": os.pathsep.join(paths), "KERNELSCOPE_CACHE": str(self._cache())}
        own = {name: value.format(work=self.work) for name, value in step.environment.items()}
        return kept | common | own

    def _cache(self) -> Path:
        """A cache of the rehearsal's own, empty at its beginning as a new user's is: what is timed while
        other steps run is not to be kept as what this machine reaches. Images downloaded before are taken
        over."""
        cache = self.work / "cache"
        with contextlib.suppress(FileExistsError):
            cache.mkdir(parents=True)
            if (downloaded := cache_dir() / "data").is_dir():
                (cache / "data").symlink_to(downloaded.resolve())
        return cache

    def told(self, step: Step) -> str:
        """The last lines of what a step wrote, for whoever asks why it failed."""
        folder = self.folder_of(step)
        files = [folder / "stdout.txt", folder / "stderr.txt", *sorted(folder.rglob(LOG_FILE))]
        last = [(path.relative_to(self.work), _read(path).splitlines()[-LINES:]) for path in files]
        return "\n".join(f"  {name}: {line}" for name, lines in last for line in lines)


def _save_again(folder: Path) -> None:
    """As an editor does after a change that changes nothing: of the user's kernel a comment at its end."""
    [path] = [path for path in folder.iterdir() if path.suffix in (".py", ".cu")]
    with path.open("a", encoding="utf-8") as file:
        file.write("# saved again\n" if path.suffix == ".py" else "// saved again\n")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Leave nothing behind: asked first, as Ctrl-C does, then ended."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(END_S)
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
