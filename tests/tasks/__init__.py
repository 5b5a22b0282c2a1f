"""The part of docs/tasks.md that is made from the folders of the shipped tasks."""

from __future__ import annotations

from pathlib import Path

from kernels import registry, tasks
from kernels.registry import Rung
from kernels.tasks import TaskParams

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tasks.md"
MARK = "<!-- What follows is made from kernels/tasks: python -m tests.tasks --write -->\n"
_LANGUAGES = {"cuda": "CUDA", "cpu": "Python"}


def page() -> str:
    """The page with its second part made anew."""
    written = PAGE.read_text(encoding="utf-8").partition(MARK)[0]
    return written + MARK + "\n" + "\n".join(map(_section, tasks.in_order()))


def _section(record: type[TaskParams]) -> str:
    spec, name = record.task.spec, record.op
    lines = [f"### {spec.title}", "", *spec.story.strip().splitlines(), ""]
    lines += ["| | |", "| --- | --- |"]
    lines.append(f"| task | `{name}` |")
    lines.append(f"| sizes | {'; '.join(f'`{symbol}`: {what}' for symbol, what in spec.sizes.items())} |")
    for of, tensors in (("inputs", spec.input), ("output", spec.output)):
        told = (f"`{it.name}` ({', '.join(map(str, it.shape))}), {it.type}" for it in tensors)
        lines.append(f"| {of} | {'; '.join(told)} |")
    timed = (", ".join(f"{symbol} {size:,}" for symbol, size in sizes.items()) for sizes in spec.time)
    beside = {".onnx": "a model, by ONNX Runtime", ".py": "on a GPU CuPy, on the CPU the reference in NumPy"}
    told = beside[Path(spec.yardstick).suffix]
    lines.append(f"| timed beside | {told} |")
    lines.append(f"| timed on | {'; '.join(timed)} |")
    lines += ["", "| Rung | | What it does |", "| --- | --- | --- |"]
    lines += [_row(rung) for device in ("cuda", "cpu") for rung in registry.rungs(device, name)]
    return "\n".join([*lines, ""])


def _row(rung: Rung) -> str:
    where = rung.path.relative_to(PAGE.parents[1]).as_posix()
    how = _LANGUAGES[rung.device] + (", compiled" if rung.compiled else "")
    return f"| [{rung.number:02d} {rung.name}](../{where}) | {how} | {rung.idea} |"
