"""Opens the pipeline of a backend for an end-to-end measurement (engine.end_to_end).

Each batch in flight has a slot: a session of its own and, on a GPU, a stream of its own. Pixels become
numbers in a kernel of ours in front of our engine, and inside the rewritten model in ONNX Runtime."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from engine.backend import Backend, Options
from engine.cuda.batch_slot import CudaSlot, LiesOnDevice, page_locked
from engine.cuda.runtime import import_cupy, translated
from engine.end_to_end import (
    MOST_IN_FLIGHT,
    Affine,
    BatchSlot,
    EndToEndBackend,
    HostSlot,
    Pipeline,
    Pool,
    Request,
)
from engine.graph.graph import Graph
from engine.ort import sessions as ort
from engine.ort.uint8 import rewritten
from kernels.errors import OutOfMemoryError, UnsupportedError

KERNEL, MODEL = "kernel", "model"  # Offers.end_to_end


def allocator(device: str) -> Callable[[int], np.ndarray] | None:
    """Of host memory for what travels to this device: page-locked for a GPU, None where any will do."""
    if device != "cuda":
        return None
    cupy = import_cupy()

    def allocate(nbytes: int) -> np.ndarray:
        with translated(f"{nbytes:,} bytes of page-locked memory"):
            return page_locked(cupy, nbytes)

    return allocate


def refusal(backend: Backend) -> str | None:
    """Why this backend is not measured from end to end, or None."""
    if isinstance(backend, EndToEndBackend):
        return None
    return f"{backend.name} is not measured from end to end: it has no way in for bytes"


def open_pipeline(
    backend: Backend, graph: Graph, precision: str, options: Options, pool: Pool, asked: Request
) -> Pipeline:
    """A pipeline that is ready, with nothing in flight. On a GPU it has as many slots as memory holds, at
    most MOST_IN_FLIGHT; on a CPU it has one, because one batch takes all cores. Raises what `prepare` raises,
    and UnsupportedError where the backend cannot be measured so."""
    if (reason := refusal(backend)) is not None:
        raise UnsupportedError(reason)
    by_model = backend.end_to_end == MODEL  # type: ignore[attr-defined]
    model = rewritten(graph, asked) if by_model and (asked.affine or asked.top_k) else graph
    affine = None if by_model else asked.affine
    what = f"{graph.name} on {backend.name} at batch {pool.batch}, end to end"
    slots: list[BatchSlot] = []
    with contextlib.ExitStack() as stack:
        for number in range(MOST_IN_FLIGHT if backend.device == "cuda" else 1):
            try:
                slot = _slot(backend, model, precision, options, pool, asked, affine, what)
            except OutOfMemoryError:
                if not number:
                    raise
                break
            slots.append(slot)
            stack.callback(slot.close)
        stack.pop_all()
    return Pipeline(slots, pool, partial(ort.translated if by_model else translated, what))


def _slot(
    backend: Backend,
    graph: Graph,
    precision: str,
    options: Options,
    pool: Pool,
    asked: Request,
    affine: Affine | None,
    what: str,
) -> BatchSlot:
    """what: is told of where memory does not suffice, or the device fails."""
    # In this process, so that nothing but the work is timed; the user's own kernels stay apart from answers.
    here = None if options.kernel_dirs else getattr(backend, "prepare_here", None)
    session: Any = (here or backend.prepare)(graph, pool.batch, precision, options)
    try:
        if backend.device != "cuda":
            return HostSlot(session, pool, asked, affine)
        device = session.on_device if isinstance(session, LiesOnDevice) else None
        if device is None:
            raise UnsupportedError(f"{backend.name} does not say where its inputs lie on the device")
        if missing := sorted(_wanted(graph, asked) - device.outputs.keys()):
            raise UnsupportedError(f"output {missing[0]} of model {graph.name} is written by no pass")
        if asked.constants:
            plain = {name: array[: pool.batch] for name, array in pool.plain.items()}
            if affine is not None:
                plain[asked.image] = affine.apply(plain[asked.image])
            session.bind({**asked.constants, **plain})
        with translated(what):
            return CudaSlot(session, pool, asked, affine)
    except BaseException:
        session.close()
        raise


def _wanted(graph: Graph, asked: Request) -> set[str]:
    names = {info.name for info in graph.outputs}
    return names & {asked.scores} or names if asked.top_k else names
