"""What we use of PyTorch beyond the operators: importing it, compiling, and its errors in our words."""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import warnings
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, cast

from engine.graph.graph import Graph
from engine.rivals import torch_net
from engine.rivals.torch_translation import Swap
from kernels.cache import cache_dir
from kernels.errors import KernelError, KernelscopeError, Translated, UnavailableError

EAGER, COMPILED, TUNED = "eager", "compiled", "tuned"
WORDS = {
    EAGER: "eager",
    COMPILED: "torch.compile",
    TUNED: "torch.compile, mode max-autotune-no-cudagraphs",
}
_MODES = {COMPILED: None, TUNED: "max-autotune-no-cudagraphs"}


def imported() -> Any:
    """The module `torch`, set up for inference. Raises UnavailableError."""
    # Compiled code is kept with what else is; its helpers would outlive what they are asked for.
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(cache_dir() / "torch"))
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    os.environ.setdefault("TORCHINDUCTOR_MAX_AUTOTUNE_REPORT_CHOICES_STATS", "0")  # else it prints them all
    try:
        torch = importlib.import_module("torch")
        importlib.import_module("torch.fx")
    except Exception as error:  # a library that does not load has many names
        raise UnavailableError(f"PyTorch cannot be imported: {_line(error)}") from error
    torch.set_grad_enabled(False)
    return torch


def net(torch: Any, graph: Graph, batch: int, held: str = "float32", swaps: Sequence[Swap] = ()) -> Any:
    return torch_net.translated(torch, graph, batch, held, swaps)


def compiled(torch: Any, module: Any, how: str) -> Callable[..., Any]:
    """The module as it is, or compiled as a whole by torch.compile, for these shapes. It compiles in its
    first pass."""
    if how == EAGER:
        return cast("Callable[..., Any]", module)
    with contextlib.suppress(ImportError, AttributeError):
        algorithms: Any = importlib.import_module("torch._inductor.select_algorithm")
        algorithms.PRINT_AUTOTUNE = False
    logging.getLogger("torch._inductor.select_algorithm").setLevel(logging.CRITICAL)
    torch._dynamo.reset()  # a net of the same code at another batch size would be compiled for any size
    module_compiled: Callable[..., Any] = torch.compile(
        module, mode=_MODES[how], fullgraph=True, dynamic=False
    )
    return module_compiled


class translated_errors(Translated):
    """Around calls of PyTorch; its warnings are hidden."""

    __slots__ = ("_warnings",)

    def __enter__(self) -> None:
        self._warnings = warnings.catch_warnings()
        self._warnings.__enter__()
        warnings.simplefilter("ignore")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._warnings.__exit__(kind, error, trace)
        super().__exit__(kind, error, trace)

    def ours(self, error: Exception) -> KernelscopeError | None:
        text = str(error).lower()
        if isinstance(error, MemoryError) or "out of memory" in text or "can't allocate memory" in text:
            return self.ran_out(_line(error))
        return KernelError(f"PyTorch failed on {self._what}: {_line(error)}")


def _line(error: BaseException) -> str:
    text = (str(error).strip() or type(error).__name__).splitlines()[0]
    return text if len(text) <= 300 else text[:299] + "…"
