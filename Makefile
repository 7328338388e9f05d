# The commands of the project. `make` alone lists them.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/
READY := $(VENV)/.ready
BENCH := $(VENV)/.bench
TORCH := $(VENV)/.torch

.DEFAULT_GOAL := help
.PHONY: help demo test torch lint bench suite large paper scale docs clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# One environment with pinned versions serves all targets.
$(READY): requirements.lock pyproject.toml paper/pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(RUN)python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(RUN)python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e . -e paper
	@touch $@

# The rivals of the benchmarks, on top.
$(BENCH): $(READY) requirements-bench.lock
	$(RUN)python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements-bench.lock
	@touch $@

$(TORCH): $(READY) requirements-gpu.lock
	$(RUN)python -m pip install --quiet --disable-pip-version-check -r requirements-gpu.lock
	@touch $@

demo: $(READY) ## learn, compare with rivals and draw pictures, on data that ship with scikit-learn
	$(RUN)python examples/demo.py

test: $(READY) lint ## lint, type-check and test
	$(RUN)python -m pytest -n auto

torch: $(TORCH) ## add Torch, so that the tests of the GPU code run too, on the CPU

lint: $(READY) ## check style and types
	$(RUN)ruff check .
	$(RUN)ruff format --check .
	$(RUN)mypy

bench: $(BENCH) ## run the speed benchmarks and write benchmarks/RESULTS.md
	$(RUN)python -m benchmarks.speed

suite: $(BENCH) ## compare with other classifiers and regressors on the data sets in MBKL_DATA; goes on where it was stopped
	$(RUN)python -m benchmarks.suite
	$(RUN)python -m benchmarks.suite --task regression
	$(RUN)python -m benchmarks.suite --task quantiles

paper: $(BENCH) ## regenerate the tables and figures of the paper from the data in MBKL_DATA
	$(RUN)python -m mbkl_paper.experiments

large: $(BENCH) ## measure accuracy and time at full size beside boosting and forests
	$(RUN)python -m benchmarks.large
	$(RUN)python -m benchmarks.suite --all-rows
	$(RUN)python -m benchmarks.suite --task regression --all-rows

scale: $(BENCH) ## measure codes in files and clusters, and write benchmarks/RESULTS.md
	$(RUN)python -m benchmarks.scale

docs: $(READY) ## build the documentation in docs/_build/html and run every example in it
	$(RUN)python -m pytest -n auto --doctest-glob='*.md' README.md docs
	$(RUN)sphinx-build -W --keep-going -b html docs docs/_build/html

clean: ## remove the environment and everything built
	rm -rf $(VENV) build dist demo docs/_build docs/auto_examples docs/api/generated docs/api/examples .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
