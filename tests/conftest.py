"""Settings of the whole suite: drawn examples are the same in every run, so that a red run means a change.

HYPOTHESIS_PROFILE=explore draws anew each time and longer, to look for what nobody thought of.
"""

import gc
import os
import signal
import sys
from pathlib import Path

from hypothesis import Phase, settings

# Which parts of a failing example matter is explained by hundreds of further ones: also where a test is there
# to see one fail.
BRIEF = tuple(phase for phase in Phase if phase is not Phase.explain)
settings.register_profile("same", derandomize=True, phases=BRIEF)
settings.register_profile("explore", derandomize=False, max_examples=300)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

# Where Python is told to write no bytecode, as in containers, every process of the hundreds that tests start
# would compile all that it imports, which is most of its start. It is kept apart from the sources instead,
# for all of them.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
    kept = Path(__file__).parents[1] / ".pytest_cache" / "bytecode"
    sys.pycache_prefix = os.environ.setdefault("PYTHONPYCACHEPREFIX", str(kept))
    sys.dont_write_bytecode = False

# What Numba compiles is compiled once for all tests, whichever cache they are given.
os.environ["KERNELSCOPE_COMPILED"] = str(Path(__file__).parents[1] / ".pytest_cache" / "compiled")

# A second thread of NumPy's products has nothing to do in models as small as those of tests, but waits
# busily, in each of the processes that run at once. What is about threads sets their number itself.
for threads in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

# A shell that starts the tests in the background has them ignore Ctrl-C, and their processes with them: those
# that are about Ctrl-C would then wait for one that never comes.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# What the person who runs the tests has imported is no part of the catalogue that they are about.
os.environ["KERNELSCOPE_MODELS"] = str(Path(__file__).parent / "no-imported-models")

# What collecting makes stays to the end: no search for garbage need go through it, neither while it grows,
# which would be a quarter of the time that collecting takes, nor afterwards.
gc.disable()


def pytest_collection_finish():
    gc.collect()
    gc.freeze()
    gc.enable()
