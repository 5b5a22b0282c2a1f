"""An operator as a module for PyTorch: a file that needs torch and NumPy alone, and the library beside it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from kernels.exported.library import file_name
from kernels.exported.operator import Operator

TEMPLATE = '''\
"""{words}, as an operator of PyTorch: written by Kernelscope. README.md says how to use it.

It computes, and has no backward: use it under torch.no_grad() or torch.inference_mode().
"""

import ctypes
from pathlib import Path

import numpy as np
import torch

HERE = Path(__file__).resolve().parent
# The shapes of the inputs that are no weights, and of the answer, for each size that was exported.
SIZES = {sizes!r}
OUTPUT_TYPE = torch.{out_dtype}
DATA = {data!r}  # which of the arguments these inputs are; the others are weights
INPUT_TYPES = ({types},)

_library = ctypes.CDLL(str(HERE / "{library}"))
_library.kernelscope_open.restype = ctypes.c_char_p
_library.kernelscope_run.restype = ctypes.c_char_p
_library.kernelscope_run.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


def _checked(message):
    if message:
        raise RuntimeError(message.decode())

{opened}

def _size(tensors):
    """Which of SIZES these inputs are of."""
    shapes = tuple(tuple(int(n) for n in tensors[i].shape) for i in DATA)
    for number, (known, _) in enumerate(SIZES):
        if shapes == known:
            return number
    raise ValueError(
        f"{words}: it was exported for inputs of {{' or '.join(str(known) for known, _ in SIZES)}} and was "
        f"given {{shapes}}; export it for this batch size, too (--batch)"
    )


@torch.library.custom_op("kernelscope::{name}", mutates_args=(), device_types="{device}")
def {name}({arguments}) -> torch.Tensor:
    tensors = [{passed}]
    number = _size(tensors)
    for number_of, (tensor, kind) in enumerate(zip(tensors, INPUT_TYPES)):
        if tensor.dtype != kind:
            raise TypeError(f"argument {{number_of + 1}} is {{tensor.dtype}}, and {words} takes {{kind}}")
    tensors = [tensor.contiguous() for tensor in tensors]
    answer = torch.empty(SIZES[number][1], dtype=OUTPUT_TYPE, device=tensors[DATA[0]].device)
    pointers = (ctypes.c_void_p * len(tensors))(*(tensor.data_ptr() for tensor in tensors))
{call}
    return answer


@{name}.register_fake
def _({arguments}):
    tensors = [{passed}]
    return tensors[DATA[0]].new_empty(SIZES[_size(tensors)][1], dtype=OUTPUT_TYPE)


class Module(torch.nn.Module):
    """{words}, with its weights as buffers. weights: others in their place, in the order of the kernel's
    inputs and as it takes them{packed}; else those of the model that it was exported from."""

    def __init__(self, *weights):
        super().__init__()
        if not weights:
            with np.load(HERE / "{name}.npz") as file:
                weights = [torch.from_numpy(file[f"{{i}}"].copy()) for i in range({weights})]{views}
        if len(weights) != {weights}:
            raise ValueError(f"{words} takes {weights} weights, and {{len(weights)}} were given")
        for i, weight in enumerate(weights):
            self.register_buffer(f"weight{{i}}", weight.contiguous())

    def forward(self, {given}):
        return {name}({forwarded})
'''

CALLS = {
    "cpu": (
        "    # In this thread alone: PyTorch has no call by which another library shares its threads.\n"
        "    _checked(_library.kernelscope_run(number, pointers, answer.data_ptr(), None))"
    ),
    "cuda": (
        "    with torch.cuda.device(answer.device):\n"
        "        stream = torch.cuda.current_stream(answer.device).cuda_stream\n"
        "        _checked(_library.kernelscope_run(number, pointers, answer.data_ptr(), stream))"
    ),
}


# A processor that lacks what it was compiled for is told so, and not ended by its first instruction. A GPU is
# looked at when the kernel runs: the module may be loaded where there is none.
OPENED = {"cpu": "\n_checked(_library.kernelscope_open())\n", "cuda": ""}


def text(op: Operator) -> str:
    """The module's text."""
    names = [f"x{i}" for i in range(len(op.inputs))]
    data = op.data_inputs
    weights = [i for i in range(len(names)) if i not in data]
    forwarded = [name if i in data else f"self.weight{weights.index(i)}" for i, name in enumerate(names)]
    odd = [k for k, i in enumerate(weights) if op.inputs[i].dtype == "bfloat16"]
    packed = any(it.packed for it in op.inputs)
    return TEMPLATE.format(
        words=op.told,
        name=op.name,
        sizes=[(tuple(map(tuple, size.shapes)), tuple(size.output)) for size in op.sizes],
        out_dtype=op.out_dtype,
        data=data,
        types=", ".join(f"torch.{it.dtype}" for it in op.inputs),
        library=file_name(op),
        device=op.device,
        opened=OPENED[op.device],
        arguments=", ".join(f"{name}: torch.Tensor" for name in names),
        passed=", ".join(names),
        call=CALLS[op.device],
        weights=len(weights),
        packed=" (rearranged by the exporter)" if packed else "",
        views="".join(f"\n            weights[{k}] = weights[{k}].view(torch.bfloat16)" for k in odd),
        given=", ".join(names[i] for i in data),
        forwarded=", ".join(forwarded),
    )


def written(op: Operator, folder: Path) -> list[Path]:
    """Write the module and its weights into the folder, where the library lies. Gives the paths."""
    module, weights = folder / f"{op.name}.py", folder / f"{op.name}.npz"
    module.write_text(text(op), encoding="utf-8")
    arrays = [np.ascontiguousarray(it.array) for it in op.inputs if it.array is not None]
    plain = [array.view(np.int16) if array.dtype.name == "bfloat16" else array for array in arrays]
    np.savez(weights, allow_pickle=False, **{str(i): array for i, array in enumerate(plain)})
    return [module, weights]
