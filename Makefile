# Everything lives in this folder: .tools (uv, the CDK CLI), .venv (Python and Node), .local (the local cloud). Nothing is global.
PYTHON ?= python3
STAGE ?= dev
VENV := .venv/bin
UV := .tools/bin/uv
NODE_BIN := $(CURDIR)/.tools/node/bin
export PATH := $(CURDIR)/$(VENV):$(NODE_BIN):$(CURDIR)/.tools/node_modules/.bin:$(PATH)
export PYTHONWARNINGS ?= error::DeprecationWarning:functions

.DEFAULT_GOAL := help
.PHONY: help setup check format test test-fast demo up down bench verify simulate deploy destroy clean pins

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  %-10s %s\n", $$1, $$2}'

setup: .venv/.installed .tools/.installed ## install everything the project needs, inside this folder

.tools/bin/uv:
	@$(PYTHON) -c 'import sys; sys.exit("Tickwheel needs Python 3.11 or newer, found " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	@echo "setting up: uv"
	@$(PYTHON) -m venv .tools
	@.tools/bin/python -m pip install --quiet --disable-pip-version-check uv==0.13.8

.venv/.installed: .tools/bin/uv requirements.txt pyproject.toml
	@echo "setting up: Python packages"
	@test -x .venv/bin/python || $(UV) venv --quiet --python $(PYTHON) .venv
	@$(UV) pip sync --quiet --python .venv/bin/python requirements.txt
	@$(UV) pip install --quiet --python .venv/bin/python --no-deps --editable .
	@touch $@

.tools/.installed: .venv/.installed scripts/install_tools.py
	@.venv/bin/python scripts/install_tools.py
	@touch $@

check: setup ## what CI checks before the tests: format, lint, types, import contracts, synth, cfn-lint, cdk-nag
	@ruff format --check .
	@ruff check .
	@lint-imports --no-logo 2>/dev/null || lint-imports
	@basedpyright --warnings
	@python scripts/check_templates.py

format: setup ## format and fix what can be fixed
	@ruff format .
	@ruff check --fix-only --quiet .

test: setup ## every test, including the deployment to the local cloud
	@pytest -n 2 --dist loadgroup

test-fast: setup ## the tests that need no cloud: domain, fakes, state machine
	@pytest -n 2 tests/unit tests/properties

demo: setup ## deploy to a local cloud and fire 1,335 real jobs for 66 tenants
	@python -m tickwheel.demo

up: setup ## start the local cloud and deploy to it; it stays until `make down`
	@tickwheel local up

down: setup ## stop the local cloud
	@tickwheel local down

bench: setup ## measure units, next fires, promotion and lag, and hold them to the budgets
	@python -m bench

verify: setup ## 10,000 jobs and their schedules under faults, on stores in memory: every promise is kept, or exit code 1
	@tickwheel verify

simulate: setup ## every scenario of load and trouble on virtual time, against its target; a report in .build/simulation
	@tickwheel simulate

deploy: setup ## deploy to AWS: make deploy STAGE=dev
	@cdk deploy --all --context stage=$(STAGE)

destroy: setup ## remove the scheduler from AWS; the data stays
	@cdk destroy "$(STAGE)/Scheduler" --context stage=$(STAGE)

pins: .tools/bin/uv ## resolve the pins again after a change of pyproject.toml or functions/requirements.in
	@$(UV) pip compile --quiet --no-header --no-annotate --group dev pyproject.toml -o requirements.txt
	@$(UV) pip compile --quiet --no-header --no-annotate --python-version 3.13 --python-platform aarch64-manylinux_2_28 \
		-c requirements.txt functions/requirements.in -o functions/requirements.txt

clean: ## remove everything that setup and the local cloud made
	@rm -rf .venv .tools .local .build cdk.out node_modules
