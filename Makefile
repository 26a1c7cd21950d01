# The local environment: `make help` lists the targets, STACK chooses the stack (default dev). Nothing here acts on a
# cluster or an account of yours; that is what plain `pulumi` is for.
STACK ?= dev
BASE ?= main
ARGS ?= --help
SEED ?= 1
JOBS ?= 100
KILLS ?= 20
NODES ?= 3
NAME ?=
BREAK ?=
TRACE ?=
HOURS ?=
TIME_SCALE ?=
LIST ?=
CATALOGUES := components.catalogue components.azure.catalogue components.openstack.catalogue
COUNT ?= 100
FILES ?=
STACKS ?=
HTML ?=
PYTHON ?= python3
VENV := .venv
ENVIRONMENT := $(VENV)/.installed
TRAINING := .venv-training
STORE := .venv-store
EMULATOR := $(VENV)/bin/python -m emulator
OPTIONS = --stack $(STACK)
# A test that never ends tells where it stands, and ends the run before whoever waits for all of `make test` gives up. The
# longest take minutes; what takes hours, and what acts on a cloud (CONTRIBUTING.md), has no such end.
TEST := $(VENV)/bin/python -m pytest -o faulthandler_timeout=1200 -o faulthandler_exit_on_timeout=true
# An option for a variable that somebody has set: what runs has defaults of its own.
chosen = $(if $(filter command environment,$(firstword $(origin $(1)))),--$(shell echo $(1) | tr A-Z_ a-z-)='$($(1))')

ifneq (,$(findstring command line,$(origin KUBECONFIG)))
$(error make acts on the local environment alone: for a cluster of your own use plain `pulumi up --stack <name>` (README.md))
endif

# Azure's SDK alone takes seconds to compile: what Python has compiled is kept, also where an image switches that off.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help up preview refresh drift destroy down status env mirror tools build test lint types unit local local-aks local-cpouta local-openshift local-platform local-members local-recovery local-shown bench bench-cluster properties soak training mutants scenario scenarios gameday clean lock settings snapshots requirements review azure openstack dashboards local-long local-older-kueue local-openshift-ai local-mlops

help: ## list the targets, and what they still have to build
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  \1|\2/' | column -t -s '|'
	@if [ -e $(ENVIRONMENT) ]; then $(EMULATOR) unbuilt; else echo '  still to build: all tools, with the first `make up`'; fi

up: $(ENVIRONMENT) ## stand the platform up: build what is missing, start the local cluster, pulumi up, report
	@$(EMULATOR) up $(OPTIONS)

preview: $(ENVIRONMENT) ## show what `make up` would change
	@$(EMULATOR) preview $(OPTIONS)

refresh: $(ENVIRONMENT) ## compare the stack's state with the cluster
	@$(EMULATOR) refresh $(OPTIONS)

drift: $(ENVIRONMENT) ## name what was changed in the cluster, and by whom; FIX=1 puts it back
	@$(EMULATOR) drift $(OPTIONS) -- $(if $(FIX),--fix)

destroy: $(ENVIRONMENT) ## remove what the stack manages
	@$(EMULATOR) destroy $(OPTIONS)

down: $(ENVIRONMENT) ## stop the local clusters (their data stays; `make clean` forgets it)
	@$(EMULATOR) down

clean: $(ENVIRONMENT) ## stop the local clusters and forget their data and the local stacks
	@$(EMULATOR) down --purge

status: $(ENVIRONMENT) ## tell what runs and what the platform holds; HTML=status.html draws it, too
	@$(EMULATOR) status $(OPTIONS) $(if $(HTML),--html $(HTML))
	@$(VENV)/bin/python -m components.lock --count $(CATALOGUES)

dashboards: $(ENVIRONMENT) ## draw every dashboard into HTML (default dashboards.html), from a real Prometheus beside the local cluster
	@$(EMULATOR) tools $(OPTIONS) --monitoring
	@$(VENV)/bin/python -m tests.dashboards $(OPTIONS) $(if $(HTML),--html $(HTML))

review: $(ENVIRONMENT) tools ## print what this checkout changes against BASE (default main) in STACKS (default all), as Markdown
	@./mlbatch review --base $(BASE) $(addprefix --stack ,$(STACKS))

azure: $(ENVIRONMENT) ## act in the emulated Azure behind the engine's back: make azure ARGS="scale --pool ndv5 --count 3"
	@$(VENV)/bin/python -m emulator.azure $(ARGS)

openstack: $(ENVIRONMENT) ## act in the local OpenStack behind the engine's back: make openstack ARGS="open --group mlops-platform"
	@$(VENV)/bin/python -m emulator.openstack $(ARGS)

env: $(ENVIRONMENT) ## print shell exports for plain pulumi and kubectl: eval "$(make -s env)"
	@$(EMULATOR) env $(OPTIONS)

mirror: $(ENVIRONMENT) ## fill the local mirror of upstream manifests and charts
	@$(EMULATOR) mirror

tools: $(ENVIRONMENT) ## build what `make up` needs, without starting anything
	@$(EMULATOR) tools $(OPTIONS)

build: $(ENVIRONMENT) ## build and install all that `make test` runs
	@$(EMULATOR) build

# The longest come first. Go's programs, the engine and the API server among them, may take more memory for less time
# (GOGC; 100 is usual).
test: build ## run everything, three at a time: lint, types, tests against local clusters, unit tests
	@GOGC=200 $(MAKE) --jobs=3 --keep-going --old-file=build --old-file=mirror lint types \
		local-recovery local-platform local-members local-aks unit local-shown local-cpouta local-openshift

lint: $(ENVIRONMENT) ## check format and style
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	@unformatted=$$("$$(go env GOROOT)/bin/gofmt" -l emulator/tools) || exit; \
		[ -z "$$unformatted" ] || { echo "not as gofmt writes it: $$unformatted"; exit 1; }

types: $(ENVIRONMENT) ## check types
	$(VENV)/bin/mypy

unit: $(ENVIRONMENT) mirror ## run the tests that need no cluster
	$(TEST) tests/unit tests/emulator

local: local-aks local-cpouta local-members local-openshift local-platform local-recovery local-shown ## run the tests against local clusters of their own

local-aks: $(ENVIRONMENT) build
	$(TEST) --durations 10 tests/local/test_aks.py

local-cpouta: $(ENVIRONMENT) build
	$(TEST) --durations 10 tests/local/test_openstack_services.py tests/local/test_cpouta.py

local-members: $(ENVIRONMENT) build
	$(TEST) --durations 10 tests/local/test_existing.py tests/local/test_member*.py \
		tests/local/test_pools.py tests/local/test_quota.py tests/local/test_without_policies.py

local-openshift: $(ENVIRONMENT) build
	$(TEST) --durations 10 tests/local/test_openshift.py tests/local/test_openshift_operators.py \
		tests/local/test_openshift_stack.py

local-long: $(ENVIRONMENT) build
	$(VENV)/bin/python -m pytest --durations 10 -m soak tests/local

local-older-kueue: $(ENVIRONMENT) build
	MLBATCH_TEST_KUEUE=v0.18.4 $(VENV)/bin/python -m pytest --durations 10 tests/local/test_platform.py \
		tests/local/test_member_jobs.py tests/local/test_member_train_jobs.py tests/local/test_recovery.py \
		tests/local/test_packing.py

local-mlops: $(ENVIRONMENT) build
	$(VENV)/bin/python -m pytest --durations 10 tests/local/test_mlops.py tests/local/test_cpouta_again.py

local-openshift-ai: $(ENVIRONMENT) build
	$(VENV)/bin/python -m pytest --durations 10 tests/local/test_openshift_ai.py

local-platform: $(ENVIRONMENT) build
	$(TEST) --durations 10 tests/local --ignore tests/local/test_aks.py --ignore-glob 'tests/local/test_member*.py' \
		--ignore tests/local/test_pools.py --ignore tests/local/test_quota.py --ignore tests/local/test_without_policies.py \
		--ignore tests/local/test_existing.py \
		--ignore tests/local/test_recovery.py --ignore tests/local/test_topology.py --ignore tests/local/test_packing.py \
		--ignore tests/local/test_drift.py --ignore tests/local/test_killed.py \
		--ignore-glob 'tests/local/test_openshift*.py' --ignore tests/local/test_openstack_services.py \
		--ignore-glob 'tests/local/test_cpouta*.py' --ignore tests/local/test_mlops.py \
		--ignore tests/local/test_ask.py --ignore tests/local/test_scenarios.py --ignore tests/local/test_user_queues.py --ignore tests/local/test_alerts.py \
		--ignore tests/local/test_dashboards.py --ignore tests/local/test_picture.py

local-recovery: $(ENVIRONMENT) build
	$(TEST) --durations 10 tests/local/test_killed.py tests/local/test_recovery.py \
		tests/local/test_topology.py tests/local/test_packing.py tests/local/test_drift.py

local-shown: $(ENVIRONMENT) build
	$(TEST) --durations 10 tests/local/test_scenarios.py tests/local/test_user_queues.py tests/local/test_ask.py \
		tests/local/test_dashboards.py tests/local/test_alerts.py tests/local/test_picture.py

bench: $(ENVIRONMENT) tools ## print within ten minutes what the platform costs, as ratios: start, teams against kubectl, admission
	$(VENV)/bin/python -m tests.bench

bench-cluster: $(ENVIRONMENT) tools ## put JOBS jobs (130) of TEAMS teams (10) onto NODES simulated nodes (60, at most 1000), side by side with plain Kueue
	$(VENV)/bin/python -m tests.bench.scale $(foreach size,NODES TEAMS JOBS SEED,$(call chosen,$(size)))

scenario: scenarios

scenarios: $(ENVIRONMENT) tools ## play what teams are promised, or NAME alone, on NODES (3) simulated nodes; BREAK=1 without what keeps it
	$(VENV)/bin/python -m tests.scenarios $(NAME) --nodes='$(NODES)' $(if $(BREAK),--break)

gameday: $(ENVIRONMENT) tools ## play a day of a busy cluster in minutes, as SEED decides or TRACE=<file> says, on NODES (6) simulated nodes; write HTML (.local/gameday.html)
	$(VENV)/bin/python -m tests.gameday --seed='$(SEED)' $(call chosen,NODES) \
		$(if $(TRACE),--trace '$(TRACE)') $(call chosen,HOURS) $(call chosen,TIME_SCALE) \
		$(if $(HTML),--html '$(HTML)')

soak: $(ENVIRONMENT) build ## as SEED decides, run JOBS jobs (default 100) on a cluster that keeps failing, and kill KILLS updates (20); then what is too long for `make test`
	@$(VENV)/bin/python -m tests.soak.kills --seed='$(SEED)' --kills='$(KILLS)' --check
	$(VENV)/bin/python -m tests.soak --seed='$(SEED)' --jobs='$(JOBS)'
	$(VENV)/bin/python -m tests.soak.kills --seed='$(SEED)' --kills='$(KILLS)'
	$(VENV)/bin/python -m tests.scenarios
	$(VENV)/bin/python -m tests.scenarios --break
	$(VENV)/bin/python -m tests.soak.answers --seed='$(SEED)'
	$(VENV)/bin/python -m tests.gameday --seed='$(SEED)' --hours 8
	$(VENV)/bin/python -m tests.bench.scale --seed='$(SEED)'
	$(MAKE) training
	$(MAKE) local-long
	$(MAKE) local-older-kueue
	$(MAKE) local-openshift-ai
	$(MAKE) local-mlops

training: $(ENVIRONMENT) ## run the training jobs' own programs on the CPU, kill them on the way, and see them go on (five gigabytes of packages)
	UV_PROJECT_ENVIRONMENT=$(TRAINING) $(VENV)/bin/uv sync --quiet --frozen --only-group training
	$(TRAINING)/bin/python -m tests.soak.training
	$(TRAINING)/bin/python -m tests.soak.tuning
	$(VENV)/bin/uv venv --quiet --allow-existing $(STORE)
	$(VENV)/bin/uv pip sync --quiet --require-hashes --python $(STORE) tests/soak/object_store/requirements.txt
	$(TRAINING)/bin/python -m tests.soak.demos $(STORE)/bin/moto_server

properties: $(ENVIRONMENT) ## try settings that nobody would think of, others in each run, until one breaks a promise (minutes to hours)
	$(VENV)/bin/python -m pytest tests/unit/test_properties.py --hypothesis-profile random

mutants: $(ENVIRONMENT) ## change COUNT places of FILES (default: what differs from BASE) as SEED decides; print what no unit test notices
	$(VENV)/bin/python -m tests.mutants --seed='$(SEED)' --count='$(COUNT)' --base $(BASE) $(if $(FILES),--files $(FILES))

lock: $(ENVIRONMENT) ## write the digests of upstream's manifests, charts and images into the catalogues (needs upstream); LIST=1 lists those without
	$(VENV)/bin/python -m components.lock $(if $(LIST),--list) $(CATALOGUES)

settings: $(ENVIRONMENT) ## write docs/settings.md and settings.schema.json from the models of the settings
	./mlbatch settings --files write

snapshots: $(ENVIRONMENT) ## write what identifies each resource, what is declared of it and what is said of mistakes into tests/unit
	$(VENV)/bin/python -m tests.unit.snapshots
	$(VENV)/bin/python -m tests.unit.refusals

requirements: $(ENVIRONMENT) ## resolve the packages of pyproject.toml into uv.lock, requirements.txt and requirements-uv.txt
	$(VENV)/bin/uv lock
	$(VENV)/bin/uv export --quiet --frozen --no-dev --output-file requirements.txt
	$(VENV)/bin/uv export --quiet --frozen --only-group setup --output-file requirements-uv.txt
	$(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
		--no-emit-index-url --custom-compile-command "make requirements" \
		--output-file emulator/tools/openstack/requirements.txt emulator/tools/openstack/requirements.in
	$(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
		--no-emit-index-url --custom-compile-command "make requirements" \
		--output-file tests/soak/object_store/requirements.txt tests/soak/object_store/requirements.in

# pip fetches uv, by its digest; uv then installs what uv.lock names, itself among it, and removes what it does not name.
$(ENVIRONMENT): uv.lock requirements-uv.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed; set PYTHON=<interpreter>")'
	@echo "installing the Python packages of uv.lock into $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-uv.txt
	@$(VENV)/bin/uv sync --quiet --frozen
	@touch $@
