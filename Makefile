# Needs only make and Python 3.11 or newer. Another Python: `make test PYTHON=python3.13`.

PYTHON ?= python3
VENV ?= .venv
PYTEST_ARGS ?= -m "not slow" --numprocesses auto --maxprocesses 4

# Touched when an installation is complete, and out of date when pyproject.toml changes.
INSTALLED := $(VENV)/.installed
INSTALLED_DEV := $(VENV)/.installed-dev

.DEFAULT_GOAL := help
.PHONY: help demo test check lint style types layers format reprint reproduce reference clean

help:  ## print this
	@sed -n 's/^\([a-z]*\):.*## /\1@/p' Makefile | while IFS=@ read -r target text; do \
		printf '  make %-9s %s\n' "$$target" "$$text"; done

demo: $(INSTALLED)  ## find the best layouts of DeepSeek V4 Pro on 8 B300, decode at 64K (installs first)
	@$(VENV)/bin/rooflang optimize deepseek-v4-pro --hardware b300 --gpus 8 --stage decode --context 64k

test: $(INSTALLED_DEV)  ## run the tests, except the slow ones (installs first)
	@$(VENV)/bin/python -m pytest $(PYTEST_ARGS)

check:  ## all that CI does, in fresh environments: lint, wheel, every test, Python 3.13 (minutes)
	@PYTHON='$(PYTHON)' .ci/run

lint: style types layers  ## ruff, mypy, and the layers contract

style: $(INSTALLED_DEV)
	@$(VENV)/bin/python -m ruff check .
	@$(VENV)/bin/python -m ruff format --check .

types: $(INSTALLED_DEV)
	@$(VENV)/bin/python -m mypy rooflang

layers: $(INSTALLED_DEV)
	@$(VENV)/bin/lint-imports --no-logo

format: $(INSTALLED_DEV)  ## let ruff rewrite what it can
	@$(VENV)/bin/python -m ruff check --fix .
	@$(VENV)/bin/python -m ruff format .

reprint: $(INSTALLED_DEV)  ## run the commands that README.md and docs/ show, and write what they print there (minutes)
	@$(VENV)/bin/python -m tests.docs.reprint $(PAGES)

reproduce: $(INSTALLED_DEV)  ## the paper's evaluation into build/reproduced, and what docs and tests keep of it (half an hour)
	@$(VENV)/bin/python docs/reproduction/refresh.py build/reproduced

reference: $(INSTALLED_DEV)  ## write the reference of rules, operators and the Python API into build/reference
	@$(VENV)/bin/python -m pip install --quiet --quiet --editable '.[docs]'
	@$(VENV)/bin/python docs/reference.py build/reference

clean:  ## remove the environment, caches and build outputs
	@rm -rf .venv build dist rooflang.egg-info
	@rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# An environment that could not be completed is removed, lest the next run take it for a whole one.
$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit("This is Python %d.%d." % v[:2] if v < (3, 11) else 0)' \
		|| { echo "RoofLang needs Python 3.11 or newer; name one: make PYTHON=/path/to/python3.11"; exit 1; } >&2
	@$(PYTHON) -m venv --clear $(VENV) || { rm -rf $(VENV); \
		echo "'$(PYTHON) -m venv' failed; on Debian and Ubuntu: apt-get install python3-venv"; exit 1; } >&2

$(INSTALLED): pyproject.toml | $(VENV)/bin/python
	@echo "Installing RoofLang into $(VENV); the first time this takes a minute."
	@$(VENV)/bin/python -m pip install --quiet --quiet --editable .
	@touch $@

$(INSTALLED_DEV): pyproject.toml | $(VENV)/bin/python
	@echo "Installing RoofLang and its development tools into $(VENV); the first time this takes a minute."
	@$(VENV)/bin/python -m pip install --quiet --quiet --editable '.[dev]'
	@touch $(INSTALLED) $@
