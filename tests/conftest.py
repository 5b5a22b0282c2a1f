"""Settings of the whole suite: what is drawn in a run hangs on its seed alone (tests/sampling.py), so that it
can be drawn again.

HYPOTHESIS_PROFILE=explore draws anew each time and longer, to look for what nobody thought of.
"""

import atexit
import gc
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

# Where Python is told to write no bytecode, as in containers, every process of the hundreds that tests start
# would compile all that it imports, which is most of its start. It is kept apart from the sources instead,
# for all of them: with the environment, since most of it is of the libraries there, which another clone that
# uses the environment need not compile again. Before Hypothesis is loaded, whose modules pytest would rewrite
# each time, too: seconds.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
    beside = Path(__file__).parents[1] / ".pytest_cache"
    kept = (Path(sys.prefix) if os.access(sys.prefix, os.W_OK) else beside) / "bytecode"
    sys.pycache_prefix = os.environ.setdefault("PYTHONPYCACHEPREFIX", str(kept))
    sys.dont_write_bytecode = False

import pytest
from hypothesis import Phase, settings
from hypothesis.internal.conjecture import providers

from kernels import confine
from kernels.tasks import record
from tests import ahead, marks, preloaded, sampling
from tests.bench import brief

# Which parts of a failing example matter is explained by hundreds of further ones: also where a test is there
# to see one fail.
BRIEF = tuple(phase for phase in Phase if phase is not Phase.explain)
settings.register_profile("same", database=None, phases=BRIEF)  # by the seed of the run
settings.register_profile("explore", derandomize=False, max_examples=300)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))
# Hypothesis tries numbers and texts that stand in the program's sources, too, and reads all that is loaded to
# find them: a second and more of each process. What is drawn would then hang on what it has loaded.
if settings.get_current_profile_name() == "same":
    providers._get_local_constants = lambda: providers._local_constants

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

# Nor are that person's settings.
os.environ["KERNELSCOPE_CONFIG"] = str(Path(__file__).parent / "no-settings.toml")

# Before the processes that share the tests are started: they all take the same.
sampling.settle()

# A process that shares the tests ends at once, when all else is done: to take apart what it has made would be
# seconds.
if "PYTEST_XDIST_WORKER" in os.environ:
    atexit.register(os._exit, 0)

# What collecting makes stays to the end: no search for garbage need go through it, neither while it grows,
# which would be a quarter of the time that collecting takes, nor afterwards.
gc.disable()


@pytest.fixture(autouse=True)
def _folders_of_others():
    """A folder that an earlier test called as this one's task is nobody's; and none that it measured into is
    kept from this one's kernels, nor those around it."""
    record.known.clear()
    record._pinned.clear()
    os.environ.pop(confine.KEPT, None)


@pytest.fixture(autouse=True, scope="session")
def _brief_processes():
    """Before all that modules share: some of it is measured by a process of its own. A fixture, for the
    processes that share the tests are not to be brief themselves."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", brief.environment())
        patch.setattr(subprocess, "Popen", subprocess.Popen)
        preloaded.install()
        yield


@pytest.fixture(autouse=True, scope="session")
def _no_bytecode_of_what_is_gone(tmp_path_factory):
    """What tests write in their folders and import is compiled beside all else."""
    yield
    if sys.pycache_prefix:
        shutil.rmtree(f"{sys.pycache_prefix}{tmp_path_factory.getbasetemp()}", ignore_errors=True)


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """The cache's folder, which no other test has."""
    monkeypatch.setenv("KERNELSCOPE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def gpu():
    """Skips where no CUDA kernel runs."""
    from engine import backends

    if reason := backends.get("engine-cuda").unavailable():
        pytest.skip(reason)


@pytest.fixture
def blank_pictures(monkeypatch):
    """For tests that look at words, tables and names of files alone: pictures are written in each format,
    with title and finding, and nothing is on them. Drawing is most of what a report costs."""
    from matplotlib.figure import Figure

    from bench.views.drawing import draw, draw_timeline, draw_together

    def timeline(profile, cases, form, among=(), scale=1.0, look=None):
        return draw.saved(Figure(figsize=(1, 1)), form, scale, "", "")

    monkeypatch.setattr(draw_together, "cores", lambda: 1)  # other processes would draw
    monkeypatch.setattr(draw, "figure", lambda chart, look=None: Figure(figsize=(1, 1)))
    monkeypatch.setattr(draw_timeline, "render", timeline)


def pytest_collection_finish():
    gc.freeze()
    # What is looked for is rare, and looking for it at every 700th object a percent of all that tests take.
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    """What Hypothesis draws, too, hangs on the seed of the run, unless it is told one, or is to explore."""
    if settings.get_current_profile_name() == "same" and config.getoption("--hypothesis-seed") is None:
        config.option.hypothesis_seed = str(sampling.number("hypothesis"))
    if config.getoption("numprocesses", None):  # of which this is none
        ahead.write(config)


def pytest_ignore_collect(collection_path, config):
    return True if marks.without_a_part(collection_path, config.option.markexpr) else None


def pytest_collection_modifyitems(config, items):
    if files := marks.forgotten(items):
        raise pytest.UsageError(
            f"tests for a GPU that tests/marks.py does not see: {', '.join(map(str, files))}"
        )
    asked = {Path(config.invocation_params.dir, argument).resolve() for argument in config.args}
    named = not asked <= {sampling.ROOT, sampling.TESTS} or bool(config.option.keyword)
    items[:], left = sampling.of(items, named)
    if left:
        config.hook.pytest_deselected(items=left)


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(f"samples: {sampling.again()}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    report = yield
    drawn = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
    if report.failed and (drawn or item.get_closest_marker("sampled")):
        report.sections.append(("what was drawn", sampling.again()))
    return report
