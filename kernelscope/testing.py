"""What the pytest plugin does with a kernel: judge it, and hold it against the baseline that is kept."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kernelscope import kernel_text
from kernelscope.judging import Judge, Judgement
from kernelscope.pytest_plugin import MARK
from kernelscope.running import KernelscopeError

ENDING = ".kernels.json"  # of the file of baselines beside a test's, behind its name


class Benchmark:
    """Judges kernels in a test. judges: of the session, made when the first is needed."""

    def __init__(self, node: pytest.Item, judges: list[Any]) -> None:
        self._node = node
        self._judges = judges
        self._calls = 0

    def __call__(
        self, kernel: Any = None, op: str | None = None, *, baseline: bool = True, **options: Any
    ) -> Judgement:
        """Judge a kernel; without one that of the mark. A path that is not absolute begins at the folder of
        the test's file. baseline: whether it is held against the one that is kept.

        Fails the test where the kernel is wrong or cannot be judged, and where it is slower than the baseline
        by the program's own rule; what is not decided does not fail."""
        __tracebackhide__ = True
        self._calls += 1
        mark = self._node.get_closest_marker(MARK)
        if kernel is None:
            if mark is None or not mark.args:
                raise pytest.UsageError(
                    "name a kernel, or give the test a mark: @pytest.mark.kernel(path, op=…)"
                )
            kernel, *rest = mark.args
            op = op or (rest[0] if rest else None)
            options = {**mark.kwargs, **options}
            op = op or options.pop("op", None)
        if isinstance(kernel, str) and kernel_text.is_path(kernel):
            kernel = Path(kernel)
        if isinstance(kernel, Path):
            kernel = self._node.path.parent / kernel
        baseline = baseline and not options.get("simulated")  # which has no time to be held against
        update = bool(self._node.config.getoption("--kernelscope-update"))
        earlier = _read(self._file).get(self._name) if baseline and not update else None
        if not self._judges:
            self._judges.append(Judge())
        try:
            found, why = self._judges[0].judge(kernel, op, baseline=earlier, **options), ""
        except KernelscopeError as error:
            found, why = None, str(error)
            if earlier is not None and why.startswith("the baseline"):
                why += "; `pytest --kernelscope-update` keeps a new one"
        if found is None:
            pytest.fail(f"{_name_of(kernel)} could not be judged: {why}", pytrace=False)
        judged: Judgement = found
        if judged.right is False:
            pytest.fail(f"{judged.name} is wrong: {judged.why}", pytrace=False)
        if judged.right is None:
            pytest.fail(f"{judged.name} could not be judged: {judged.why}", pytrace=False)
        held = judged.beside("baseline")
        if held is not None and held.verdict == "SLOWER":
            pytest.fail(f"{judged.name} is slower than {held.title}: {_ratio(held)}", pytrace=False)
        if baseline and update:
            _keep(self._file, self._name, judged)
        return judged

    @property
    def _file(self) -> Path:
        path = self._node.path
        return path.with_name(path.stem + ENDING)

    @property
    def _name(self) -> str:
        """The test's own, without its file's; of a second kernel in a test with its number."""
        own = self._node.nodeid.partition("::")[2]
        return own if self._calls == 1 else f"{own}#{self._calls}"


def _name_of(kernel: Any) -> str:
    return kernel.name if isinstance(kernel, Path) else getattr(kernel, "__name__", "the kernel")


def _ratio(held: Any) -> str:
    low, high = held.speedup_low, held.speedup_high
    ends = f" ({1 / high:.2f}× to {1 / low:.2f}×)" if low and high else ""
    return f"it takes {1 / held.speedup:.2f}× as long{ends}"


def _read(file: Path) -> dict[str, Judgement]:
    """The baselines of a test file, by the test's name. Raises pytest.UsageError for one that is broken."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=dict[str, Judgement])
    except FileNotFoundError:
        return {}
    except msgspec.DecodeError as error:
        raise pytest.UsageError(
            f"{file} is no file of baselines: {error}; --kernelscope-update writes it anew once it is deleted"
        ) from error


def _keep(file: Path, name: str, judged: Judgement) -> None:
    """Keep a baseline beside what is there, which other processes may write at the same time."""
    with _alone(file.parent):
        _write(file, _read(file) | {name: judged})


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """No other process is in here for this folder, where the system can see to it."""
    try:
        import fcntl

        held = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):
        yield
        return
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)


def _write(file: Path, kept: dict[str, Judgement]) -> None:
    """Of the machine what tells whether it is the same one."""
    plain = {
        name: msgspec.to_builtins(
            msgspec.structs.replace(
                judged, environment=msgspec.structs.replace(judged.environment, backends=())
            )
        )
        for name, judged in sorted(kept.items())
    }
    new = file.with_name(f"{file.name}.{os.getpid()}")
    new.write_text(json.dumps(plain, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    new.replace(file)
