"""A model at one batch size in PyTorch on the CPU, eager or compiled, in an isolated process
(engine.isolated)."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from engine.graph.graph import Graph
from engine.isolated.slots import Copies
from engine.machine import host
from engine.options import Options
from engine.passes.trace import known
from engine.rivals import torch_here
from engine.rivals.torch_translation import Swap


class TorchCpuSession:
    """A session as engine.isolated.child needs it. how: see torch_here.compiled."""

    def __init__(
        self, graph: Graph, batch: int, options: Options, how: str, swaps: Sequence[Swap] = ()
    ) -> None:
        self._what = f"{graph.name} in PyTorch at batch {batch}"
        torch = torch_here.imported()
        threads = options.threads or host.physical_cores()
        torch.set_num_threads(threads)
        started = time.perf_counter_ns()
        with torch_here.translated_errors(self._what):
            net = torch_here.net(torch, graph, batch, swaps=swaps)
            scope = known(graph, batch)
            self.given = {
                info.name: np.zeros(scope.shape(info.name), scope.spec(info.name).dtype)
                for info in graph.inputs
            }
            self._tensors = [torch.from_numpy(array) for array in self.given.values()]
            loaded = time.perf_counter_ns()
            self._torch, self._call = torch, torch_here.compiled(torch, net, how)
            outputs = self._pass()
            self._outputs = {
                info.name: np.zeros(tuple(tensor.shape), tensor.numpy().dtype)
                for info, tensor in zip(graph.outputs, outputs, strict=True)
            }
        self._left = [torch.from_numpy(array) for array in self._outputs.values()]
        self.phases: Mapping[str, int] = {
            "load": loaded - started,
            "compile": time.perf_counter_ns() - loaded,
        }
        self.memory: Mapping[str, int] = {
            "weights": sum(buffer.nbytes for buffer in net.buffers()),
            "inputs": sum(array.nbytes for array in self.given.values()),
            "outputs": sum(array.nbytes for array in self._outputs.values()),
        }
        self.facts: Mapping[str, str] = {
            "torch": str(torch.__version__),
            "threads": str(threads),
            "execution": torch_here.WORDS[how],
        }

    def _pass(self) -> Sequence[Any]:
        with self._torch.inference_mode():
            outputs: Sequence[Any] = self._call(*self._tensors)
            return outputs

    def answers(self) -> dict[str, np.ndarray]:
        return self._outputs

    def run(self) -> None:
        self.each((((), ()),))

    def each(self, copies: Sequence[Copies]) -> None:
        """One pass for each of these inputs, its answer copied to where it belongs."""
        call, tensors, output_arrays = self._call, self._tensors, self._left
        with torch_here.translated_errors(self._what), self._torch.inference_mode():
            for inputs, outputs in copies:
                for to, of in inputs:
                    np.copyto(to, of)
                for tensor, value in zip(output_arrays, call(*tensors), strict=True):
                    tensor.copy_(value)
                for to, of in outputs:
                    np.copyto(to, of)

    def close(self) -> None:
        del self._call, self._tensors, self._left
        self.given.clear()
        self._outputs.clear()


opened = TorchCpuSession
