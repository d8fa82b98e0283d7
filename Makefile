# One door: the same commands on a laptop and in CI. Each target sets up what it needs.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help setup check check-wire test test-cluster test-hostile test-spark test-release bench bench-jobs bench-spark bench-peers bench-guard bench-growth bench-connector demo demo-reconcile demo-pipeline
.PHONY: test-sdks bench-sdks conformance
.PHONY: proto release-contract docs fmt pins clean console-pictures

PY := .venv/bin/python
STAMP := .venv/.setup-done
BROKER_STAMP := .venv/.setup-broker
SETUP_INPUTS := pyproject.toml packages/fila-client/pyproject.toml constraints.txt scripts/setup

# At least two workers, so that tests which cannot share a machine show it; at most eight, since many tests start a server.
WORKERS ?= $(shell n=$$(nproc 2>/dev/null || echo 2); echo $$(( n < 2 ? 2 : n > 8 ? 8 : n )))
# What `make test` runs, for example: make test TESTS="tests/unit -k config"
TESTS ?= tests

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## Create .venv with pinned dependencies
	@:

$(STAMP): $(SETUP_INPUTS)
	@scripts/setup

$(BROKER_STAMP): $(SETUP_INPUTS)
	@scripts/setup broker

check: setup ## Lint, format, types, import direction, generated code
	@scripts/check

check-wire: setup ## HTTP/2 conformance: h2spec against a real server (needs Go)
	@$(PY) -m scripts.check_wire

# Attacks that take long are left to test-hostile, packages to test-release. Tests on Spark share one session and so one
# process; those that start further ones are left to test-spark.
test: setup ## Run the tests in parallel (TESTS="path -k name" for some)
ifeq ($(TESTS),tests)
	@$(PY) -m pytest -q -n $(WORKERS) --dist worksteal tests --ignore tests/spark --ignore tests/hostile --ignore tests/release --ignore tests/cluster
	@$(PY) -m pytest -q -n $(WORKERS) -m "not slow" tests/hostile
	@$(PY) -m pytest -q -m "not slow" tests/spark
else
	@$(PY) -m pytest -q -n $(WORKERS) --dist worksteal $(TESTS)
endif

# One at a time: each attack has the machine to itself, and its figures mean something.
test-hostile: setup ## Attack real servers: also the long attacks, with what each cost
	@$(PY) -m pytest -q $(if $(filter tests,$(TESTS)),tests/hostile,$(TESTS))

# One at a time: three nodes of an engine want the machine for themselves.
test-cluster: setup ## Kill and stop nodes of the engines that keep a replicated log
	@$(PY) -m pytest -q -s $(if $(filter tests,$(TESTS)),tests/cluster,$(TESTS))

test-spark: setup ## Run all tests on Spark: also crashes, spark-submit and executors of their own
	@$(PY) -m pytest -q tests/spark

# One at a time: the first builds what the others use. FILA_DIST=folder tests what was built there.
test-release: setup ## Build everything that a release has, and install and run it in roots without a Python (as root)
	@$(PY) -m pytest -q $(if $(filter tests,$(TESTS)),tests/release,$(TESTS))

test-sdks: setup ## Check and test the SDKs of all languages: setup, checks, tests, examples, quick conformance scenarios
	@$(PY) -m sdks.conformance.languages

test-sdk-%: setup
	@$(PY) -m sdks.conformance.languages $*

conformance: setup ## Run the conformance suite with the drivers that are built (ARGS="--sdk go --fast")
	@$(PY) -m sdks.conformance $(ARGS)

bench: setup ## Run the benchmarks
	@$(PY) -m benchmarks $(ARGS)

bench-jobs: setup ## Jobs beside Celery, RQ, Huey and Dramatiq (installs them first)
	@$(PY) -m pip install --quiet --constraint constraints.txt --no-build-isolation --editable '.[bench]'
	@$(PY) -m benchmarks.jobs $(ARGS)

bench-peers: setup ## Fila beside Redis Streams, RabbitMQ, NATS and beanstalkd (installs them first)
	@scripts/peers
	@$(PY) -m benchmarks.peers $(ARGS)

bench-sdks: setup ## The SDKs of all languages beside the Python SDK (ARGS=--write for the page)
	@for sdk in go javascript java ruby; do $(MAKE) --no-print-directory -C sdks/$$sdk setup driver >/dev/null || exit; done
	@$(MAKE) --no-print-directory -C sdks/rust setup driver-release >/dev/null
	@RUST_DRIVER_BUILD=$(CURDIR)/sdks/rust/target/release $(PY) -m sdks.conformance --bench $(ARGS)

bench-growth: setup ## Whether the cost of a message stays flat as everything grows
	@$(PY) -m pip install --quiet --constraint constraints.txt --no-build-isolation --editable '.[bench]'
	@$(PY) -m benchmarks.growth $(ARGS)

bench-guard: setup ## Fails when a hot path has become clearly slower; part of a release
	@$(PY) -m benchmarks.guard $(ARGS)

demo: $(BROKER_STAMP) ## Fair delivery with a crash in the middle, on a real server
	@$(PY) -m examples.demo.run $(ARGS)

demo-reconcile: setup ## Reconciliation with failing platforms, cheating affiliates and one that floods
	@$(PY) -m examples.reconcile.run $(ARGS)

demo-pipeline: setup ## Fairness and reconciliation on Spark, on a real server's journal and made-up reports
	@$(PY) -m examples.pipeline.run $(ARGS)

bench-spark: setup ## Bulk reconciliation of 5 million reports beside the bare join
	@$(PY) -m benchmarks.spark --write $(ARGS)

bench-connector: setup ## Spark's source and sink on a real server beside the plain SDK
	@$(PY) -m benchmarks.connector $(ARGS)

docs: setup ## Build the documentation site into build/site; a broken link is an error
	@$(PY) -m website build

console-pictures: setup ## Take the pictures of docs/console.md (needs Chromium)
	@$(PY) scripts/console_pictures.py

proto: setup ## Generate the code of proto/ for all SDKs
	@scripts/proto

release-contract: setup ## Make the present contract the one that later changes are compared with
	@scripts/contract --release

fmt: setup ## Format the code and fix what can be fixed
	@.venv/bin/ruff check --fix --quiet . || true
	@.venv/bin/ruff format --quiet .

pins: ## Refresh constraints.txt with the newest versions
	@scripts/pins

clean: ## Remove everything that can be made again
	@rm -rf .venv build dist packages/*/build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis src/*.egg-info packages/*/*.egg-info
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
