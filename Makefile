# Everything runs in an environment of the project's own, .venv, made on first use by uv where it
# is there and by venv and pip otherwise. PYTHON names the interpreter it is made from.

PYTHON ?= python3
WORKERS ?= 2
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help demo test lint bench clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

demo: $(INSTALLED) ## stream a public data set through graftd and show what it found
	$(BIN)/python -m stream.demo

test: lint ## lint, then every test but the benchmarks (WORKERS=2 processes)
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile

lint: $(INSTALLED) ## style, types and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

bench: $(INSTALLED) ## measure speed and accuracy
	$(BIN)/python -m tests.benchmarks

clean: ## remove the environment and every cache
	rm -rf $(VENV) build *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find clustering eval state stream tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(INSTALLED): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "graftd needs Python 3.11 or newer; say which with: make PYTHON=/path/to/python3.11"; exit 1; }
	if command -v uv >/dev/null; then \
	  uv venv --quiet --clear --python "$(PYTHON)" $(VENV) && \
	  uv pip install --quiet --python $(BIN)/python --editable '.[dev]'; \
	else \
	  $(PYTHON) -m venv --clear $(VENV) && \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'; \
	fi
	@touch $@
