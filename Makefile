# Everything runs in .venv, which is made from the hash-locked requirements on first use and again when they change.

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
LOCK := --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --quiet pyproject.toml
CHECK_VERSION := 'import sys; sys.version_info >= (3, 11) or sys.exit( \
	sys.executable + " is Python %d.%d, 3.11 or newer is needed: make PYTHON=/path/to/python3.11" % sys.version_info[:2])'

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test unit controlplane fidelity oracle soak faults kills bench lint audit build lock

help: ## Print this list
	@echo "make TARGET [PYTHON=python3.11 or newer]"
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  \1: \2/p' $(MAKEFILE_LIST)

demo: $(INSTALLED) ## Play a gang's life on a real control plane, step by step (the first time it is built: about 5 minutes)
	@$(BIN)/python -m e2e demo

test: lint unit controlplane ## Check and test everything, the real control plane included

unit: $(INSTALLED) ## Run the tests that need no control plane
	$(BIN)/pytest -m "not controlplane"

controlplane: $(INSTALLED) ## Run the tests on the real control plane
	$(BIN)/pytest -m controlplane

fidelity: $(INSTALLED) ## Compare our model of kube-scheduler's filters with the real one on 20,000 pods (10 minutes)
	@$(BIN)/python -m e2e.fidelity --pairs 20000

oracle: $(INSTALLED) ## Compare the planner with CP-SAT on 188,000 small gangs: whether they fit, and how well they are placed (20 minutes)
	ORACLE_INSTANCES=20000 $(BIN)/pytest -s --timeout 3600 tests/decide/test_packing_oracle.py tests/decide/test_topology_oracle.py tests/decide/test_placement_oracle.py

soak: $(INSTALLED) ## Take 100,000 steps in the world of shared cards, feed 200,000 hostile inputs, and work 30 minutes at mixed load (50 minutes)
	LEDGER_STEPS=100000 $(BIN)/pytest -s --timeout 1800 tests/state/test_card_ledger.py
	FUZZ_INPUTS=200000 $(BIN)/pytest -s --timeout 1800 tests/fuzz/test_inputs.py
	@mkdir -p .cache
	@$(BIN)/python -m e2e.bench soak --minutes 30 --out .cache/soak.json

faults: $(INSTALLED) ## Let 10,000 faults befall 500 gangs on a real control plane, and judge what came of them (half an hour)
	@$(BIN)/python -m e2e.faults --seed $(or $(SEED),1) --gangs 500 --faults 10000

kills: $(INSTALLED) ## Kill each process of a real control plane at each step of a gang's life, and judge what came of it (four hours)
	@$(BIN)/python -m e2e.faults.kills --times 20 --target extender gang-scheduler etcd
	@$(BIN)/python -m e2e.faults.kills --times 5 --target kube-apiserver

bench: $(INSTALLED) ## Measure waiting gangs' cost, time until whole, pods bound a second, whole GPUs kept free, a day's jobs and costs by size (an hour; figures in .cache/)
	@mkdir -p .cache
	@$(BIN)/python -m e2e.bench fragmentation --out .cache/fragmentation.json
	@$(BIN)/python -m e2e.bench packing --out .cache/packing.json
	@$(BIN)/python -m e2e.bench stream --out .cache/stream.json --plot .cache/stream.png
	@$(BIN)/python -m e2e.bench growth --out .cache/growth.json
	@$(BIN)/python -m e2e.bench waiting-load --mode filter hold --out .cache/waiting-load.json
	@$(BIN)/python -m e2e.bench time-to-whole --mode filter hold --out .cache/time-to-whole.json
	@$(BIN)/python -m e2e.bench throughput --out .cache/throughput.json --plot .cache/throughput.png
	@$(BIN)/python -m e2e.bench backlog --out .cache/backlog.json
	@$(BIN)/python -m e2e.bench full-cluster --out .cache/full-cluster.json

lint: $(INSTALLED) ## Check style, types, the direction of imports and the Dockerfile
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports
	$(BIN)/hadolint Dockerfile
	$(BIN)/mypy

audit: $(INSTALLED) ## Look for known vulnerabilities in what is locked, and write the bill of materials (.cache/sbom.cdx.json)
	@$(BIN)/python -m e2e.audit $(AUDIT)

build: $(INSTALLED) ## Build the control plane's binaries, if they are not there yet
	@$(BIN)/python -m e2e build

lock: ## Lock what pyproject.toml asks for, keeping the versions locked now (delete the files first for the newest ones)
	$(PYTHON) -m venv --clear .cache/lock
	.cache/lock/bin/python -m pip install --quiet --disable-pip-version-check uv
	.cache/lock/bin/uv pip compile $(LOCK) --output-file requirements.txt
	.cache/lock/bin/uv pip compile $(LOCK) --group dev --output-file requirements-dev.txt

$(INSTALLED): requirements-dev.txt pyproject.toml
	@$(or $(wildcard $(BIN)/python),$(PYTHON)) -c $(CHECK_VERSION)
	@echo "Installing the locked requirements into .venv"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(BIN)/python -m ensurepip
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@
