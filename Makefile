# Two commands: `make demo` and `make test`. Both work on a fresh clone, with Python 3.10+ and make alone.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 2

.PHONY: demo test gate format conformance fuzz-optimizer sanitize clean

demo: $(VENV)/.core
	$(BIN)/sardonyx demo

test: $(VENV)/.dev gate
	$(BIN)/pytest -n $(WORKERS)

# Format, lint, types and import layers: everything but the tests.
gate: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Writes docs/conformance.md anew.
conformance: $(VENV)/.dev
	$(BIN)/sardonyx conformance --markdown docs/conformance.md

# 100,000 generated graphs through the optimizer. Half an hour on two cores.
fuzz-optimizer: $(VENV)/.dev
	$(BIN)/python tools/fuzz_optimizer.py --graphs 100000

# Generated code under gcc's sanitizers: the official cases, and the standard models with 8 threads. An hour.
sanitize: $(VENV)/.dev
	$(BIN)/python tools/sanitize.py address
	$(BIN)/python tools/sanitize.py thread

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	$(BIN)/python -m compileall -q src
	touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	$(BIN)/python -m compileall -q src
	touch $@ $(VENV)/.core
