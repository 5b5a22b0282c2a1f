"""What lies beside an exported operator for people: how to load it, and what it can do."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kernels.exported.library import file_name
from kernels.exported.operator import BoundCall, Operator

ONNXRUNTIME = """```python
import numpy as np
import onnxruntime as ort

options = ort.SessionOptions()
options.register_custom_ops_library("./{library}")
session = ort.InferenceSession("{model}", options, providers=["{provider}"])
feed = {{it.name: np.zeros([n if isinstance(n, int) else {batch} for n in it.shape],
                           "float32" if it.type == "tensor(float)" else it.type[7:-1])  # of tensor(…)
        for it in session.get_inputs()}}
print(session.run(None, feed)[0].shape)
```"""

TORCH = """```python
import torch
import {name}

mine = {name}.Module(){on_device}
x = torch.zeros({shape}{device})
with torch.inference_mode():
    print(mine(x).shape)
```

Put it in the place of the module {node}: `model.{place} = {name}.Module(){on_device}`, for example."""

_TARGET = re.compile(r"^\.target (\w+)", re.M)


def _architectures(op: Operator) -> str:
    """What the machine code of a CUDA operator is for."""
    found = [at[1] for module in op.modules if (at := _TARGET.search(module.ptx))]
    return " and ".join(dict.fromkeys(found)) or "the architecture that it was exported for"


def text(op: Operator, nodes: Sequence[str], to: str, model: str) -> str:
    """to: "onnxruntime" or "torch"; nodes: what of the model it stands for; model: the name of the copy."""
    cuda = op.device == "cuda"
    first = op.sizes[0]
    parts = [f"# {op.name}", f"The kernel *{op.rung.label}* in the place of {' and '.join(nodes)}. It was"]
    parts[-1] += f" exported by Kernelscope, and needs nothing of it. It computes in {op.rung.precision}."
    parts.append("Keep the files of this folder together. In this folder:")
    if to == "onnxruntime":
        provider = "CUDAExecutionProvider" if cuda else "CPUExecutionProvider"
        batch = first.shapes[0][0] if first.shapes[0] else 1
        parts.append(ONNXRUNTIME.format(library=file_name(op), model=model, provider=provider, batch=batch))
    else:
        more = (
            {"on_device": ".cuda()", "device": ', device="cuda"'} if cuda else {"on_device": "", "device": ""}
        )
        place = nodes[0] if nodes[0].isidentifier() else "conv1"
        parts.append(TORCH.format(name=op.name, shape=first.shapes[0], node=nodes[0], place=place, **more))
    parts.append("What it takes:")
    sizes = ", ".join(" and ".join("×".join(map(str, dims)) for dims in size.shapes) for size in op.sizes)
    facts = [f"inputs of {sizes}; for other batch sizes export it again, with `--batch`"]
    if to == "torch" and len(nodes) > 1:
        facts.append(f"it does the work of {', '.join(nodes[1:])}, too: put torch.nn.Identity() there")
    if cuda:
        facts += [
            f"an NVIDIA GPU. The .cubin is for {_architectures(op)}; from the .ptx the driver compiles for "
            "later ones",
            "it runs on the stream of whoever calls it, and is captured by CUDA graphs after one plain pass",
        ]
    else:
        steps = [size.step for size in op.sizes]
        shared = any(isinstance(step, BoundCall) and step.tasks > 1 for step in steps)
        facts.append(
            "a processor with what this machine code uses"
            + (f": {', '.join(op.features)}" if op.features else "")
        )
        if to == "torch":
            facts.append("it runs in one thread")
        elif shared:
            facts.append("it divides its work among the threads of ONNX Runtime's session")
        else:
            facts.append("it runs in one thread: there is too little work at these sizes to divide")
    facts.append(
        "ONNX Runtime 1.17 or newer" if to == "onnxruntime" else "PyTorch 2.4 or newer; it has no backward"
    )
    parts.append("\n".join(f"- {fact}" for fact in facts))
    parts.append(f"`{op.name}.c` is what the library was built from, to be read.")
    return "\n\n".join(parts) + "\n"
