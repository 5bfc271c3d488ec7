# Everything sets itself up in a private .venv; nothing but python3 (3.11 or newer) and make is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
ARGS ?=
# Tests start hundreds of processes; none should compile again what the one before it did.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help check test test-kafka test-long docs demo sim break attack bench lock clean

help:
	@echo "make check      ruff, mypy --strict, architecture              1 min"
	@echo "make test       every test but the two below                  10 min"
	@echo "make test-kafka Apache Kafka 4.1.1 as oracle (Java, Maven)    10 min"
	@echo "make test-long  long scenarios, seeds, fuzzers: 10 min each    4 h"
	@echo "make docs       the generated parts of docs/protocol: diagrams, scripts"
	@echo "make demo       a cluster, a client, two kill -9, a verdict    3 min"
	@echo "make sim        the simulator, until stopped"
	@echo "make break      what breaks without each safeguard: SAFEGUARD=, OUT=break.html"
	@echo "make attack     hostile input to a cluster, and what its clients notice: ARGS=--list"
	@echo "make bench      all benchmarks"
	@echo "make lock       renew constraints.txt, the versions that make installs"

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "$(PYTHON) is older than 3.11: set PYTHON, as in make PYTHON=python3.12"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt \
		-e '.[spark,dev]'
	@touch $@

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -q tests/test_architecture.py

# Real processes wait more than they work: two files of them at once, each with its own cluster or Spark.
APART := clients or spark

test: $(STAMP)
ifeq ($(strip $(ARGS)),)
	$(BIN)/pytest -q -n 2 -m "not ($(APART) or kafka or long)"
	$(BIN)/pytest -q -n 2 --dist loadfile -m "($(APART)) and not (kafka or long)"
else
	$(BIN)/pytest -q $(ARGS)
endif

# Not of the installation: the jars of another project, fetched only to be compared with.
QUORATE_KAFKA_LIBS ?= .kafka/libs

$(QUORATE_KAFKA_LIBS):
	mvn --quiet --file tests/kafka/pom.xml dependency:copy-dependencies \
		-DoutputDirectory="$(abspath $(QUORATE_KAFKA_LIBS))"

test-kafka: $(STAMP) | $(QUORATE_KAFKA_LIBS)
	QUORATE_KAFKA_LIBS="$(QUORATE_KAFKA_LIBS)" $(BIN)/pytest -q -m "kafka and not long" $(ARGS)

test-long: $(STAMP)
	$(BIN)/pytest -q -m "long and not kafka" --timeout 2400 $(ARGS)

docs: $(STAMP)
	@$(BIN)/python -m tests.docs

demo: $(STAMP)
	@$(BIN)/quorate demo $(ARGS)

sim: $(STAMP)
	$(BIN)/python -m tests.sim $(ARGS)

SAFEGUARD ?=
OUT ?= break.html

break: $(STAMP)
	@$(BIN)/python -m tests.sim.ablations $(if $(SAFEGUARD),$(SAFEGUARD) $(OUT))

attack: $(STAMP)
	@$(BIN)/python -m tests.attacks $(ARGS)

bench: $(STAMP)
	@$(BIN)/python -m benchmarks $(ARGS)

# The versions that `make` installs. Users of the package get the ranges of pyproject.toml.
lock: $(STAMP)
	$(BIN)/python -m pip install -qq --disable-pip-version-check uv
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --no-annotate \
		--no-header --extra spark --extra dev --output-file constraints.txt pyproject.toml

clean:
	rm -rf $(VENV) build dist *.egg-info
