# Two commands do everything: `make demo` runs the loop, `make test` proves it. Both set up what they need, once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ARGS ?=

.PHONY: demo test check format clean

demo: $(VENV)/.demo
	$(BIN)/graft demo $(ARGS)

test: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 --dist loadfile $(ARGS)

check: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The hatch for a half-made environment: a stamp is only written after its installation succeeded.
$(BIN)/pip:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml constraints.txt | $(BIN)/pip
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[demo]'
	touch $@

$(VENV)/.test: pyproject.toml constraints.txt | $(BIN)/pip
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test]'
	PIP=$(BIN)/pip tests/setup
	touch $@

clean:
	rm -rf $(VENV) .graft .mypy_cache .ruff_cache .pytest_cache .hypothesis
