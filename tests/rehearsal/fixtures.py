"""What commands are tried on: runs, kernels, models and images that the rehearsal makes first.

A fixture is made by a step of its own, in that step's folder, under the name `made`; where a step uses it,
it is copied to the path that the step's command names. Those that no command of the program makes come from
`python -m tests.rehearsal.fixtures NAME …`, which this module is too.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx

from bench.results import packed
from tests.engine.ort import mixed
from tests.rehearsal.content import ROOT
from tests.rehearsal.machine import Machine
from tests.rehearsal.steps import PYTHON, Expect, Step, Use

MADE = "made"
BATCH = 2  # of the models of one operator
SMALL = ("--budget", "0.1", "--charts", "none", "--out", MADE)
_OWN = (PYTHON, "-m", "tests.rehearsal.fixtures")

SELFCHECK = "a check of a backend against itself"
COMPARISON, BEGUN, LADDER, BEGUN_LADDER, PROFILE = (
    "a comparison",
    "a comparison that was cut",
    "a ladder",
    "a ladder that was cut",
    "a profile",
)
KERNEL, CPU_KERNEL, CUDA_KERNEL, WRONG, CRASHING = (
    "a kernel of one's own",
    "a CPU kernel of one's own",
    "a CUDA kernel of one's own",
    "a kernel that forgets the bias",
    "a kernel that faults",
)
CUDA_PRODUCT = "a CUDA product of one's own"
TASK_KERNEL = "a kernel of one's own for a task"
MODEL, PHOTOS, CLASSES = "a model file", "a folder of images", "a file of classes"
PACKED = "a run in one file"
PLACES = "places elsewhere"  # which are this machine, through a launch prefix
ONE_NODE, NET = "a model with one ", "the net "  # and of which operator, and its name
MIXED = "a net with nodes for the CPU, "  # and where (tests.engine.ort.mixed)
RUNS = (COMPARISON, BEGUN, LADDER, BEGUN_LADDER, PROFILE)


def steps(machine: Machine) -> list[Step]:
    """The steps that make the fixtures, each named after what it makes."""
    main = (PYTHON, "main.py")
    shape = ("--shape", "2,2,9,9,3,3")
    made = {
        COMPARISON: (*main, "compare", "lenet5-digits", "--batch", "1,4", "--images", "64", *SMALL),
        BEGUN: (*_OWN, "cut"),
        LADDER: (*main, "ladder", "conv", *shape, *(w for rung in "1234" for w in ("--rung", rung)), *SMALL),
        BEGUN_LADDER: (*_OWN, "cut"),
        PROFILE: (*main, "profile", "lenet5-digits", *SMALL),
        SELFCHECK: (*main, *_selfcheck(machine)),
        KERNEL: (*main, "ladder", "--new", "conv", MADE),
        CPU_KERNEL: (*main, "ladder", "--new", "conv", MADE, "--device", "cpu"),
        CUDA_KERNEL: (*main, "ladder", "--new", "conv", MADE, "--device", "cuda"),
        TASK_KERNEL: (*main, "ladder", "--new", "scan", MADE, "--device", "cpu"),
        CUDA_PRODUCT: (*main, "ladder", "--new", "gemm", MADE, "--device", "cuda"),
        WRONG: (*_OWN, "kernel", "missing_bias", machine.device),
        CRASHING: (*_OWN, "kernel", "illegal", machine.device),
        MODEL: (*_OWN, "model"),
        PHOTOS: (*_OWN, "photos"),
        CLASSES: (*_OWN, "classes"),
        PLACES: (*_OWN, "places"),
        PACKED: (*_OWN, "packed"),
    }
    used = {BEGUN: COMPARISON, BEGUN_LADDER: LADDER, PACKED: COMPARISON}
    return [
        Step(
            name=name,
            group="made for what follows",
            command=command,
            # Of a few comparisons with itself one in twenty may well differ.
            expect=Expect((0, 1) if name == SELFCHECK else (0,), made=(MADE,), silent=True),
            uses=(Use(used[name], "whole"),) if name in used else (),
        )
        for name, command in made.items()
    ]


def _selfcheck(machine: Machine) -> tuple[str, ...]:
    few = ("--batch", "4", "--times", "2", "--budget", "0.05")
    return ("selfcheck", "lenet5-digits", "--backend", machine.backends[0], *few, "--out", MADE)


def model_of(op: str, machine: Machine) -> Step:
    """The step that makes a model with one node of this operator, for those that the default comparison's
    models have not."""
    return Step(
        name=f"{ONE_NODE}{op}",
        group="made for what follows",
        command=(*_OWN, "operator", op, machine.device),
        expect=Expect(made=(MADE,), silent=True),
    )


def net_of(name: str) -> Step:
    """The step that makes the file of a net that ships without its weights."""
    return Step(
        name=f"{NET}{name}",
        group="made for what follows",
        command=(PYTHON, "-m", "tests.zoo", "fill", name, MADE),
        expect=Expect(made=(MADE,), silent=True),
    )


def mixed_of(place: str) -> Step:
    """The step that makes a net whose nodes at this place ONNX Runtime's CUDA provider leaves to the CPU."""
    return Step(
        name=f"{MIXED}{place}",
        group="made for what follows",
        command=(*_OWN, "mixed", place),
        expect=Expect(made=(MADE,), silent=True),
    )


def made_by_name(name: str, machine: Machine) -> Step | None:
    """The step of a fixture that there are many of; None for another."""
    if name.startswith(ONE_NODE):
        return model_of(name.removeprefix(ONE_NODE), machine)
    if name.startswith(MIXED):
        return mixed_of(name.removeprefix(MIXED))
    return net_of(name.removeprefix(NET)) if name.startswith(NET) else None


# ------------------------------------------------------------------------------------------ how they are made


def cut(whole: Path, made: Path) -> None:
    """A run as a cut leaves it: without its last measurement, and half a line of it."""
    shutil.copytree(whole, made)
    results = made / "results.jsonl"
    *lines, last = results.read_bytes().splitlines(keepends=True)
    results.write_bytes(b"".join(lines) + last[: len(last) // 2])


def places(made: Path) -> None:
    """What `remote add` leaves here, of three places with this program and these packages.

    What it leaves there lies beside: it links to this program, and must not be copied for each step."""
    import os

    from tests.bench.extras.remote import there

    made.mkdir()
    os.environ["KERNELSCOPE_CONFIG"] = str((made / "kernelscope.toml").absolute())
    for name in ("lab", "farm", "box"):
        there.make(Path("there").absolute(), name, launch=("env",))
        subprocess.run([sys.executable, "main.py", "remote", "doctor", name], cwd=ROOT, check=True)


def kernel(name: str, device: str, made: Path) -> None:
    """A rung that is wrong in a known way, with what it includes, in a folder of its own."""
    suffix = {"cuda": ".cu", "cpu": ".py"}[device]
    folders = (ROOT / "tests" / "bench" / "ladder" / "planted", ROOT / "tests" / "rehearsal" / "planted")
    [source] = [path for folder in folders for path in folder.glob(f"[0-9][0-9]_{name}{suffix}")]
    made.mkdir()
    shutil.copy(source, made)
    if device == "cuda":
        # Beside it what it includes, and its twin of the CPU, by which a stand-in GPU answers.
        for beside in (*source.parent.glob("*.cuh"), source.with_suffix(".py")):
            if beside.is_file():
                shutil.copy(beside, made)


def model(made: Path) -> None:
    """The default model as a file that the catalogue knows nothing of."""
    from models import catalogue, names

    shutil.copy(catalogue.path(names.DEFAULT_MODEL), made)


def photos(made: Path, images: int = 40) -> None:
    """Some of the digits that ship, as pictures, one sub-folder a class."""
    from PIL import Image

    from models import datasets

    digits = datasets.load("digits", images)
    assert digits.labels is not None
    for number, (pixels, label) in enumerate(zip(digits.images, digits.labels, strict=True)):
        folder = made / str(digits.classes[label])
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(folder / f"{number:03d}.png")


def classes(made: Path) -> None:
    """The digits' names, in the order in which the default model has them."""
    from models import datasets

    made.write_text("\n".join(datasets.load("digits", 1).classes) + "\n", encoding="utf-8")


def operator(op: str, device: str, made: Path) -> None:
    """The smallest of the tests' cases that most rungs take, if its model has a step of this operator, as an
    .onnx file."""
    from bench.measure.answers import one_node
    from bench.questions import ladder_plan as plan
    from kernels import registry
    from kernels.errors import KernelscopeError
    from tests.kernels import cuda_cases

    file = made.with_name("candidate.onnx")
    rungs = registry.rungs(device, op)

    def order(case: cuda_cases.Case) -> tuple[int, int]:
        taken = sum(rung.refusal(case.params, (9, 0)) is None for rung in rungs)
        return -taken, case.params.flops + case.params.nbytes

    cases = sorted(cuda_cases.cases(op), key=order)
    for case in cases:
        try:
            proto = one_node.graph(case.params, [array for array in case.inputs if array is not None]).proto
            _without_expand(proto.graph)
            _in_images([told.type.tensor_type.shape for told in (*proto.graph.output, *proto.graph.input)])
            onnx.save(proto, file)
            plan.node_of(str(file), op, "0", BATCH, device)
            _answered(proto)
        except (KernelscopeError, ValueError, IndexError, RuntimeError):
            continue  # not a model that there is such a step for, or no answer to hold it to: the next one
        file.rename(made)
        return
    raise SystemExit(f"none of {len(cases)} cases of {op} makes a model with such a step")


def _without_expand(graph: onnx.GraphProto) -> None:
    """The oracle's graphs end with one to have a shape that is known; the engine takes none."""
    for node in [node for node in graph.node if node.op_type == "Expand"]:
        for other in graph.node:
            if other.output[0] == node.input[0]:
                other.output[0] = node.output[0]
        graph.node.remove(node)


def _in_images(shapes: Sequence[onnx.TensorShapeProto]) -> None:
    """The output's shape, then the inputs': of as many images as one likes. What is a row of numbers, each by
    itself, becomes images of some each."""
    if all(len(shape.dim) == 1 and shape.dim[0].dim_value % BATCH == 0 for shape in shapes):
        for shape in shapes:
            shape.dim[0].dim_value //= BATCH
            shape.dim.insert(0, onnx.TensorShapeProto.Dimension(dim_value=BATCH))
    rank, images = len(shapes[0].dim), shapes[0].dim[0].dim_value
    for shape in shapes:
        if (len(shape.dim), shape.dim[0].dim_value) == (rank, images):
            shape.dim[0].dim_param = "batch"


def _answered(proto: onnx.ModelProto) -> None:
    """Raises what onnx.reference raises where it cannot run a model."""
    from onnx.reference import ReferenceEvaluator

    feeds = {}
    for told in proto.graph.input:
        kind = told.type.tensor_type
        shape = [dim.dim_value or BATCH for dim in kind.shape.dim]
        feeds[told.name] = np.ones(shape, onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type))
    ReferenceEvaluator(proto).run(None, feeds)


def main(arguments: list[str]) -> None:
    made = Path(MADE)
    match arguments:
        case ["cut"]:
            cut(Path("whole"), made)
        case ["kernel", name, device]:
            kernel(name, device, made)
        case ["model"]:
            model(made)
        case ["photos"]:
            photos(made)
        case ["classes"]:
            classes(made)
        case ["packed"]:
            packed.pack(Path("whole"), made)
        case ["places"]:
            places(made)
        case ["operator", op, device]:
            operator(op, device, made)
        case ["mixed", place]:
            onnx.save(mixed.net(place, seed=len(place)).whole_proto(), made)
        case _:
            raise SystemExit(f"no fixture is made by {' '.join(arguments)}")


if __name__ == "__main__":
    main(sys.argv[1:])
