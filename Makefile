# Two commands on a fresh machine with Python ≥ 3.11, pip and make: `make run` and `make test`.
# Each sets up .venv by itself; a lock file that changed sets it up again.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv
# Asked once a make; the driver does not change in between. `make help` and `make clean` need no answer.
EXTRA = $(eval EXTRA := $(shell $(PYTHON) bench/run/pick_extra.py))$(EXTRA)

RIVALS := torch openvino cudnn
# What lies beside ours in an environment of its own: rivals, the compilers of CUDA rungs in Python, and what
# makes the site.
APART := $(RIVALS) languages docs

.PHONY: $(APART) run test test-quick test-whole test-gpu test-simulated sanitize rehearse fuzz attack lint lock release clean help

help:
	@echo "make run             the window; without a display, the default comparison"
	@echo "make test            the tests, a sample of what is much alike"
	@echo "make test-quick      some of them, in a minute, after a change"
	@echo "make test-whole      everything of which make test takes a sample"
	@echo "make test-gpu        those that need a GPU"
	@echo "make test-simulated  of these what a simulated GPU can stand in for"
	@echo "make lint            style, types, order of imports"
	@echo "make sanitize        every CUDA rung under memcheck and racecheck"
	@echo "make rehearse        every command of the documents, as a user runs it"
	@echo "make fuzz            damaged files for ten minutes, goes on in fuzz-state/"
	@echo "make attack          kernels that cheat against the judge, and 500 right ones"
	@echo "                     (of the last three ARGS=--help says what else)"
	@echo "make release         source distribution and wheel in dist/, checked; nothing is uploaded"
	@echo "make torch           PyTorch, in an environment of its own (.venv-torch): 5.4 GB"
	@echo "make openvino        OpenVINO, in an environment of its own"
	@echo "make cudnn           cuDNN's frontend with cuDNN and cuBLASLt, likewise; for NVIDIA GPUs"
	@echo "make languages       the compilers of Triton, Numba-CUDA and CuTe DSL, too"
	@echo "make docs            the documents as a site, in site/; a broken link is an error"
	@echo "make lock            resolve the dependencies again"
	@echo "make clean           remove what was set up"

run: $(VENV)/run.stamp
	@$(BIN)/python main.py

PYTEST = QT_QPA_PLATFORM=offscreen $(BIN)/python -m pytest -q
# Many tests wait for a process of their own: one more at a time than there are cores.
SHARED = -n $$(($$(getconf _NPROCESSORS_ONLN) + 1)) --dist worksteal

# The program as a whole on the simulated GPU: with the others that take it.
SIMULATED = tests/standin/test_standin_program.py tests/standin/test_standin_end_to_end.py

# Of kernels that compile, drawn shapes, planted mistakes and damaged files each run takes a sample, by the seed
# that it names at its end (tests/sampling.py).
test: $(VENV)/dev.stamp
	@$(PYTEST) -m "not gpu" $(SHARED) $(SIMULATED:%=--ignore=%)

# After a change, in a minute: all that opens no window, and starts hardly any process or compiler, and the command
# line from end to end.
test-quick: $(VENV)/dev.stamp
	@$(PYTEST) -m "not gpu and not slow" $(SHARED)

# Of the tests that take a sample, all that they sample.
test-whole: $(VENV)/dev.stamp
	@KERNELSCOPE_SEED=all $(PYTEST) -m "sampled and not gpu" $(SHARED)

test-gpu: $(VENV)/dev.stamp
	@$(PYTEST) -m gpu

# Of the tests that are for a GPU those that the simulated one can stand in for: what they test goes on changing
# where there is none. Kernels themselves it does not run.
test-simulated: $(VENV)/dev.stamp
	@QT_QPA_PLATFORM=offscreen $(BIN)/python -m tests.standin -m pytest -m "gpu and not real_gpu" $(SHARED) -q \
	  tests/engine tests/bench tests/gui
	@$(PYTEST) -m "not gpu" $(SHARED) $(SIMULATED)

sanitize: $(VENV)/dev.stamp
	@$(BIN)/python -m tests.kernels.sanitize --under memcheck,racecheck

# In the environment that `make run` sets up: a user has no other.
rehearse: $(VENV)/run.stamp
	@$(BIN)/python -m tests.rehearsal $(ARGS)

fuzz: $(VENV)/dev.stamp
	@$(BIN)/python -m tests.fuzz $(ARGS)

# All of tests/bench/judge/cheats; the tests take a few of them.
attack: $(VENV)/dev.stamp
	@$(BIN)/python -m tests.bench.judge.attack $(or $(ARGS),--honest 500)

# Builds twice, and from the source distribution: equal bytes. CHANGELOG.md gets the version's section.
release: $(VENV)/dev.stamp
	@$(BIN)/python -m tests.package.release

lint: $(VENV)/dev.stamp
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

# uv comes from pip, so that nothing but Python and pip is asked of the machine.
$(UV):
	@$(PYTHON) -c 'import sys; sys.exit("Kernelscope needs Python 3.11 or newer; this is " + sys.version.split()[0] + " (set PYTHON=python3.12, say)") if sys.version_info < (3, 11) else None'
	@$(PYTHON) -m venv $(VENV) || { echo "could not make .venv: on Debian and Ubuntu install python3-venv" >&2; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv

# By itself, and built by nobody: where there is none for this machine, or no room, the rest is all that is needed.
NUMBA = $(UV) pip install --quiet --python $(BIN)/python --require-hashes --only-binary :all: -r locks/numba.txt || \
	echo "Numba could not be installed: engine-cpu runs its kernels in NumPy" >&2

# The stamp names the set that is installed: a tests' environment serves to run as well.
$(VENV)/run.stamp: $(UV) $(wildcard locks/*.txt)
	@if [ -f $(VENV)/dev.stamp ] && [ -z "$$(find locks -newer $(VENV)/dev.stamp -name '*.txt')" ]; then touch $@; else \
	  extra=$(EXTRA); echo "setting up .venv from locks/$$extra.txt (once)" >&2; \
	  $(UV) pip install --quiet --python $(BIN)/python --require-hashes -r locks/$$extra.txt && \
	  { $(NUMBA); } && touch $@; fi

$(VENV)/dev.stamp: $(UV) $(wildcard locks/*.txt)
	@extra=$(EXTRA); echo "setting up .venv from locks/dev-$$extra.txt (once)" >&2; \
	  $(UV) pip install --quiet --python $(BIN)/python --require-hashes -r locks/dev-$$extra.txt && \
	  { $(NUMBA); } && touch $@

# Their packages lie beside ours, and grow the environment of `make run` by nothing.
$(APART): %: .venv-%/stamp

# On Linux PyTorch brings CUDA's libraries whether there is a GPU or not: the registry has no build without them.
# So where there is none it is asked first, or by TORCH=yes where nobody can answer.
ASK_torch = if [ "$(TORCH)" != yes ] && [ "$$(uname -s)" = Linux ] && [ "$(EXTRA)" = cpu ]; then \
	  echo "PyTorch is 3.1 GB to download and 5.4 GB on the disk, most of it for a GPU, and there is none here." >&2; \
	  if [ -t 0 ]; then printf "Install it all the same? [y/N] " >&2; read -r answer; else answer=; fi; \
	  case $$answer in [yY]*) ;; *) echo "not installed; \`make torch TORCH=yes\` does it unasked" >&2; exit 1;; esac; fi

.venv-%/stamp: locks/%.txt $(UV)
	@$(ASK_$*)
	@echo "setting up .venv-$* from $<" >&2
	@$(UV) venv --quiet --allow-existing --python $(BIN)/python .venv-$*
	@$(UV) pip install --quiet --python .venv-$* --require-hashes -r $< && touch $@

# Links are checked, with their headings; nothing in a page is loaded from elsewhere.
docs:
	@.venv-docs/bin/python -m docs.site $(ARGS)

# One file an extra, hashes and no addresses: uv's own lock would name the host packages came from.
lock: $(UV)
	@for extra in cpu cuda cuda12; do \
	  echo "locks/$$extra.txt" >&2; \
	  $(UV) pip compile -q --universal --python-version 3.11 --generate-hashes --no-header pyproject.toml \
	    --extra $$extra -o locks/$$extra.txt || exit 1; \
	  nvrtc=; [ $$extra = cpu ] && nvrtc="--extra nvrtc"; \
	  $(UV) pip compile -q --universal --python-version 3.11 --generate-hashes --no-header pyproject.toml \
	    --extra $$extra --extra dev $$nvrtc -c locks/$$extra.txt -o locks/dev-$$extra.txt || exit 1; \
	done
	@for rival in $(APART); do \
	  echo "locks/$$rival.txt" >&2; \
	  $(BIN)/python -c 'import sys, tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"][sys.argv[1]], sep="\n")' $$rival \
	    | $(UV) pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate - \
	      -o locks/$$rival.txt || exit 1; \
	done
	@$(UV) pip compile -q --universal --python-version 3.11 --generate-hashes --no-header pyproject.toml --extra cluster \
	  -c locks/cpu.txt -o locks/cluster.txt
	@$(UV) pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --group numba \
	  -c locks/cpu.txt -o locks/numba.txt

clean:
	rm -rf $(VENV) .venv-* site .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
