# make run       sets up .venv and analyzes one kernel
# make test      sets up .venv with the test tools and runs every check
# make slow      the tests with all cases, also those that resemble quicker ones: several times as long
# make quick     what to run after each edit: ruff, mypy and the tests worked out by hand; under a minute
# make coverage  the tests again, slower, with the lines of Python that they execute: build/coverage/index.html
# make docs      builds build/docs/index.html
# make bench     measures how fast the engines and the commands are
# make fuzz     damaged command lines and files, each in a process of its own: make fuzz SEED=1 MINUTES=10
# make mutants  small changes to the code, of which the tests should notice all: make mutants MUTANTS=20 (of each folder)
# make soak     one process that analyzes 210 launches, and whether its memory stays what it was
# make lock      writes constraints.txt anew, with the newest releases that pyproject.toml allows
# All need Python 3.11+ with pip, and nothing else.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin

# Everything is installed in the versions of this file, so that a new release of a dependency breaks nothing here.
# `make test CONSTRAINTS=` takes the newest releases instead.
CONSTRAINTS ?= constraints.txt
INSTALL = $(BIN)/python -m pip install --quiet $(if $(CONSTRAINTS),--constraint $(CONSTRAINTS) --build-constraint $(CONSTRAINTS))
PYTEST = $(BIN)/pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder

# The tests start hundreds of processes, each of which would compile our modules anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test slow quick check-source check-behaviour coverage docs bench fuzz mutants soak lock clean

run: $(VENV)/.run
	$(BIN)/gemmsim analyze --kernel tiled --size 256

test: $(VENV)/.test
	$(MAKE) --no-print-directory --jobs 2 check-source check-behaviour

slow: $(VENV)/.test
	GEMMSIM_SLOW=1 $(PYTEST)

quick: $(VENV)/.test check-source
	$(PYTEST) tests/hand

check-source: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/mypy

check-behaviour: $(VENV)/.test
	$(PYTEST)

coverage: $(VENV)/.test
	$(PYTEST) --cov --cov-report=term:skip-covered --cov-report=html

docs: $(VENV)/.docs
	$(BIN)/python -m sphinx --fail-on-warning --keep-going docs build/docs
	@echo "open build/docs/index.html"

bench: $(VENV)/.bench
	$(BIN)/pytest -m bench tests/bench --benchmark-columns=min,median,max,rounds

SEED ?= 1
MINUTES ?= 10
MUTANTS ?= 20

fuzz: $(VENV)/.test
	cd tests && $(abspath $(BIN))/python -m fuzz $(SEED) $(MINUTES)

mutants: $(VENV)/.mutants
	$(BIN)/python tests/mutants.py $(MUTANTS)

soak: $(VENV)/.test
	$(BIN)/python tests/bench/soak.py

# Without ensurepip, which Debian's Python has only with python3-venv: the pip of $(PYTHON) installs that of the venv.
$(VENV)/.pip:
	$(PYTHON) -m venv --without-pip $(VENV)
	if $(PYTHON) -m pip --version > /dev/null 2>&1; then pip="$(PYTHON) -m pip --python $(BIN)/python"; \
	else $(BIN)/python -m ensurepip > /dev/null && pip="$(BIN)/python -m pip"; fi; \
	$$pip install --quiet --upgrade $(if $(CONSTRAINTS),--constraint $(CONSTRAINTS)) 'pip>=25.3'  # the first with --build-constraint
	touch $@

$(VENV)/.run: pyproject.toml $(CONSTRAINTS) | $(VENV)/.pip
	$(INSTALL) --editable .
	touch $@

$(VENV)/.docs: pyproject.toml $(CONSTRAINTS) | $(VENV)/.pip
	$(INSTALL) --editable . --group docs
	touch $@

$(VENV)/.bench: pyproject.toml $(CONSTRAINTS) | $(VENV)/.pip
	$(INSTALL) --editable . --group bench
	touch $@

$(VENV)/.mutants: $(VENV)/.test
	$(INSTALL) --editable . --group mutants
	touch $@

$(VENV)/.test: pyproject.toml $(CONSTRAINTS) | $(VENV)/.pip
	$(INSTALL) --editable . --group test
	touch $@

lock:
	rm -rf build/lock
	$(MAKE) --no-print-directory VENV=build/lock CONSTRAINTS= build/lock/.test build/lock/.bench
	{ sed '/^[^#]/,$$d' constraints.txt; build/lock/bin/python -m pip freeze --all --exclude-editable; } > build/lock/new
	mv build/lock/new constraints.txt

clean:
	rm -rf $(VENV) build *.egg-info
