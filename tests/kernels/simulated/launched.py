"""What compute-sanitizer looks at: kernels of a folder of cubins, each launched once.

    python -m tests.kernels.simulated.launched FOLDER NAME…

`launches.json` of the folder says of each name how many threads and blocks. A line `@@NAME` is written before
each launch, and one with what CUDA says after a fault; a fault that leaves the process no GPU ends it with 3.
It starts often, so it loads little.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np

LAUNCHES = "launches.json"


def main() -> None:
    import cupy

    cupy.cuda.set_allocator(None)  # each allocation alone, so that memcheck knows where it ends
    folder, names = Path(sys.argv[1]), sys.argv[2:]
    launches = json.loads((folder / LAUNCHES).read_text(encoding="utf-8"))
    for name in names:
        threads, blocks = launches[name]
        count = threads * blocks
        print(f"@@{name}", flush=True)
        try:
            made = cupy.RawModule(path=str(folder / f"{name}.cubin"))
            x = cupy.asarray(np.arange(count, dtype=np.float32) % 17 + 1)
            z = cupy.asarray(np.zeros(count, np.float32))
            y = cupy.empty(count, np.float32)
            made.get_function(name)((blocks,), (threads,), (x, y, z, np.int32(count)))
            cupy.cuda.Device().synchronize()
        except Exception as error:
            print(f"@@{name} {type(error).__name__}: {str(error)[:200]}", flush=True)
            try:
                cupy.asarray(np.zeros(1, np.float32)).get()
            except Exception:
                os._exit(3)


if __name__ == "__main__":
    main()
