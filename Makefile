# Each target sets up a private .venv. It needs nothing but python3 (3.11 or newer) and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DOCS_STAMP := $(VENV)/.installed-docs
ARGS ?=
# pip shows its progress on a terminal only.
QUIET := $(if $(MAKE_TERMOUT),,-qq)
# Tests start hundreds of processes, which must not each compile the same modules again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help check test test-tools test-kafka test-long long-virtual-time long-processes long-examples docs demo sim detect break attack bench lock clean

help:
	@echo "make check      ruff, mypy --strict, architecture              1 min"
	@echo "make test       run all tests except those of the next three targets   8 min"
	@echo "make test-tools run the tests with a browser, promtool and linters      3 min"
	@echo "make test-kafka run the tests with Apache Kafka 4.1.1 (Java, Maven)    10 min"
	@echo "make test-old-kafka    compare with Kafka 3.3.2 and 3.6.2 (Java, Maven)   2 min"
	@echo "make test-long  run the long tests: scenarios, seeds, fuzzers            6 h"
	@echo "make docs       write the generated pages, build the documentation site in build/site"
	@echo "make demo       run a cluster and a client, kill two nodes, compare    3 min"
	@echo "make sim        run the simulation until it is stopped"
	@echo "make detect     count the random seeds until each removed safeguard is found"
	@echo "make break      remove each safeguard, show what breaks: SAFEGUARD=, OUT=break.html"
	@echo "make attack     attack a cluster, and check its clients: ARGS=--list"
	@echo "make bench      run all benchmarks"
	@echo "make lock       renew constraints.txt, the versions that make installs"
	@echo "make clean      remove the .venv and the built files"

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "$(PYTHON) is older than 3.11: set PYTHON, as in make PYTHON=python3.12"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing Quorate with Spark and the tools of its tests into $(VENV) (some minutes at first)"
	@$(BIN)/python -m pip install $(QUIET) --disable-pip-version-check -c constraints.txt \
		-e '.[spark,dev]'
	@touch $@

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -q tests/test_architecture.py

# The tests of a file share clusters, so one process runs all of them, in their order.
# Real processes mostly wait. Therefore three files of them run at the same time, each with its own
# cluster or Spark. They begin in the order of `tests/conftest.py`, the longest first.
APART := clients or spark

test: $(STAMP)
ifeq ($(strip $(ARGS)),)
	$(BIN)/pytest -q -n 2 --dist loadfile --no-loadscope-reorder \
		-m "not ($(APART) or kafka or long or tools)"
	$(BIN)/pytest -q -n 3 --dist loadfile --no-loadscope-reorder \
		-m "($(APART)) and not (kafka or long or tools)"
else
	$(BIN)/pytest -q $(ARGS)
endif

# Chromium, promtool, hadolint and the like are not a part of the installation. A test whose program
# is missing is skipped, with its reason.
test-tools: $(STAMP)
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/pytest -q -rs -m "tools and not long" $(ARGS)

# The jars of Apache Kafka are not a part of the installation. The tests compare Quorate with them.
QUORATE_KAFKA_LIBS ?= .kafka/libs

$(QUORATE_KAFKA_LIBS):
	mvn --quiet --file tests/kafka/pom.xml dependency:copy-dependencies \
		-DoutputDirectory="$(abspath $(QUORATE_KAFKA_LIBS))"

test-kafka: $(STAMP) | $(QUORATE_KAFKA_LIBS)
	QUORATE_KAFKA_LIBS="$(QUORATE_KAFKA_LIBS)" $(BIN)/pytest -q -m "kafka and not long" $(ARGS)

# Older releases whose metadata logs are read. `make test-kafka` does not fetch them.
OLD_KAFKA := 3.3.2 3.6.2

.kafka/%:
	mvn --quiet --file tests/kafka/pom.xml dependency:copy-dependencies -Dkafka.version="$*" \
		-DoutputDirectory="$(abspath $@)"

test-old-kafka: $(STAMP) | $(OLD_KAFKA:%=.kafka/%)
	$(BIN)/pytest -q -m kafka $(ARGS) tests/kafka/test_old_versions.py

# With the jars that `make test-kafka` fetched, also the long tests that need them. The tests in
# virtual time need one core and no clock, so they run beside those with real processes.
VIRTUAL_TIME := tests/fuzz tests/ports tests/sim
LONG = QUORATE_KAFKA_LIBS="$(QUORATE_KAFKA_LIBS)" $(BIN)/pytest -q --timeout 2400 \
	-m "long$(if $(wildcard $(QUORATE_KAFKA_LIBS)),, and not kafka)"

test-long: $(STAMP)
ifeq ($(strip $(ARGS)),)
	@$(MAKE) --no-print-directory --keep-going --jobs 2 long-virtual-time long-processes \
		long-examples
else
	$(LONG) $(ARGS)
endif

long-virtual-time: $(STAMP)
	$(LONG) $(VIRTUAL_TIME)

long-processes: $(STAMP)
	$(LONG) $(addprefix --ignore ,$(VIRTUAL_TIME))

# Hypothesis draws the same examples in each `make test`. Here it searches for others.
long-examples: $(STAMP)
	for run in 1 2 3 4 5 6 7 8 9 10; do \
		$(BIN)/pytest -q -m "hypothesis and not ($(APART) or kafka or long or tools)" \
			--hypothesis-profile search || exit 1; \
	done

$(DOCS_STAMP): $(STAMP)
	@echo "installing the tools of the documentation site into $(VENV)"
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[docs]'
	@touch $@

docs: $(DOCS_STAMP)
	@$(BIN)/python -m tests.docs
	@$(BIN)/python -m tests.docs.site

demo: $(STAMP)
	@$(BIN)/quorate demo $(ARGS)

sim: $(STAMP)
	$(BIN)/python -m tests.sim $(ARGS)

detect: $(STAMP)
	@$(BIN)/python -m tests.sim.detect $(SAFEGUARD)

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
		--no-header --extra spark --extra dev --extra docs --output-file constraints.txt pyproject.toml

clean:
	rm -rf $(VENV) build dist *.egg-info
