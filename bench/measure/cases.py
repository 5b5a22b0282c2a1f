"""Job → cases: everything the user can get wrong is said here, in one sentence, before anything runs.

Cases of one model, precision, batch size and image count make a group: their backends are timed together,
interleaved. Within a model small batches come first, so that there is something to see soon.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.measure import rung_check
from bench.measure.images import model_file
from bench.results.records import Case, Job, stem
from bench.run import options
from bench.words.option import check as check_options
from bench.words.option import one_of
from engine import backends
from engine.backend import Backend, Swapping, Variant, by_default
from kernels.errors import InputError, KernelscopeError
from kernels.nearest import did_you_mean
from kernels.precision import MIXED, asked
from models import catalogue, datasets, names

RANDOM_IMAGES = 64  # on which agreement is judged where there are no labels and nobody asked for more

Progress = Callable[[str, float | None], None]
Group = tuple[Case, ...]


@dataclass(frozen=True)
class ModelSpec:
    """A model as the job means it. name: as in the cases; path: None for a catalogue model, which is built
    when it is first needed; images: how many the comparison takes unless told otherwise (None: all there
    are)."""

    name: str
    title: str
    path: Path | None
    dataset: str
    preprocess: str
    images: int | None
    classes: tuple[str, ...] = ()

    def file(self, progress: Progress | None = None) -> Path:
        """The ONNX file, built into the cache where need be. Raises ModelError."""
        return self.path or catalogue.path(self.name, progress)


def plan(
    job: Job,
    progress: Progress | None = None,
    look: Callable[[str], None] = lambda model: None,
    unread: Collection[str] = (),
    here: bool = True,
) -> tuple[Case, ...]:
    """The cases of a job in the order they run. Raises InputError, one sentence, for anything wrong with it.
    look: called before a model's file is read, which for a file from elsewhere is not to be done in a process
    that matters (bench.questions.model_questions). unread: models whose files are not to be looked at. here:
    they run on this machine; else whoever runs them knows what can run there.

    A file that cannot be read is told at once where it is the only model; among several it keeps its cases,
    which then fail with the reason, and the others run.
    A backend asked for by name that cannot run here keeps its cases (they become "unsupported" with the
    reason) as long as another can; with job.backends empty it is left out.
    """
    check(job)
    chosen = choose_backends(job.backends, here)
    if job.tune_reference:
        chosen = with_variants(chosen, here)
    chosen = with_swapped(chosen, job, here)
    _check_layers(job, chosen)
    specs = [model_spec(name, job) for name in dict.fromkeys(job.models)]
    found: dict[str, Case] = {}
    sound, fixed = _read(specs, job, unread, look)
    rung_check.check(job, sound, chosen, progress)
    rung_check.check_swaps(job, sound, chosen, progress)
    for spec in specs:
        for precision in dict.fromkeys(asked(name, job.max_error) for name in job.precisions):
            # A file that fixes its batch runs at that one, whatever was asked for of all.
            for batch in sorted({fixed[spec.name]} if spec.name in fixed else set(job.batches_of(spec.name))):
                for images in sorted(set(job.images_of(spec.name))) or [default_images(spec, progress)]:
                    for backend in chosen:
                        case = Case(
                            model=spec.name,
                            backend=backend.name,
                            precision=precision,
                            batch=batch,
                            images=images,
                        )
                        other = found.setdefault(case.key, case)
                        if other.model != case.model:
                            raise InputError(
                                f"models {other.model} and {case.model} have the same name; rename one file"
                            )
    return tuple(found.values())


def _check_layers(job: Job, chosen: Sequence[Backend]) -> None:
    """Raise InputError where layers are wanted of what is not compared."""
    compared = [backend.name for backend in chosen]
    for name in job.layers_of:
        if name not in compared:
            raise InputError(
                f"layers are wanted of {name}, which is not compared{did_you_mean(name, compared)}; "
                f"compared are {', '.join(compared)}"
            )


def _read(
    specs: Sequence[ModelSpec], job: Job, unread: Collection[str], look: Callable[[str], None]
) -> tuple[list[ModelSpec], dict[str, int]]:
    """Models whose files can be read, and the batch sizes that files fix, by name. Raises KernelscopeError
    where the only one cannot be: that is told now, and not after an hour."""
    sound: list[ModelSpec] = []
    fixed: dict[str, int] = {}
    for spec in specs:
        if spec.name in unread:
            continue
        if spec.path is not None:
            look(spec.name)
            try:
                graph = model_file.of_job(spec, job).graph
            except KernelscopeError:
                if len(specs) == 1:
                    raise
                continue
            if size := getattr(graph, "fixed_batch", None):
                fixed[spec.name] = size
        sound.append(spec)
    return sound, fixed


def groups(cases: Iterable[Case]) -> list[Group]:
    """Cases that are timed together, in the order of their first member."""
    found: dict[tuple[str, str, int, int], list[Case]] = {}
    for case in cases:
        found.setdefault((case.model, case.precision, case.batch, case.images), []).append(case)
    return [tuple(group) for group in found.values()]


# -------------------------------------------------------------------------------------------- what is named


def model_spec(name: str, job: Job) -> ModelSpec:
    """What a model's name or path means in this job. Raises InputError with the nearest name."""
    if name in names.models():
        entry = catalogue.get(name)
        spec = ModelSpec(
            name=name,
            title=entry.title,
            path=None,
            dataset=entry.dataset,
            preprocess=entry.preprocess,
            images=entry.images,
            classes=entry.classes,
        )
    elif name.endswith(".onnx") or "/" in name or "\\" in name or Path(name).is_file():
        path = Path(name).expanduser()
        if path.is_dir():
            raise InputError(f"{name} is a folder; name an .onnx file")
        if not path.is_file():
            raise InputError(f"model file {name} does not exist{_nearest_file(path)}")
        spec = ModelSpec(
            name=name, title=path.stem, path=path, dataset="random", preprocess="", images=RANDOM_IMAGES
        )
    else:
        raise InputError(
            f"model {name!r} is not known{did_you_mean(name, names.models())}; "
            f"known are {', '.join(names.models())}, or a path of an .onnx file"
        )
    if job.dataset is not None and job.dataset != spec.dataset:
        images = RANDOM_IMAGES if job.dataset == "random" else None
        spec = replace(spec, dataset=job.dataset, images=images)
    if job.preprocess is not None:
        spec = replace(spec, preprocess=job.preprocess)
    return spec


def default_images(spec: ModelSpec, progress: Progress | None = None) -> int:
    """How many images a case takes unless told otherwise. Raises DataError where they cannot be had."""
    if spec.images is not None:
        return spec.images
    return len(datasets.load(spec.dataset, progress=progress))


def choose_backends(asked: Sequence[str], here: bool = True) -> list[Backend]:
    """The backends asked for, or all that can run here, variants and rivals left out. Raises InputError with
    the nearest name, and where none of them can run (`here`: on this machine), with the reasons."""
    plain = [each for each in backends.all_backends().values() if by_default(each)]
    chosen = [backends.get(name) for name in dict.fromkeys(asked)] or plain
    reasons = {backend.name: backend.unavailable() for backend in chosen}
    if here and all(reasons.values()):
        told = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
        raise InputError(f"no backend asked for can run here: {told}")
    if asked:
        return chosen
    return [backend for backend in chosen if not reasons[backend.name]]


def uninvited(job: Job, cases: Sequence[Case]) -> str:
    """Why a library that would also take the job's kernels, as no backend is named, does not; "" where each
    does."""
    if not job.swaps or job.backends:
        return ""
    compared = list(dict.fromkeys(backends.get(case.backend).device for case in cases))
    reasons = [
        each.unavailable()
        for each in _swapping().values()
        if each.invited and each.device in compared and rung_check.swaps_on(job, each.device, compared)
    ]
    return next(filter(None, reasons), "")


def _swapping() -> dict[str, Any]:
    """By name of a library what it is with kernels in it."""
    known = backends.all_backends().values()
    return {each.swaps_in: each for each in known if isinstance(each, Swapping)}


def with_swapped(chosen: Sequence[Backend], job: Job, here: bool = True) -> list[Backend]:
    """`chosen`, and behind each library that takes the job's swaps the same with these kernels in it; where
    the job names no backend, also a library that is invited then. Raises InputError where none takes them,
    and for a swapping backend without a swap."""
    swapping = _swapping()
    if not job.swaps:
        if named := next((each.name for each in chosen if isinstance(each, Swapping)), ""):
            raise InputError(f"{named} has kernels in the place of nodes: name one by --swap NODE=RUNG")
        return [*chosen]
    compared = [each.device for each in chosen if each.name in swapping]
    guests = [backends.get(name) for name, each in swapping.items() if each.invited and not job.backends]
    guests = [it for it in guests if it.device in compared and rung_check.swaps_on(job, it.device, compared)]
    found: list[Backend] = []
    for backend in (*chosen, *(it for it in guests if here and it.unavailable() is None)):
        if backend not in found:
            found.append(backend)
        other: Any = swapping.get(backend.name)
        if other is not None and other not in found and rung_check.swaps_on(job, backend.device, compared):
            found.append(other)
    if not any(isinstance(each, Swapping) for each in found):
        raise InputError(
            f"--swap puts a kernel into {', '.join(swapping)}, and none of them is compared on the "
            "kernel's device; add it by --backend"
        )
    return found


def with_variants(chosen: Sequence[Backend], here: bool = True) -> list[Backend]:
    """`chosen`, each variant of one of them behind it. Raises InputError, in words, where none of them can be
    tuned (`here`: on this machine)."""
    found: list[Backend] = []
    reasons: dict[str, str | None] = {}
    for backend in chosen:
        found.append(backend)
        for variant in backends.all_backends().values():
            if isinstance(variant, Variant) and variant.variant_of == backend.name:
                reasons[backend.name] = backend.unavailable()
                found += [] if variant in chosen else [variant]
    if reasons and not (here and all(reasons.values())):
        return found
    tunable = sorted({b.variant_of for b in backends.all_backends().values() if isinstance(b, Variant)})
    missing = "; ".join(
        f"{name} is not among the backends" if reason is None else f"{name}: {reason}"
        for name, reason in ((name, backends.get(name).unavailable()) for name in tunable)
    )
    raise InputError(
        f"there is no reference to tune here ({missing}); what --tune-reference sweeps are options of cuDNN, "
        "which ort-cpu does not have: leave it away"
    )


# ------------------------------------------------------------------------------------------ what is numbers


def check(job: Job) -> None:
    """Raise InputError for a job that means nothing, whatever models and backends there are."""
    if not job.models:
        raise InputError(f"no model was named; known are {', '.join(names.models())}")
    check_options(job, options.COMPARE)
    if job.max_error is not None and MIXED not in job.precisions:
        others = ",".join(job.precisions)
        raise InputError(
            f"max-error is what a mixed precision keeps, and none is asked for: add it, as in --precision "
            f"{others},{MIXED}, or leave max-error away"
        )
    called = [*job.models, *map(stem, job.models)]
    for what, own in (("batch", job.own_batches), ("images", job.own_images)):
        for model in own:
            if model not in called:
                raise InputError(
                    f"{what} sizes are given for {model}, which is not compared"
                    f"{did_you_mean(model, called)}; compared are {', '.join(job.models)}"
                )
    for name in job.dims:
        owner = name.rpartition(":")[0]
        if owner and not any(name.startswith(f"{model}:") for model in called):
            raise InputError(
                f"axis {name} is given a size, and {owner} is not compared{did_you_mean(owner, called)}; "
                f"compared are {', '.join(job.models)}"
            )
    if job.dims and set(job.models) <= set(names.models()):
        raise InputError(
            f"axis {' and '.join(job.dims)}: no model of the catalogue has an open axis beside its batch; "
            "name an .onnx file that has, or leave the size away"
        )
    if job.dataset is not None:
        _check_dataset(job.dataset)


def _check_dataset(spec: str) -> None:
    spec, _ = datasets.parted(spec)
    if spec.startswith("folder:"):
        folder = Path(spec.removeprefix("folder:")).expanduser()
        if not folder.exists():
            raise InputError(f"data set {spec}: the folder {folder} does not exist")
    else:
        one_of(spec, (*names.datasets(), "random", "folder:DIR"), "data set")


def _nearest_file(path: Path) -> str:
    try:
        return did_you_mean(path.name, (p.name for p in path.parent.glob("*.onnx")))
    except OSError:
        return ""
