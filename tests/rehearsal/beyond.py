"""What is rehearsed beyond the documents' commands: every model, net, operator, precision and page there is.

None of them is listed here: they come from the catalogue, tests.zoo, kernels.ops and the window's pages.
"""

from __future__ import annotations

import functools

from bench.questions import ladder_plan as plan
from bench.run.defaults import JOB
from engine import backends
from engine.graph import importer
from kernels import registry, tasks
from kernels.ops import OPS
from models import catalogue, names
from tests import other_systems
from tests.engine.ort import mixed
from tests.rehearsal import fixtures, reading, small
from tests.rehearsal.content import ROOT
from tests.rehearsal.machine import OFFSCREEN, Machine
from tests.rehearsal.steps import NETS, PYTHON, Expect, Step, Use
from tests.zoo import shipped

NUMPY_RUNG = str(ROOT / "kernels/cpu/conv/02_im2col.py")

MAIN = (PYTHON, "main.py")
QUICK = ("--budget", "0.05", "--charts", "none")
IMAGES = "16"
FIRST_EVER = "-first-ever"  # what that part's own state and page are called, behind the machine
CACHES = {"KERNELSCOPE_CACHE": "kernelscope", "CUPY_CACHE_DIR": "cupy", "CUDA_CACHE_PATH": "cuda"}


def default() -> Step:
    """The first command that a user types, with nothing added."""
    return Step("the default comparison", "first of all", MAIN, alone=True, timeout_s=500)


def steps(machine: Machine) -> list[Step]:
    """Those beyond the documents, without the fixtures that they use."""
    return [
        *_models(machine),
        *_nets(machine),
        *_mixed(machine),
        *_ladders(machine),
        *_own_kernels(machine),
        *_precisions(machine),
        *_saved_runs(),
        *_nothing_yet(),
        *_refused(),
        *_installing(),
        *_other_systems(),
        *_window(machine),
    ]


def _step(name: str, group: str, *words: str, machine: Machine | None = None, **more: object) -> Step:
    skip = reading.skipped(list(words), machine) if machine else ""
    return Step(name, group, (*MAIN, *words), **{"skip": skip, **more})  # type: ignore[arg-type]


def _backends(machine: Machine) -> tuple[str, ...]:
    """Those that are meant: a kernel of one device, or a precision of a GPU, is nothing to the CPU's."""
    ours, reference = machine.backends
    return ("--backend", ours, "--backend", reference)


@functools.cache
def _made_of(name: str, device: str) -> tuple[object, ...]:
    """What a model computes, but for its weights."""
    return tuple(step.params for step in plan.steps_of(importer.load(catalogue.path(name)), 1, device))


def _models(machine: Machine) -> list[Step]:
    found = []
    seen: set[tuple[object, ...]] = set()
    for name in names.models():
        # Where another one differs in its weights alone, so do its kernels in no precision.
        made = _made_of(name, machine.device)
        precisions = machine.precisions[: 1 if made in seen else None]
        seen.add(made)
        found.append(
            _step(
                f"compare {name}",
                "every model, in every precision",
                *("compare", name, *_backends(machine), "--batch", "4"),
                *("--precision", ",".join(precisions), "--images", IMAGES, *QUICK, *small.ONE),
                machine=machine,
            )
        )
        shown = ("models", "show", name, "--plan", "--device", machine.device, "--batch", "4")
        found.append(_step(f"plan of {name}", "every model, in every precision", *shown))
    return found


def _nets(machine: Machine) -> list[Step]:
    """Well-known nets as files of a user's, as exporters write them."""
    settings = ("--dataset", "random", "--images", "2", "--batch", "1", *_backends(machine), *QUICK)
    return [
        _step(
            f"compare the net {name}",
            NETS,
            *("compare", f"{name}.onnx", *settings, *small.ONE),
            uses=(Use(f"{fixtures.NET}{name}", f"{name}.onnx"),),
            timeout_s=500,
        )
        for name in shipped.nets()
    ]


def _mixed(machine: Machine) -> list[Step]:
    """Nets whose nodes run on the GPU and on the CPU, at every place: the reference is right on all."""
    reference = machine.backends[1]
    settings = ("--backend", reference, "--batch", "1,4", "--dataset", "random", "--images", "4", *QUICK)
    return [
        _step(
            f"compare nodes on the CPU, {place}",
            "the reference, wherever its nodes run",
            *("compare", f"{place}.onnx", *settings),
            uses=(Use(f"{fixtures.MIXED}{place}", f"{place}.onnx"),),
        )
        for place in mixed.PLACES
    ]


@functools.cache
def _operators_of_default(device: str) -> frozenset[str]:
    """What steps the models of the default comparison are made of."""
    models = [importer.load(catalogue.path(name)) for name in JOB.models]
    return frozenset(step.op for model in models for step in plan.steps_of(model, 1, device))


def _ladders(machine: Machine) -> list[Step]:
    """As typed without a model where the default comparison's have such a node, else on a model of one."""
    found = []
    there = _operators_of_default(machine.device)
    for op in OPS:
        if not registry.rungs(machine.device, op):
            continue
        words = ("ladder", op, *QUICK)
        uses: tuple[Use, ...] = ()
        if op not in there:
            words += ("--model", f"{op}.onnx", "--batch", str(fixtures.BATCH))
            uses = (Use(f"{fixtures.ONE_NODE}{op}", f"{op}.onnx"),)
        found.append(_step(f"ladder {op}", "every operator's ladder", *words, uses=uses))
    for task in tasks.in_order():
        spec = task.task.spec
        shape = ",".join(str(spec.check[-1][size]) for size in spec.symbols)
        found.append(
            _step(f"ladder {task.op}", "every task's ladder", "ladder", task.op, "--shape", shape, *QUICK)
        )
    return [*found, _step("ladder net", "every operator's ladder", "ladder", "net", *QUICK)]


def _own_kernels(machine: Machine) -> list[Step]:
    group = "a kernel of one's own: right, wrong, faulting"
    found = []
    for made, rung, bad, fault in (
        (fixtures.KERNEL, "mine", "", ""),
        (fixtures.WRONG, "missing_bias", "incorrect", "bias"),
        (fixtures.CRASHING, "illegal", "crashed", ""),
    ):
        use, code = (Use(made, "kernels"),), (1,) if bad else (0,)
        own = ("--kernels", "kernels", "--rung")
        ladder = ("ladder", "conv", "--shape", "2,2,9,9,3,3", *own, rung, "--rung", "1", *QUICK)
        found.append(_step(f"ladder with {made}", group, *ladder, uses=use, expect=Expect(code, bad, fault)))
        model = ("lenet5-digits", *own, f"conv1={rung}", "--batch", "2", *_backends(machine), *QUICK)
        compare = ("compare", *model, "--images", IMAGES)
        found.append(_step(f"compare with {made}", group, *compare, uses=use, expect=Expect(code, bad)))
        if bad == "incorrect":
            continue  # a profile looks at the model's answer alone, where a mistake may not be seen
        found.append(
            _step(f"profile with {made}", group, "profile", *model, uses=use, expect=Expect(code, bad))
        )
    return found


def _that_offer(precision: str, machine: Machine) -> tuple[str, ...]:
    """Each process of a profile is of one backend, and there are precisions that a reference lacks."""
    offering = [name for name in machine.backends if precision in backends.get(name).precisions]
    return tuple(word for name in offering for word in ("--backend", name))


def _precisions(machine: Machine) -> list[Step]:
    group = "further settings"
    model = ("lenet5-digits", "--batch", "16", *_backends(machine), *QUICK)
    found = [
        _step(
            f"profile in {precision}",
            group,
            *("profile", "lenet5-digits", "--batch", "16", *_that_offer(precision, machine), *QUICK),
            *("--precision", precision, "--trace", "trace.json"),
            expect=Expect(made=("trace.json",)),
        )
        for precision in machine.precisions
    ]
    compare = ("compare", *model, "--images", IMAGES)
    ours = machine.backends[0]
    selfcheck = (
        "selfcheck",
        "lenet5-digits",
        "--backend",
        ours,
        "--batch",
        "16",
        "--times",
        "4",
        "--budget",
        "0.1",
    )
    return [
        *found,
        _step("the reference at its best", group, *compare, "--tune-reference", machine=machine),
        _step("our kernels timed first", group, *compare, "--tune"),
        _step("a cold L2 cache", group, *compare, "--l2", "cold"),
        _step(
            "our backend against itself",
            group,
            *selfcheck,
            expect=Expect((0, 1), says="comparisons of a backend with itself"),
        ),
    ]


def _saved_runs() -> list[Step]:
    group = "what was measured, again"
    found = []
    for kind in (fixtures.COMPARISON, fixtures.LADDER, fixtures.PROFILE):
        use = (Use(kind, "runs/one"),)
        for verb, words, made in (
            ("show", ("runs", "show", "runs/one"), ""),
            ("copy", ("runs", "copy", "runs/one", "copied"), "copied"),
            ("thin", ("runs", "thin", "runs/one", "thinned"), "thinned"),
            ("report", ("runs", "report", "runs/one", "--out", "report.md"), "report.md"),
            ("export", ("export", "runs/one", "--charts", "svg,csv", "--csv", "--out", "figures"), "figures"),
        ):
            expect = Expect(made=(made,) if made else (), silent=verb == "export")
            found.append(_step(f"{verb} {kind}", group, *words, uses=use, expect=expect))
    return found


def _nothing_yet() -> list[Step]:
    group = "before anything was measured"
    return [
        _step("no runs yet", group, "runs", "list", expect=Expect(says="no runs yet")),
        _step("no saves yet", group, "ladder", "--saves", ".", expect=Expect(says="no saves yet")),
    ]


def _installing() -> list[Step]:
    return [
        Step(
            "what the pages say to install",
            "installing, on every Python",
            (PYTHON, "-m", "tests.resolving"),
            Expect((0, 3)),  # 3: nobody answers, as on a machine without a network
            timeout_s=590,
        )
    ]


def _other_systems() -> list[Step]:
    return [
        Step(
            f"as on {system}",
            "what other systems lack, played here",
            (PYTHON, "-m", "tests.other_systems", system),
            Expect(says=f"ok   {system}: doctor"),
            timeout_s=590,
        )
        for system in other_systems.SYSTEMS
    ]


def _refused() -> list[Step]:
    return [
        _step(
            f"refused: {' '.join(words)}",
            "bad input, in one sentence",
            *words,
            expect=Expect((2,), silent=True),
        )
        for words in (
            ("compare", "no-such-model"),
            ("compare", "lenet5-digits", "--backend", "no-such-backend"),
            ("compare", "lenet5-digits", "--batch", "0"),
            ("ladder", "no_such_operator"),
            ("ladder", "conv", "--kernels", "no-such-folder"),
            ("profile", "lenet5-digits", "--table", "no-such-table"),
            ("runs", "show", "no-such-run"),
            ("export", "no-such-run"),
            (
                "export-op",
                str(ROOT / "kernels/cpu/conv/02_im2col.py"),
                "--node",
                "conv1",
                "--model",
                "lenet5-digits",
            ),
            ("no-such-command",),
        )
    ]


def _window(machine: Machine) -> list[Step]:
    command = (PYTHON, "-m", "tests.gui.screenshots", "--out", "pictures", "--live")
    return [
        Step(
            "the window while it measures",
            "the window",
            command,
            Expect(made=("pictures",), pictures="pictures"),
            skip=machine.no_window and f"no window: {machine.no_window}",
            environment=OFFSCREEN,
            timeout_s=580,
        )
    ]


def first_ever(machine: Machine) -> list[Step]:
    """With nothing cached, as on the day of installing, and then once more: for the seconds of each."""
    group = "with empty caches, then warm"
    environment = {name: f"{{work}}/first-ever/{folder}" for name, folder in CACHES.items()}
    alexnet = (
        "compare",
        "alexnet",
        "--batch",
        "1..1024",
        "--backend",
        "engine-cuda",
        "--backend",
        "ort-cuda",
    )
    found: list[Step] = []
    for name, words in (("the default comparison", ()), ("alexnet, batch 1 to 1024", alexnet)):
        for when in ("nothing cached", "warm"):
            cold = when == "nothing cached"
            found.append(
                _step(
                    f"{name}, {when}",
                    group,
                    *words,
                    machine=machine,
                    environment=environment,
                    fresh="first-ever" if cold else "",
                    after="" if cold else f"{name}, nothing cached",
                    alone=True,
                    timeout_s=590,
                )
            )
    return found
