"""The isolated process of a task's reference: it is given the text once, then inputs, and answers.

It may read what Python needs and write nothing, has no network and so much memory (kernels.confine, where the
system offers it). A frame is four bytes that say how long its JSON is, that, and the bytes of arrays.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import math
import os
import sys
import time
import types
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

FUNCTION = "reference"  # of a file, where the task names no other
ANSWERS = ("float64", "int64", "float32", "int32", "uint8", "int8", "uint32", "bool", "float16")
MOST_NBYTES = 4 << 30  # of an answer
MOST_MIB = 8 << 10  # of memory
MOST_WHOLE = (1 << 53) - 1  # that float64 tells from its neighbours


def loaded(file: Path, text: str, name: str) -> Callable[..., Any]:
    """The function, or the module of torch, that a reference's text calls so. Raises what it raises, and
    ValueError."""
    module = types.ModuleType(f"task_{file.parent.name}")
    module.__file__ = str(file)
    exec(compile(text, str(file), "exec"), module.__dict__)
    found = getattr(module, name, None)
    if not callable(found):
        raise ValueError(f"defines no {name}(…)")
    return found


def called(
    function: Callable[..., Any],
    arrays: Mapping[str, np.ndarray],
    sizes: Mapping[str, int],
    outputs: Sequence[tuple[Sequence[int], bool]],
) -> Any:
    """The answer to these inputs; several one behind the other. outputs: of each the shape, and whether it is
    whole numbers. Raises what it raises, and ValueError for parameters that nothing is called as, and answers
    of other shapes or types."""
    if isinstance(function, type):
        answer = _of_module(function, arrays, sizes)
    else:
        answer = function(**wanted(function, {**arrays, **sizes}))
    if len(outputs) < 2:
        return answer
    found = [np.asarray(each) for each in answer] if isinstance(answer, tuple) else []
    if [each.shape for each in found] != [tuple(shape) for shape, _ in outputs]:
        told = ", ".join(str(each.shape) for each in found) or "no tuple"
        raise ValueError(f"answers {told}, and the task says {', '.join(str(tuple(s)) for s, _ in outputs)}")
    for number, (each, (_, exact)) in enumerate(zip(found, outputs, strict=True), 1):
        if each.dtype.kind not in ("iub" if exact else "fiub"):
            raise ValueError(f"answers {each.dtype} as its output {number}, and the task says whole numbers")
    if len({exact for _, exact in outputs}) > 1:  # then all become numbers with a point
        for each in found:
            if each.dtype.kind in "iu" and np.abs(each.astype(np.float64)).max(initial=0.0) > MOST_WHOLE:
                raise ValueError(f"answers a whole number above {MOST_WHOLE}, beside numbers with a point")
    return np.concatenate([each.reshape(-1) for each in found])


def timed(
    function: Callable[..., Any],
    arrays: Mapping[str, np.ndarray],
    sizes: Mapping[str, int],
    outputs: Sequence[tuple[Sequence[int], bool]],
    passes: int,
    threads: int,
) -> np.ndarray:
    """(1,): the nanoseconds of so many calls. threads: that a library's products may use; 0: as many as it
    wants."""
    with _threads(threads):
        started = time.perf_counter_ns()
        for _ in range(passes):
            called(function, arrays, sizes, outputs)
        return np.array([time.perf_counter_ns() - started])


def _threads(most: int) -> contextlib.AbstractContextManager[Any]:
    if most:
        with contextlib.suppress(ImportError):  # it is not there beside every PyTorch
            from threadpoolctl import threadpool_limits

            return threadpool_limits(most)
    return contextlib.nullcontext()


def wanted(function: Callable[..., Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """What a function's parameters are called as, by name. Raises ValueError for one that nothing is."""
    parameters = [name for name in inspect.signature(function).parameters if name != "self"]
    if unknown := [name for name in parameters if name not in known]:
        raise ValueError(
            f"has a parameter {unknown[0]!r}, which is no input and no size; there are {', '.join(known)}"
        )
    return {name: known[name] for name in parameters}


def _of_module(of: type, arrays: Mapping[str, np.ndarray], sizes: Mapping[str, int]) -> Any:
    """What a torch.nn.Module answers: made with the sizes that it wants, its parameters given by name."""
    import torch

    own = vars(of).get("__init__")
    made = of(**wanted(own, sizes)) if own is not None else of()
    if not isinstance(made, torch.nn.Module):
        raise ValueError(f"{of.__name__} is no torch.nn.Module")
    made = made.double().eval()
    given = {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}
    held = {
        name.replace(".", "_"): tensor for name, tensor in (*made.named_parameters(), *made.named_buffers())
    }
    with torch.no_grad():
        for name in [name for name in held if name in given]:
            if held[name].shape != given[name].shape:
                raise ValueError(
                    f"its {name} has the shape {tuple(held[name].shape)}, and the task says another"
                )
            held[name].copy_(given.pop(name))
        answer = made(*given.values())
    if isinstance(answer, tuple):
        return tuple(np.asarray(each.detach().cpu().numpy()) for each in answer)
    return np.asarray(answer.detach().cpu().numpy())


def _words(error: BaseException, file: Path) -> str:
    """The error with its line in the reference."""
    trace, line = error.__traceback__, 0
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(file):
            line = trace.tb_lineno
        trace = trace.tb_next
    if isinstance(error, SyntaxError):
        return f"line {error.lineno}: {error.msg}"
    where = f"line {line}: " if line else ""
    return f"{where}{type(error).__name__}: {error}"


def _exactly(pipe: IO[bytes], count: int) -> bytearray:
    data = bytearray(count)
    view, at = memoryview(data), 0
    while at < count:
        if not (some := pipe.readinto(view[at:])):  # type: ignore[attr-defined]
            raise EOFError
        at += some
    return data


def _serve(given: IO[bytes], said: IO[bytes], file: Path, name: str) -> None:
    function: Callable[..., Any] | None = None
    while True:
        head = json.loads(_exactly(given, int.from_bytes(_exactly(given, 4), "little")))
        text = bytes(_exactly(given, head["text"])).decode()
        arrays = {}
        for called_, (kind, shape) in head["arrays"].items():
            data = _exactly(given, math.prod(shape) * np.dtype(kind).itemsize)
            arrays[called_] = np.frombuffer(data, kind).reshape(shape)
        error, answer = "", np.zeros(0)
        try:
            if text:
                function = loaded(file, text, name)
            elif function is not None:
                asked = (function, arrays, head["sizes"], head["outputs"])
                with np.errstate(all="ignore"):
                    found = timed(*asked, *head["timed"]) if head["timed"] else called(*asked)
                    answer = np.ascontiguousarray(found)
                if answer.dtype.name not in ANSWERS:
                    raise ValueError(f"answers {answer.dtype}, which is no array of numbers")
        except BaseException as problem:
            error, answer = _words(problem, file), np.zeros(0)
        told = json.dumps(
            {"error": error[:1000], "dtype": answer.dtype.name, "shape": list(answer.shape)}
        ).encode()
        said.write(len(told).to_bytes(4, "little") + told + answer.tobytes())
        said.flush()


def main() -> int:
    from kernels import confine, processes

    processes.die_with_parent(int(sys.argv[1]))
    given, said = os.fdopen(os.dup(0), "rb", 0), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1):  # what the reference prints goes nowhere
        os.dup2(null, descriptor)
    confine.hide_memory()
    confine.isolate_network()
    confine.limit_memory(MOST_MIB)
    confine.restrict()
    if confine.walled():
        confine.become_stranger()
    try:
        _serve(given, said, Path(sys.argv[2]), sys.argv[3])
    except EOFError:
        return 0
    return 0


if __name__ == "__main__":
    status = main()
    os._exit(status)
