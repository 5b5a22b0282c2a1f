"""Who hands work out: this machine, places elsewhere or a cluster; and a run measured on several of them, as
`--cluster` and `--on` do."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from bench.commands.measuring import Ending, Where
from bench.extras.fleet import spread
from bench.extras.fleet.executor import Executor, elsewhere, local
from bench.extras.fleet.on_ray import OnRay
from bench.results.folder import Folder
from bench.run.progress import RunProgress


def executor_of(device: str, address: str, at_once: int) -> Executor:
    """A cluster's at an address, or where there is none ("") that of this machine's devices of one kind.
    at_once: pieces of work that share a device."""
    return OnRay(address, at_once) if address else local(device, at_once)


def measure(folder: Folder[Any, Any], missing: Sequence[Any], where: Where) -> Ending:
    """Measure the missing cases of a run on a cluster, or on places elsewhere."""
    executor = elsewhere(where.on) if where.on else OnRay(where.cluster)
    print(f"on: {executor.words}", file=sys.stderr)
    try:
        done = len(folder.cases) - len(missing)
        with RunProgress(folder.kind, len(folder.cases), done, missing, folder.job) as shown:
            return spread.measure(folder, missing, executor, shown, where.gpu, where.on)
    finally:
        executor.close()
