# Everything a person types. `make` alone lists the targets.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help run demo test check bench chaos screenshots

help: ## list the targets
	@sed -n 's/^\([a-z.]*\):[^#]*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20

run: $(INSTALLED) ## start the console on 127.0.0.1:CONSOLE_PORT (8000); Ctrl-C stops it
	@$(BIN)/python -m config.supervisor

demo: $(INSTALLED) ## send one command for each way a delivery can end, and check each end
	@$(BIN)/python -m demo

test: $(INSTALLED) ## run the tests, with a throw-away PostgreSQL unless DATABASE_URL names one
	$(BIN)/python -m pytest

bench: $(INSTALLED) ## measure the engine (ARGS="--quick" a look, "--full" a million rows, "--pages" the pages)
	@$(BIN)/python -m tests.benchmarks $(ARGS)

chaos: $(INSTALLED) ## kill and cut everything under load, then count (ARGS="--quick", ARGS="--kills 200")
	@$(BIN)/python -m tests.chaos $(ARGS)

screenshots: $(INSTALLED) ## draw docs/screenshots anew: every page in both themes, on throw-away data
	@$(BIN)/python -m tests.screenshots $(ARGS)

check: $(INSTALLED) ## lint, format, types, import directions, templates, missing migrations
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy .
	$(BIN)/lint-imports
	$(BIN)/djlint templates --lint
	$(BIN)/djlint templates --check
	@# Without a database only the history is not compared, which Django warns about.
	$(BIN)/python -W ignore::RuntimeWarning manage.py makemigrations --check --dry-run

.venv: $(INSTALLED) ## install the pinned versions into .venv (PYTHON=python3 chooses the Python)

$(INSTALLED): pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || \
		{ echo "There is no $(PYTHON): install Python 3.11 or newer, or choose one: make PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "$(PYTHON) is older than Python 3.11: choose a newer one: make PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
		{ echo "$(PYTHON) cannot make a virtual environment: install its venv module (Debian: apt-get install python3-venv)"; exit 1; }
	@echo "Installing the pinned versions into $(VENV); this takes a minute the first time."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@
