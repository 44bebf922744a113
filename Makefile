# make run: set up and analyze one kernel. make test: set up and run every check. make docs: build/docs/index.html.
# make bench: how fast the engines and the commands are.
# All need Python 3.11+ and pip only.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin

# The tests start hundreds of processes, each of which would compile our modules anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test check-source check-behaviour docs bench clean

run: $(VENV)/.run
	$(BIN)/gemmsim analyze --kernel tiled --size 256

test: $(VENV)/.test
	$(MAKE) --no-print-directory --jobs 2 check-source check-behaviour

check-source: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/mypy

check-behaviour: $(VENV)/.test
	$(BIN)/pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder

docs: $(VENV)/.docs
	$(BIN)/python -m sphinx --fail-on-warning --keep-going docs build/docs
	@echo "open build/docs/index.html"

bench: $(VENV)/.bench
	$(BIN)/pytest -m bench tests/bench --benchmark-columns=min,median,max,rounds

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'  # the first that knows --group

$(VENV)/.run: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/.docs: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable . --group docs
	touch $@

$(VENV)/.bench: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable . --group bench
	touch $@

$(VENV)/.test: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable . --group test
	touch $@

clean:
	rm -rf $(VENV) build *.egg-info
