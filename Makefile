# webmon: set up, try, test. `make` alone lists the targets.

VENV ?= .venv
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { command -v $$p; break; }; done)
RUN := $(VENV)/bin

comma := ,

.DEFAULT_GOAL := help
.PHONY: help demo test lint format bench bench-page bench-cli bench-history clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | sed -E 's/:.*## /\t/' | \
		awk -F'\t' '{ printf "  make %-10s %s\n", $$1, $$2 }'

demo: $(VENV)/.installed ## a demo cluster, fetched, rendered and served on localhost; Ctrl-C ends it
	@$(RUN)/webmon demo $(ARGS)

# The pure modules: every branch of them is run by the suite.
PURE := webmon/model.py,webmon/errors.py,webmon/availability.py,webmon/usage.py
PURE := $(PURE),$(subst $() ,$(comma),$(patsubst %,webmon/publish/%.py,addresses boxes cell chart exposition lab metrics overview people requests sheet states tables text trends week words))
PURE := $(PURE),webmon/clean.py,webmon/columns.py
PURE := $(PURE),webmon/pick/choose.py,webmon/pick/visible.py
PURE := $(PURE),$(subst $() ,$(comma),$(patsubst %,webmon/collect/%.py,assemble cells claim_rows diagnose gpu_rows \
	owners parse privacy probe process_rows sections))

test: $(VENV)/.installed-dev system-packages ## the whole suite, with real sshd, nginx and Chromium
	@$(RUN)/pytest $(or $(ARGS),-n 2 --dist loadfile --cov --cov-report=)
	@$(if $(ARGS),,$(RUN)/coverage report --show-missing --fail-under=100 --include="$(PURE)")

lint: $(VENV)/.installed-dev ## ruff, mypy, import-linter
	@$(RUN)/ruff format --check .
	@$(RUN)/ruff check .
	@$(RUN)/mypy
	@$(RUN)/lint-imports

format: $(VENV)/.installed-dev ## let ruff put the code in order
	@$(RUN)/ruff format .
	@$(RUN)/ruff check --fix .

bench: $(VENV)/.installed-dev system-packages ## speed, as a ratio to ssh in the same run
	@$(RUN)/python benchmarks/fetch.py $(ARGS)

bench-page: $(VENV)/.installed-dev system-packages ## speed and size of the pages with 8,000 GPUs
	@$(RUN)/python benchmarks/page.py $(ARGS)

bench-cli: $(VENV)/.installed-dev ## start-up of list and select, beside gpustat, nvgpu and gpuselect
	@$(RUN)/python benchmarks/cli.py $(ARGS)

bench-history: $(VENV)/.installed-dev ## rendering with 90 days of history, its memory and its room on the disk
	@$(RUN)/python benchmarks/history.py $(ARGS)

clean: ## remove the environment and every cache
	rm -rf $(VENV) .cache .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist

.PHONY: system-packages
system-packages:
	@sh tests/system-packages.sh

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "webmon needs Python 3.11 or newer: install it, or say make PYTHON=/path/to/python3" >&2; exit 1; }
	@sh tests/make-venv.sh "$(PYTHON)" "$(VENV)"

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	@$(RUN)/python -m pip install --quiet --editable .
	@$(RUN)/python -m compileall -q webmon
	@touch $@

# axe-playwright-python is here for the axe.min.js in it, which the tests of the pages run; its dependency
# playwright, a driver of browsers, is left out: nothing here needs it.
$(VENV)/.installed-dev: pyproject.toml Makefile | $(VENV)/bin/python
	@$(RUN)/python -m pip install --quiet --editable '.[dev]'
	@$(RUN)/python -m pip install --quiet --no-deps 'axe-playwright-python==0.1.8'
	@$(RUN)/python -m compileall -q webmon
	@touch $@ $(VENV)/.installed
