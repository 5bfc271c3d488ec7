# Everything sets itself up in a private .venv; nothing but python3 (3.11 or newer) and make is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: check test demo clean

$(STAMP): pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[spark,dev]'
	@touch $@

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -q tests/test_architecture.py

test: $(STAMP)
	$(BIN)/pytest -q

clean:
	rm -rf $(VENV) build dist *.egg-info
