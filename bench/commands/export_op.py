"""`export-op`: a kernel in the place of a node, as an operator of ONNX Runtime or PyTorch."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from engine.graph.graph import Graph
    from engine.planning.exported import Replacement
    from kernels.registry import Rung

TARGETS = ("onnxruntime", "torch")


def export_op(
    kernel: Path = typer.Argument(metavar="KERNEL", help="The file of a kernel, as of a ladder."),
    node: str = typer.Option(metavar="NODE", help="The node in whose place it is to run, by name."),
    model: str = typer.Option(metavar="MODEL", help="A model of the catalogue, or an .onnx file."),
    to: str = typer.Option("onnxruntime", metavar="LIBRARY", help=f"{' or '.join(TARGETS)}."),
    batch: str = typer.Option(
        "", metavar="N,N,…", help="The batch sizes that it is to work at; default: the file's, or 1."
    ),
    arch: str = typer.Option(
        "", metavar="A", help="sm_80, … of a CUDA kernel; default: this GPU's, or what its header asks for."
    ),
    out: Path | None = typer.Option(None, metavar="DIR", help="Where to; default: a folder named for it."),
) -> int:
    """Export a kernel as an operator of ONNX Runtime or PyTorch.

    It works there without this program. A README beside it says how to load it.
    """
    from bench.measure import cases
    from bench.questions.given_kernel import GivenKernel, placed
    from bench.results.records import Job
    from bench.words.option import one_of
    from engine.graph import importer
    from engine.planning.exported import replacement
    from kernels.errors import InputError, system_words
    from kernels.exported import library

    one_of(to, TARGETS, "library")
    library.compiler()  # before anything that takes long
    with tempfile.TemporaryDirectory() as folder:
        rung = placed(GivenKernel(file=str(kernel)), Path(folder))
        file = cases.model_spec(model, Job(models=(model,), backends=())).file(None)
        graph = importer.load(file)
        made = replacement(graph, node, rung, _batches(batch, graph), _arch(arch, rung))
    target = out or Path(made.operator.name)
    copy = target / f"{graph.name}.onnx"
    if to == "onnxruntime" and copy.exists() and copy.samefile(file):
        raise InputError(f"{copy} is the model itself, which stays as it is; name another folder by --out")
    try:
        files = library.written(made.operator, target)
        files += _beside(made, graph, to, target)
    except OSError as error:
        raise InputError(f"{target} cannot be written: {system_words(error)}") from error
    print("\n".join(map(str, files)))
    return 0


def _batches(text: str, graph: Graph) -> tuple[int, ...]:
    from bench.words.option import Numbers

    if text:
        return tuple(Numbers(least=1).read([text], "--batch"))
    return (graph.fixed_batch or 1,)


def _arch(name: str, rung: Rung) -> str:
    from kernels.errors import InputError

    if rung.device != "cuda":
        if name:
            raise InputError(f"--arch is of CUDA kernels, and {rung.label} is one of the CPU; leave it away")
        return ""
    from bench.measure.ladder.compiled import architectures, meant_for

    return architectures([name])[0] if name else meant_for(rung)


def _beside(made: Replacement, graph: Graph, to: str, target: Path) -> list[Path]:
    """The model's copy or PyTorch's module, and the README."""
    from kernels.exported import readme, torch_module

    copy = target / f"{graph.name}.onnx"
    if to == "torch":
        files = torch_module.written(made.operator, target)
    else:
        from engine.ort.swapped import save, swapped

        save(swapped(graph, [made], next(iter(graph.batch_symbols), "N")), copy)
        files = [copy]
    page = target / "README.md"
    page.write_text(readme.text(made.operator, made.nodes, to, copy.name), encoding="utf-8")
    return [*files, page]
