# `make run` and `make test` set everything up by themselves; they need Python 3.11 or newer and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PLUGINS := $(sort $(dir $(wildcard plugins/*/pyproject.toml)))
PROJECTS := pyproject.toml $(addsuffix pyproject.toml,$(PLUGINS))
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# The versions in constraints.txt hold for build environments too.
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt

.PHONY: run test soak lint check-types docs bench clean

run: $(VENV)/installed
	$(BIN)/floorkit run protocols.toml

test: lint check-types
	$(BIN)/python -m pytest -n 2 -m "not soak"

soak: $(VENV)/installed-dev
	$(BIN)/python -m pytest -m soak

lint: $(VENV)/installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

check-types: $(VENV)/installed-dev
	$(BIN)/mypy floorkit $(wildcard plugins/*/src/*)

docs: $(VENV)/installed-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit("floorkit needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: $(BIN)/python $(PROJECTS) constraints.txt
	$(PIP) --editable . $(addprefix --editable ./,$(PLUGINS))
	touch $@

$(VENV)/installed-dev: $(VENV)/installed
	$(PIP) --editable '.[dev]' $(foreach plugin,$(PLUGINS),--editable './$(plugin)[dev]')
	touch $@

clean:
	rm -rf $(VENV) results
