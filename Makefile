# Everything lives in this folder: .tools (uv, the CDK CLI), .venv (Python and Node), .local (the local cloud). Nothing is global.
PYTHON ?= python3
STAGE ?= dev
VENV := .venv/bin
# With the index and the certificates that are set for pip.
UV := .tools/bin/python infra/package_index.py .tools/bin/uv
COMPILE := $(UV) pip compile --quiet --no-header --no-annotate --generate-hashes --no-emit-index-url --no-emit-find-links
NODE_BIN := $(CURDIR)/.tools/node/bin
NPM := node $(NODE_BIN)/../lib/node_modules/npm/bin/npm-cli.js
export PATH := $(CURDIR)/$(VENV):$(NODE_BIN):$(CURDIR)/.tools/node_modules/.bin:$(PATH)
export PYTHONWARNINGS ?= error::DeprecationWarning:functions

.DEFAULT_GOAL := help
.PHONY: help setup check format test test-all test-lambda model calls test-fast docs demo up down bench verify simulate soak fuzz bootstrap deploy smoke destroy clean dist release pins sbom audit

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  %-10s %s\n", $$1, $$2}'

setup: .venv/.installed .tools/.installed ## install everything the project needs, inside this folder

.tools/bin/uv:
	@$(PYTHON) -c 'import sys; sys.exit("Tickwheel needs Python 3.11 or newer, found " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	@echo "setting up: uv"
	@$(PYTHON) -m venv .tools
	@.tools/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r scripts/uv.txt

.venv/.installed: .tools/bin/uv requirements.txt pyproject.toml
	@echo "setting up: Python packages"
	@test -x .venv/bin/python || $(UV) venv --quiet --python $(PYTHON) .venv
	@$(UV) pip sync --quiet --require-hashes --python .venv/bin/python requirements.txt
	@$(UV) pip install --quiet --python .venv/bin/python --no-build-isolation --no-deps --editable .
	@touch $@

.tools/.installed: .venv/.installed scripts/install_tools.py scripts/npm/package-lock.json
	@.venv/bin/python scripts/install_tools.py
	@touch $@

check: setup ## what CI checks before the tests: format, lint, types, import contracts, synth, cfn-lint, cdk-nag, grants, licences, vulnerabilities
	@ruff format --check .
	@ruff check .
	@lint-imports --no-logo 2>/dev/null || lint-imports
	@basedpyright --warnings
	@python scripts/check_templates.py
	@python scripts/licences.py --check
	@python scripts/vulnerabilities.py

format: setup ## format and fix what can be fixed
	@python -m scripts.client_values
	@python -m scripts.sync_client
	@python -m scripts.command_index
	@ruff format .
	@ruff check --fix-only --quiet .

test: setup ## the tests, without those marked `long`
	@pytest -n 2 --dist loadgroup -m "not long"

test-all: setup ## every test, including the deployment to the local cloud: what CI runs
	@pytest -n 2 --dist loadgroup

test-lambda: setup ## unit and contract tests on Python 3.13, which Lambda runs, where this machine has it
	@found="$$($(UV) python find --no-project 3.13 2>/dev/null)" || { echo "there is no Python 3.13 here: its tests were not run"; exit 0; }; \
	$(UV) venv --quiet --allow-existing --python "$$found" .tools/lambda && \
	$(UV) pip sync --quiet --require-hashes --python .tools/lambda/bin/python requirements.txt && \
	$(UV) pip install --quiet --python .tools/lambda/bin/python --no-build-isolation --no-deps --editable . && \
	.tools/lambda/bin/python -m pytest -n 2 tests/unit tests/contract

model: setup ## the formal models of specs/, checked by Spin where it is installed: every state within small bounds, and every mutant found
	@python -m scripts.model

calls: setup ## hear again what each function asks of AWS, and keep it in scripts/least_privilege/calls.json
	@pytest -n 2 --dist loadgroup tests/integration tests/e2e --write-calls

test-fast: setup ## the tests that need no cloud: domain, fakes, state machine
	@pytest -n 2 -m "not long" tests/unit tests/properties

docs: setup ## the site of the docs, in .build/site, with every link checked
	@python -m scripts.docs_site

demo: setup ## deploy to a local cloud and fire 1,335 real jobs for 66 tenants
	@tickwheel demo

up: setup ## start the local cloud and deploy to it; it stays until `make down`
	@tickwheel local up

down: setup ## stop the local cloud
	@tickwheel local down

bench: setup ## measure units, next fires, promotion, logs, metrics, cold starts, lag and recovery, and hold them to the budgets
	@python -m bench

verify: setup ## 10,000 jobs and their schedules under faults, on stores in memory: every promise is kept, or exit code 1
	@tickwheel verify

simulate: setup ## every scenario of load and trouble on virtual time, against its target; a report in .build/simulation
	@tickwheel simulate

soak: setup ## 30 minutes of load, schedules and faults on a local cloud: promises kept and curves flat, or exit code 1
	@python -m soak

fuzz: setup ## a million inputs for everything that reads what others wrote: no crash and no hang, or exit code 1
	@python -m fuzzing

bootstrap: setup ## prepare an AWS account and region for deployments, once
	@tickwheel doctor --stage $(STAGE) --where
	@cdk bootstrap --context stage=$(STAGE)

deploy: setup ## deploy to AWS: make deploy STAGE=dev, with HANDLERS=./jobs for handlers of your own
	@tickwheel doctor --stage $(STAGE)
	@UV_PYTHON_INSTALL_DIR=.tools/pythons $(UV) python find --no-project 3.13 >/dev/null 2>&1 || \
		UV_PYTHON_INSTALL_DIR=.tools/pythons $(UV) python install --no-bin --quiet 3.13 || true
	@cdk deploy --all --context stage=$(STAGE) $(if $(HANDLERS),--context 'handlers=$(HANDLERS)')

smoke: setup ## prove on its account that a deployed stage keeps its promises: make smoke STAGE=dev; says first how long and how dear
	@python -m smoke --stage $(STAGE)

destroy: setup ## remove the scheduler from AWS; the data stays: tables, keys, and the buckets of payloads, files of jobs and the audit trail. Refuses while jobs are in its queues (FORCE=1)
	@python -m scripts.refuse_to_strand $(STAGE)
	@cdk destroy "$(STAGE)/Scheduler" --context stage=$(STAGE)

dist: setup ## the wheels of the client and of what it deploys, in dist/, checked as an index checks them
	@python -m scripts.distribution

release: setup ## a version, its changelog, wheels, bills of materials and tag: make release VERSION=0.2.0; publishes nothing
	@python -m scripts.distribution.release $(VERSION)

pins: .tools/bin/uv ## resolve the pins again after a change of pyproject.toml, functions/requirements.in or scripts/uv.in
	@$(COMPILE) scripts/uv.in -o scripts/uv.txt
	@$(COMPILE) --group dev --group docs pyproject.toml -o requirements.txt
	@$(COMPILE) --python-version 3.13 --python-platform aarch64-manylinux_2_28 \
		-c requirements.txt functions/requirements.in -o functions/requirements.txt
	@cd scripts/npm && $(NPM) install --package-lock-only --omit-lockfile-registry-resolved --silent

sbom: setup ## the software bills of materials (CycloneDX), in .build/sbom: of Lambda, of the development tools, of npm
	@mkdir -p .build/sbom
	@cyclonedx-py requirements --output-reproducible -o .build/sbom/lambda.cdx.json functions/requirements.txt
	@cyclonedx-py environment --output-reproducible --pyproject pyproject.toml -o .build/sbom/development.cdx.json .venv/bin/python
	@cd scripts/npm && $(NPM) sbom --loglevel=error --sbom-format cyclonedx --package-lock-only > $(CURDIR)/.build/sbom/npm.cdx.json
	@ls .build/sbom/*.cdx.json

audit: setup ## ask for known vulnerabilities of every pin of Python and npm, with more patience than `make check`
	@python scripts/vulnerabilities.py --patient

clean: ## remove everything that setup and the local cloud made
	@rm -rf .venv .tools .local .build cdk.out node_modules
