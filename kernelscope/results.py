"""Comparisons, ladders and profiles: measured, or opened from the folder that one was kept in."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from pickle import loads
from typing import Any, Generic, TypeVar, cast

import msgspec

from kernelscope import records
from kernelscope.running import KernelscopeError, run, words

Name = str | os.PathLike[str]
O = TypeVar("O")  # noqa: E741 (an output)


class Run(Generic[O]):
    """A run that was measured, and the folder in which it is kept. output: what `--format json` prints."""

    def __init__(self, path: Path, output: O) -> None:
        self.path = path.absolute()  # wherever one goes from here
        self.output = output

    @property
    def verdicts(self) -> tuple[str, ...]:
        """What it comes to, a sentence each."""
        raise NotImplementedError

    @property
    def rows(self) -> tuple[Any, ...]:
        """The rows of its table, as records. Values are in base units; None is what is not known."""
        raise NotImplementedError

    def frame(self) -> Any:
        """The rows as a pandas DataFrame, or as one of polars where pandas is not installed. Raises
        KernelscopeError where neither is."""
        return frame(self.rows)

    def plot(self, chart: str = "") -> Any:
        """A chart of the program as a figure of matplotlib, which must be installed. chart: its name; an
        unknown one is answered with those that there are. Without a name, the first one."""
        with tempfile.TemporaryDirectory(prefix="kernelscope-") as folder:
            file = Path(folder) / "chart.pickle"
            named = ["--chart", chart] if chart else ["--chart", self.charts[0]]
            run(["export", str(self.path), "--file", str(file), *named], progress=False)
            return loads(file.read_bytes())  # ours: written by the program just now

    @property
    def charts(self) -> tuple[str, ...]:
        """The names of its charts."""
        said = run(["export", str(self.path), "--names"], progress=False)
        return tuple(said.output.decode().split())

    def report(self, file: Name, title: str = "") -> Path:
        """Write a report of it, as HTML or Markdown by the ending of the file."""
        run(
            ["runs", "report", str(self.path), "--out", os.fspath(file), *words({"title": title or None})],
            progress=False,
        )
        return Path(file)

    def pack(self, file: Name) -> Path:
        """Write its whole folder into one file, whose name ends with ".zip". The window opens it, and so does
        every command that shows a run."""
        target = Path(f"{str(file).removesuffix('.zip')}.zip")
        run(["runs", "copy", str(self.path), str(target)], progress=False)
        return target

    def __repr__(self) -> str:
        return "\n".join([f"<{type(self).__name__} {self.path}>", *self.verdicts])

    def _repr_html_(self) -> str:
        shown = run(["runs", "show", str(self.path), "--format", "html"], progress=False)
        return shown.output.decode()


class Comparison(Run[records.ComparisonOutput]):
    """Whole models, each backend beside its reference."""

    @property
    def verdicts(self) -> tuple[str, ...]:
        """A sentence a model."""
        return tuple(f"{board.model}: {board.line}" for board in self.scoreboards if board.line)

    @property
    def rows(self) -> tuple[records.ComparisonCase, ...]:
        """A row a case: model, backend, precision, batch size."""
        return self.output.cases

    @property
    def scoreboards(self) -> tuple[records.ScoreboardOutput, ...]:
        """One a model: for each backend and batch size, how it stands to its reference."""
        return self.output.scoreboards


class Ladder(Run[records.LadderOutput]):
    """The kernels of one operator beside the reference."""

    @property
    def verdicts(self) -> tuple[str, ...]:
        """Which kernel is the fastest."""
        return (self.output.line,) if self.output.line else ()

    @property
    def rows(self) -> tuple[records.LadderRung, ...]:
        """A row a kernel, and the reference."""
        return self.output.rungs


class Profile(Run[records.ProfileOutput]):
    """Where the time of a forward pass goes."""

    @property
    def verdicts(self) -> tuple[str, ...]:
        """What holds the operators back."""
        found = (row.get("sentence") for row in self.table("findings"))
        return tuple(dict.fromkeys(str(text) for text in found if text))

    @property
    def rows(self) -> tuple[dict[str, Any], ...]:
        """The rows of the table of the parts of a pass; `table` has the others."""
        return self.table("breakdown")

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of its tables."""
        return tuple(dict.fromkeys(table.key for table in self.output.tables))

    def table(self, name: str) -> tuple[dict[str, Any], ...]:
        """The rows of a table by name, of all cases. Raises KeyError naming those there are."""
        if name not in self.tables:
            raise KeyError(f"no table {name!r}; there are {', '.join(self.tables)}")
        found = (row for table in self.output.tables if table.key == name for row in table.rows)
        return tuple(cast(Iterable[dict[str, Any]], found))


def compare(
    model: Name | Sequence[Name],
    *,
    batch: int | Sequence[int] | str | None = None,
    backends: Sequence[str] | None = None,
    precision: str | Sequence[str] | None = None,
    budget: float | None = None,
    out: Name | None = None,
    progress: bool = True,
    **options: Any,
) -> Comparison:
    """Compare models on backends: `kernelscope compare`, whose options have their names here, with _ for -.

    model: a name of the catalogue or an .onnx file, or several. batch: sizes, 1 to 256 by doubling unless
    given; "1..64" doubles, too. budget: the most seconds of samples for each case. out: the folder, a dated
    one in ./runs unless given. A case that fails has a row that says why. Raises KernelscopeError.
    """
    models = [model] if isinstance(model, str | os.PathLike) else list(model)
    given = {"batch": batch, "backend": backends, "precision": precision, "budget": budget, "out": out}
    return _measured(Comparison, "compare", [os.fspath(one) for one in models], given | options, progress)


def ladder(
    op: str,
    *,
    model: Name | None = None,
    node: str | int | None = None,
    batch: int | None = None,
    shape: Sequence[int] | None = None,
    kernels: Name | Sequence[Name] | None = None,
    rungs: Sequence[str] | None = None,
    budget: float | None = None,
    out: Name | None = None,
    progress: bool = True,
    **options: Any,
) -> Ladder:
    """Check and time all kernels of an operator: `kernelscope ladder`, whose options have their names here.

    model, node: of which node, the first of that operator in the default models unless given; or for a
    convolution its `shape` (N, C, H, W, M, K), with stride, pad and so on. kernels: folders of your own
    kernels. rungs: only these. Raises KernelscopeError.
    """
    given = {
        "model": model,
        "node": node,
        "batch": batch,
        "shape": shape,
        "kernels": kernels,
        "rung": rungs,
        "budget": budget,
        "out": out,
    }
    return _measured(Ladder, "ladder", [op], given | options, progress)


def profile(
    model: Name,
    *,
    batch: int | Sequence[int] | str | None = None,
    backends: Sequence[str] | None = None,
    precision: str | None = None,
    out: Name | None = None,
    progress: bool = True,
    **options: Any,
) -> Profile:
    """Show where the time of a model's forward pass goes: `kernelscope profile`, whose options have their
    names here. Raises KernelscopeError."""
    given = {"batch": batch, "backend": backends, "precision": precision, "out": out}
    return _measured(Profile, "profile", [os.fspath(model)], given | options, progress)


def open(path: Name) -> Comparison | Ladder | Profile:
    """A run that was kept in a folder; nothing in it is executed. Raises KernelscopeError."""
    found = Path(path)
    for file, of in FILES.items():
        if (found / file).is_file():
            shown = run(["runs", "show", str(found), "--format", "json"], progress=False)
            return of(found, decoded(shown.output, OUTPUTS[of]))
    raise KernelscopeError(f"{found} holds no run: no {', '.join(FILES)}", 2)


FILES: dict[str, type[Any]] = {"run.json": Comparison, "ladder.json": Ladder, "profile.json": Profile}
OUTPUTS: dict[type[Any], type[Any]] = {
    Comparison: records.ComparisonOutput,
    Ladder: records.LadderOutput,
    Profile: records.ProfileOutput,
}
R = TypeVar("R", bound=Run[Any])


def _measured(of: type[R], command: str, named: list[str], options: dict[str, Any], progress: bool) -> R:
    """Run a command that measures, and read what it printed. Charts are drawn when they are asked for."""
    for name, meaning in (("format", "frame() and rows have them"), ("resume", "open() it")):
        if name in options:
            raise TypeError(f"{command} takes no option {name} here: {meaning}")
    ended = run([command, *named, *words({"charts": "none"} | options), "--format", "json"], progress)
    if settings := ended.named("settings"):
        warnings.warn(f"settings: {settings}", stacklevel=3)  # at the caller of compare, ladder or profile
    path = Path(ended.named("run", "ladder", "profile"))
    return of(path, decoded(ended.output, OUTPUTS[of]))


def decoded(output: bytes, kind: type[O]) -> O:
    """What a command printed. Raises KernelscopeError where it is not as this client knows it."""
    try:
        return msgspec.json.decode(output, type=kind)
    except msgspec.DecodeError as error:
        raise KernelscopeError(f"the program printed what this client cannot read: {error}") from error


def frame(rows: Sequence[Any]) -> Any:
    """Records or dictionaries as a data frame: of pandas, else of polars. Raises KernelscopeError where
    neither is installed."""
    found = [row if isinstance(row, dict) else msgspec.to_builtins(row) for row in rows]
    names = list(dict.fromkeys(name for row in found for name in row))
    try:
        import pandas
    except ImportError:
        try:
            import polars
        except ImportError:
            raise KernelscopeError(
                "a data frame needs pandas or polars; `pip install pandas` brings it; `rows` has the same as "
                "records"
            ) from None
        return polars.DataFrame({name: [row.get(name) for row in found] for name in names}, strict=False)
    return pandas.DataFrame.from_records(found, columns=names)
