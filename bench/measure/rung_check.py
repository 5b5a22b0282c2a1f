"""The kernels that a job names, held against its models before anything runs: nodes, rungs, the user's
files."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench.measure.images import model_file
from bench.results.records import Job
from bench.run import chosen_rungs
from bench.words.option import one_of
from engine.backend import Backend, Options, Swapping
from engine.graph.graph import Graph
from engine.planning import exported, planner
from kernels import registry
from kernels.errors import InputError, KernelError, UnsupportedError
from kernels.nearest import did_you_mean
from kernels.ops import OPS
from models import names

if TYPE_CHECKING:
    from bench.measure.cases import ModelSpec, Progress


def check(
    job: Job, specs: Sequence[ModelSpec], chosen: Sequence[Backend], progress: Progress | None = None
) -> None:
    """Raises InputError, one sentence, for a file of the user's that is no rung, a node that no model has or
    that no kernel runs, and a rung that is not there on a device of ours among `chosen`. What a rung refuses
    is no mistake: its case says so."""
    folders = tuple(Path(folder).expanduser() for folder in job.kernel_dirs)
    devices = tuple(dict.fromkeys(b.device for b in chosen if b.name == f"engine-{b.device}"))
    check_folders(folders, devices)
    if not job.rungs:
        return
    graphs = {spec.name: model_file.of_job(spec, job, progress).graph for spec in specs}
    nodes = {name: [node.name for node in graph.nodes] for name, graph in graphs.items()}
    for text, value in job.rungs.items():
        owner, node, device, _ = chosen_rungs.parts(text, value, job.models)
        said = f"--rung {text}={value}"
        if device:
            one_of(device, registry.SUFFIX, f"{said}: device")
        other = text.partition(":")[0]
        if not owner and other != text and other in names.models():
            raise InputError(f"{said}: {other} is not compared; compared are {', '.join(nodes)}")
        meant = [name for name in nodes if not owner or chosen_rungs.stem(name) == owner]
        if not any(node in nodes[name] for name in meant):
            raise InputError(f"{said}: {_no_node(node, {name: nodes[name] for name in meant})}")
    for name, graph in graphs.items():
        for device in devices:
            asked = meant_for(job.rungs, device, folders, devices)
            rungs = chosen_rungs.of_model(asked, name, job.models, nodes[name], device)
            if rungs:
                batch = graph.fixed_batch or min(job.batches_of(name))
                _plan(graph, batch, device, Options(rungs=rungs, kernel_dirs=folders), devices)


def check_swaps(
    job: Job, specs: Sequence[ModelSpec], chosen: Sequence[Backend], progress: Progress | None = None
) -> None:
    """Raises InputError, one sentence, for a kernel that is to take a node's place where one of the two is
    not there, and for a model without any of the nodes."""
    folders = tuple(Path(folder).expanduser() for folder in job.kernel_dirs)
    swapping = [backend for backend in chosen if isinstance(backend, Swapping)]
    for spec in specs if swapping else ():
        graph = model_file.of_job(spec, job, progress).graph
        nodes = [node.name for node in graph.nodes]
        batch = graph.fixed_batch or min(job.batches_of(spec.name))
        for backend in swapping:
            asked = meant_for(job.swaps, backend.device, folders, [each.device for each in swapping])
            own = chosen_rungs.of_model(asked, spec.name, job.models, nodes, backend.device)
            if not own:
                told = ", ".join(f"{node}={rung}" for node, rung in job.swaps.items())
                raise InputError(f"--swap {told}: {_no_node(next(iter(job.swaps)), {spec.name: nodes})}")
            for node, name in own.items():
                try:
                    exported.named(graph, node, name, backend.device, folders, batch)
                except UnsupportedError:
                    continue  # its case says so


def swaps_on(job: Job, device: str, compared: Collection[str]) -> bool:
    """Whether a swap of the job may be of a kernel for this device."""
    folders = tuple(Path(folder).expanduser() for folder in job.kernel_dirs)
    asked = meant_for(job.swaps, device, folders, compared)
    return any(chosen.rpartition("/")[0] in ("", device) for chosen in asked.values())


def meant_for(
    rungs: Mapping[str, str], device: str, folders: Sequence[Path], compared: Collection[str]
) -> dict[str, str]:
    """A job's rungs without those that are not on `device` but on another one of ours that is `compared`: a
    kernel of one's own is written for one device, and holds there. One that is on none stays, to be told."""
    found = {}
    for text, chosen in rungs.items():
        where, _, rung = chosen.rpartition("/")
        if where or _has(device, rung, folders) or not any(_has(other, rung, folders) for other in compared):
            found[text] = chosen
    return found


def _has(device: str, rung: str, folders: Sequence[Path]) -> bool:
    ladders = (registry.rungs(device, op, folders, []) for op in OPS)
    return any(rung in (found.name, str(found.number)) for ladder in ladders for found in ladder)


def check_folders(folders: Sequence[Path], devices: Sequence[str]) -> None:
    """Raises InputError naming the first file of the user's that is no rung of one of these devices."""
    try:
        for device in devices if folders else ():
            for op in OPS:
                registry.rungs(device, op, folders)
    except KernelError as error:
        raise InputError(str(error)) from error


def _no_node(node: str, nodes: dict[str, list[str]]) -> str:
    every = list(dict.fromkeys(name for names in nodes.values() for name in names))
    hint = did_you_mean(node, every)
    few = "" if hint else f"; there are {', '.join(every[:8])}" + (", …" if len(every) > 8 else "")
    owners = " and ".join(nodes)
    return f"{owners} {'has' if len(nodes) == 1 else 'have'} no node {node!r}{hint}{few}"


def _plan(graph: Graph, batch: int, device: str, options: Options, devices: Sequence[str]) -> None:
    try:
        made = planner.plan(graph, batch, device, options=options)
    except UnsupportedError:
        return
    except InputError as error:
        alone = f"; for one device alone write {devices[0]}/RUNG" if len(devices) > 1 else ""
        raise InputError(f"{error}{alone}") from error
    run = {node for step in made.steps for node in step.nodes}
    if unused := next((node for node in options.rungs if node not in run), None):
        raise InputError(
            f"a rung was chosen for node {unused!r} of model {graph.name}, which no kernel runs: the engine "
            "does it while preparing, or by reading the tensor as it lies"
        )
