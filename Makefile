# The local environment: `make help` lists the targets, STACK selects the stack (default dev). No target changes your own
# clusters or accounts; use plain `pulumi` for these.
STACK ?= dev
BASE ?= main
ARGS ?= --help
SEED ?= 1
JOBS ?= 100
KILLS ?= 20
NODES ?= 3
NAME ?=
BREAK ?=
TAG ?=
TRACE ?=
HOURS ?=
TIME_SCALE ?=
LIST ?=
CATALOGUES := components.catalogue components.azure.catalogue components.openstack.catalogue
FILES ?=
TESTS ?=
STACKS ?=
HTML ?=
PYTHON ?= python3
BROWSER ?= $(firstword $(foreach name,chromium google-chrome chromium-browser chromium-headless-shell,$(shell command -v $(name))))
VENV := .venv
ENVIRONMENT := $(VENV)/.installed
TRAINING := .venv-training
STORE := .venv-store
SITE := .venv-site
EMULATOR := $(VENV)/bin/python -m emulator
OPTIONS = --stack $(STACK)
PHOTO = $(BROWSER) --headless --no-sandbox --disable-gpu --hide-scrollbars --log-level=3
# A test that hangs prints the threads' stacks and ends the run. Tests that take hours or use a cloud (CONTRIBUTING.md) do
# not use this.
TEST := $(VENV)/bin/python -m pytest -o faulthandler_timeout=1200 -o faulthandler_exit_on_timeout=true
# An option for a variable only if the user sets it; the programs have their own defaults.
chosen = $(if $(filter command environment,$(firstword $(origin $(1)))),--$(shell echo $(1) | tr A-Z_ a-z-)='$($(1))')

ifneq (,$(findstring command line,$(origin KUBECONFIG)))
$(error make acts on the local environment only. For your own cluster, use plain `pulumi up --stack <name>` (README.md))
endif

# Keep Python's bytecode, even if an image disables it: Azure's SDK takes seconds to compile.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help up preview refresh drift destroy down status env mirror tools build test lint types unit local local-aks local-cpouta local-existing local-openshift local-platform local-members local-recovery local-shown bench bench-cluster properties soak training mutants pictures site scenario scenarios gameday clean lock available settings snapshots requirements review azure openstack dashboards local-long local-older-kueue local-openshift-ai local-mlops release

help: ## list the targets, and the tools that they still have to build
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  \1|\2/' | column -t -s '|'
	@if [ -e $(ENVIRONMENT) ]; then $(EMULATOR) unbuilt; else echo '  still to build: all tools, with the first `make up`'; fi

up: $(ENVIRONMENT) ## install the platform: build missing tools, start the local cluster, run `pulumi up`, report
	@$(EMULATOR) up $(OPTIONS)

preview: $(ENVIRONMENT) ## show what `make up` would change
	@$(EMULATOR) preview $(OPTIONS)

refresh: $(ENVIRONMENT) ## compare the stack's state with the cluster
	@$(EMULATOR) refresh $(OPTIONS)

drift: $(ENVIRONMENT) ## list changes in the cluster and who made them; FIX=1 reverts them
	@$(EMULATOR) drift $(OPTIONS) -- $(if $(FIX),--fix)

destroy: $(ENVIRONMENT) ## delete the stack's resources
	@$(EMULATOR) destroy $(OPTIONS)

down: $(ENVIRONMENT) ## stop the local clusters (their data stays; `make clean` deletes it)
	@$(EMULATOR) down

clean: $(ENVIRONMENT) ## stop the local clusters, delete their data and the local stacks
	@$(EMULATOR) down --purge

status: $(ENVIRONMENT) ## show processes and platform; HTML=status.html also draws them
	@$(EMULATOR) status $(OPTIONS) $(if $(HTML),--html $(HTML))
	@$(VENV)/bin/python -m components.lock --count $(CATALOGUES)

dashboards: $(ENVIRONMENT) ## draw all dashboards into HTML (default dashboards.html), with a real Prometheus next to the local cluster
	@$(EMULATOR) tools $(OPTIONS) --monitoring
	@$(VENV)/bin/python -m lab.dashboards $(OPTIONS) $(if $(HTML),--html $(HTML))

# The sizes are those of the parts that the pages of docs/ show.
pictures: $(ENVIRONMENT) ## redraw docs/pictures from the running local cluster, with BROWSER (default: the Chromium or Chrome of this machine)
	@[ -n "$(BROWSER)" ] || { echo "error: there is no Chromium or Chrome on the PATH. Install one, or set BROWSER=<program>" >&2; exit 1; }
	@$(MAKE) --no-print-directory status HTML=.local/status.html
	@$(MAKE) --no-print-directory dashboards HTML=.local/dashboards.html
	@$(PHOTO) --window-size=1060,800 --screenshot=docs/pictures/status.png file://$(CURDIR)/.local/status.html
	@$(PHOTO) --window-size=1500,1480 --screenshot=docs/pictures/dashboards.png file://$(CURDIR)/.local/dashboards.html

review: $(ENVIRONMENT) tools ## print what this checkout changes against BASE (default main) in STACKS (default all), as Markdown
	@./mlbatch review --base $(BASE) $(addprefix --stack ,$(STACKS))

azure: $(ENVIRONMENT) ## change the emulated Azure without the engine: make azure ARGS="scale --pool ndv5 --count 3"
	@$(VENV)/bin/python -m emulator.azure $(ARGS)

openstack: $(ENVIRONMENT) ## change the local OpenStack without the engine: make openstack ARGS="open --group mlops-platform"
	@$(VENV)/bin/python -m emulator.openstack $(ARGS)

env: $(ENVIRONMENT) ## print shell exports for plain pulumi and kubectl: eval "$(make -s env)"
	@$(EMULATOR) env $(OPTIONS)

mirror: $(ENVIRONMENT) ## fill the local mirror of upstream manifests and charts
	@$(EMULATOR) mirror

tools: $(ENVIRONMENT) ## build what `make up` needs, without starting anything
	@$(EMULATOR) tools $(OPTIONS)

build: $(ENVIRONMENT) ## build and install all tools of `make test`
	@$(EMULATOR) build

# The longest come first. Each part waits for half of its time. GOGC (default 100) lets Go's programs, such as the API
# server, use more memory and less time.
test: build ## run everything, four parts at a time: lint, types, tests against local clusters, unit tests
	@GOGC=400 $(MAKE) --jobs=4 --keep-going --old-file=build --old-file=mirror lint types \
		local-members local-platform unit local-aks local-shown local-existing local-openshift local-cpouta local-recovery

lint: $(ENVIRONMENT) ## check format and style
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/python -m tests.plain_english
	@unformatted=$$("$$(go env GOROOT)/bin/gofmt" -l emulator/tools) || exit; \
		[ -z "$$unformatted" ] || { echo "run gofmt on $$unformatted"; exit 1; }

types: $(ENVIRONMENT) ## check types
	$(VENV)/bin/mypy

unit: $(ENVIRONMENT) mirror ## run the tests that need no cluster
	$(TEST) tests/unit tests/emulator

local: local-aks local-cpouta local-existing local-members local-openshift local-platform local-recovery local-shown ## run the tests on their own local clusters

local-aks: $(ENVIRONMENT) build
	$(TEST) --durations 10 tests/local/test_aks.py

local-cpouta: $(ENVIRONMENT) build
	$(TEST) --durations 10 tests/local/test_openstack_services.py tests/local/test_cpouta.py \
		tests/local/test_cpouta_elsewhere.py

local-existing: $(ENVIRONMENT) build
	$(TEST) --durations 10 tests/local/test_existing.py tests/local/test_member_nodes.py tests/local/test_members.py \
		tests/local/test_adopted_kueue.py tests/local/test_package.py tests/local/test_without_policies.py

# Tests with operators of jobs come last, and those with the same settings together, because each change is an update.
local-members: $(ENVIRONMENT) build
	$(TEST) --durations 10 tests/local/test_member_jobs.py tests/local/test_member_pages.py \
		tests/local/test_member_pods.py tests/local/test_member_commands.py tests/local/test_pools.py \
		tests/local/test_member_examples.py tests/local/test_member_finetuning.py tests/local/test_member_kinds.py \
		tests/local/test_attack.py tests/local/test_member_train*.py

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
	$(VENV)/bin/python -m pytest --durations 10 tests/local/test_openshift_ai.py tests/local/test_openshift_ai_3.py

local-platform: $(ENVIRONMENT) build
	$(TEST) --durations 10 tests/local --ignore tests/local/test_aks.py --ignore-glob 'tests/local/test_member*.py' \
		--ignore tests/local/test_pools.py --ignore tests/local/test_quota.py --ignore tests/local/test_without_policies.py \
		--ignore tests/local/test_existing.py --ignore tests/local/test_adopted_kueue.py --ignore tests/local/test_package.py \
		--ignore tests/local/test_attack.py \
		--ignore tests/local/test_recovery.py --ignore tests/local/test_topology.py --ignore tests/local/test_packing.py \
		--ignore tests/local/test_drift.py \
		--ignore-glob 'tests/local/test_openshift*.py' --ignore tests/local/test_openstack_services.py \
		--ignore-glob 'tests/local/test_cpouta*.py' --ignore tests/local/test_mlops.py \
		--ignore tests/local/test_ask.py --ignore tests/local/test_scenarios.py --ignore tests/local/test_user_queues.py --ignore tests/local/test_alerts.py \
		--ignore tests/local/test_dashboards.py --ignore tests/local/test_picture.py

local-recovery: $(ENVIRONMENT) build
	$(TEST) --durations 10 tests/local/test_quota.py tests/local/test_recovery.py \
		tests/local/test_packing.py tests/local/test_topology.py

local-shown: $(ENVIRONMENT) build
	$(TEST) --durations 10 tests/local/test_scenarios.py tests/local/test_user_queues.py tests/local/test_ask.py \
		tests/local/test_dashboards.py tests/local/test_drift.py tests/local/test_alerts.py tests/local/test_picture.py

bench: $(ENVIRONMENT) tools ## measure the platform's cost in ten minutes, as ratios: start, teams compared with kubectl, admission
	$(VENV)/bin/python -m lab.bench

bench-cluster: $(ENVIRONMENT) tools ## run JOBS jobs (130) of TEAMS teams (10) on NODES simulated nodes (60, at most 1000), compared with plain Kueue
	$(VENV)/bin/python -m lab.bench.scale $(foreach size,NODES TEAMS JOBS SEED,$(call chosen,$(size)))

scenario: scenarios

scenarios: $(ENVIRONMENT) tools ## run all scenarios, or only NAME, on NODES (3) simulated nodes; BREAK=1 disables the mechanism of each promise
	$(VENV)/bin/python -m lab.scenarios $(NAME) --nodes='$(NODES)' $(if $(BREAK),--break)

gameday: $(ENVIRONMENT) tools ## simulate a day of a busy cluster in minutes, from SEED or TRACE=<file>, on NODES (6) simulated nodes; write HTML (.local/gameday.html)
	$(VENV)/bin/python -m lab.gameday --seed='$(SEED)' $(call chosen,NODES) \
		$(if $(TRACE),--trace '$(TRACE)') $(call chosen,HOURS) $(call chosen,TIME_SCALE) \
		$(if $(HTML),--html '$(HTML)')

soak: $(ENVIRONMENT) build ## run JOBS jobs (default 100) on a cluster that keeps failing, kill KILLS updates (20), from SEED; then all tests that are too long for `make test`
	@$(VENV)/bin/python -m lab.soak.kills --seed='$(SEED)' --kills='$(KILLS)' --check
	$(VENV)/bin/python -m lab.soak --seed='$(SEED)' --jobs='$(JOBS)'
	$(VENV)/bin/python -m lab.soak.kills --seed='$(SEED)' --kills='$(KILLS)'
	$(VENV)/bin/python -m lab.scenarios
	$(VENV)/bin/python -m lab.scenarios --break
	$(VENV)/bin/python -m lab.soak.answers --seed='$(SEED)'
	$(VENV)/bin/python -m lab.gameday --seed='$(SEED)' --hours 8
	$(VENV)/bin/python -m lab.bench.scale --seed='$(SEED)'
	$(MAKE) training
	$(MAKE) local-long
	$(MAKE) local-older-kueue
	$(MAKE) local-openshift-ai
	$(MAKE) local-mlops

training: $(ENVIRONMENT) ## run the programs of training jobs on the CPU, kill them, and check that they resume (five gigabytes of packages)
	UV_PROJECT_ENVIRONMENT=$(TRAINING) $(VENV)/bin/uv sync --quiet --frozen --only-group training
	$(TRAINING)/bin/python -m lab.soak.training
	$(TRAINING)/bin/python -m lab.soak.tuning
	$(VENV)/bin/uv venv --quiet --allow-existing $(STORE)
	$(VENV)/bin/uv pip sync --quiet --require-hashes --python $(STORE) lab/soak/object_store/requirements.txt
	$(TRAINING)/bin/python -m lab.soak.demos $(STORE)/bin/moto_server

properties: $(ENVIRONMENT) ## test random settings, different ones in each run, until one breaks a promise (minutes to hours)
	$(VENV)/bin/python -m pytest tests/unit/test_properties.py --hypothesis-profile random

mutants: $(ENVIRONMENT) ## change functions of FILES (default: files that differ from BASE); print changes that no test of TESTS (tests/unit) notices
	$(VENV)/bin/python -m tests.mutants --base $(BASE) $(if $(FILES),--files $(FILES)) $(if $(TESTS),--tests $(TESTS))

site: $(ENVIRONMENT) ## build the documentation site into .local/site; a broken link is an error
	UV_PROJECT_ENVIRONMENT=$(SITE) $(VENV)/bin/uv sync --quiet --frozen --only-group site
	NO_MKDOCS_2_WARNING=1 $(SITE)/bin/mkdocs build --config-file website/mkdocs.yml
	@echo "python3 -m http.server --bind 127.0.0.1 --directory .local/site   # then open http://127.0.0.1:8000"

lock: $(ENVIRONMENT) ## write the digests of upstream's manifests, charts and images into the catalogues (needs upstream); LIST=1 lists those without
	$(VENV)/bin/python -m components.lock $(if $(LIST),--list) $(CATALOGUES)

available: $(ENVIRONMENT) ## request every image, chart and file that the catalogues name, and list what upstream no longer serves
	$(VENV)/bin/python -m components.available $(CATALOGUES)

settings: $(ENVIRONMENT) ## write docs/settings.md and settings.schema.json from the models of the settings
	./mlbatch settings --files write

snapshots: $(ENVIRONMENT) ## write the snapshots of resources and the texts of settings errors into tests/unit
	$(VENV)/bin/python -m tests.unit.snapshots
	$(VENV)/bin/python -m tests.unit.refusals

release: $(ENVIRONMENT) ## build the files of a release into .local/release; TAG=v<version> checks that everything fits this tag
	$(VENV)/bin/python package/release.py $(TAG)

requirements: $(ENVIRONMENT) ## resolve the packages of pyproject.toml into uv.lock, requirements.txt and requirements-uv.txt
	$(VENV)/bin/uv lock
	$(VENV)/bin/uv export --quiet --frozen --no-dev --output-file requirements.txt
	$(VENV)/bin/uv export --quiet --frozen --only-group setup --output-file requirements-uv.txt
	$(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
		--no-emit-index-url --custom-compile-command "make requirements" \
		--output-file emulator/tools/openstack/requirements.txt emulator/tools/openstack/requirements.in
	$(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
		--no-emit-index-url --custom-compile-command "make requirements" \
		--output-file lab/soak/object_store/requirements.txt lab/soak/object_store/requirements.in
	$(VENV)/bin/uv pip compile --quiet --python-platform linux --python-version 3.10 --no-annotate --no-emit-index-url \
		--no-emit-package numpy --custom-compile-command "make requirements" \
		--output-file images/metaseq/requirements.txt images/metaseq/requirements.in
	$(VENV)/bin/uv pip compile --quiet --python-platform linux --python-version 3.12 --no-annotate --no-emit-index-url \
		--exclude-newer 2025-09-05 --custom-compile-command "make requirements" \
		--output-file images/olmo/requirements.txt images/olmo/requirements.in

# pip installs uv, checked by its digest. uv then installs exactly the packages of uv.lock, including itself.
$(ENVIRONMENT): uv.lock requirements-uv.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed; set PYTHON=<interpreter>")'
	@echo "installing the Python packages of uv.lock into $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-uv.txt
	@$(VENV)/bin/uv sync --quiet --frozen
	@touch $@
