"""An isolated process as `engine.isolated.child`, shut in before anything is loaded that starts a thread."""

from __future__ import annotations

import os

from kernels import confine

if __name__ == "__main__":
    confine.restrict_by_environment()
    from engine.isolated import child

    os._exit(child.main())
