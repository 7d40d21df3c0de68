# Two commands for a person: `make demo` and `make test`. Set-up runs once; again only when its inputs change.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamps
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1
export LITELLM_LOCAL_MODEL_COST_MAP ?= True
export UV_COMPILE_BYTECODE := 1
# Where a machine forbids bytecode, every process would compile all of ours anew: seconds each, and tests start many.
unexport PYTHONDONTWRITEBYTECODE
ARGS ?=

.PHONY: help demo test soak check quick format bench lock clean setup
help:  ## Show the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

setup: $(STAMP)/installed  ## Make the environment

$(STAMP)/installed: pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Tracejury needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 1; }
	@echo "Setting up (about a minute the first time)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'uv>=0.9'
	@$(BIN)/uv pip sync --python $(BIN)/python --require-hashes requirements.lock
	@$(BIN)/uv pip install --python $(BIN)/python --quiet --no-deps --editable .
	@mkdir -p $(STAMP) && touch $@

# The browser of the tests; the product itself needs none. Without a desktop's windows it takes a quarter less CPU time.
INSTALL := DEBIAN_FRONTEND=noninteractive apt-get install -y -qq
$(STAMP)/browser:
	@if command -v chromium-headless-shell >/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "Installing Chromium for the browser tests"; \
		apt-get update -qq && $(INSTALL) chromium chromium-headless-shell >/dev/null \
			|| command -v chromium >/dev/null || $(INSTALL) chromium >/dev/null; \
	elif ! command -v chromium >/dev/null; then \
		echo "The browser tests need Chromium: sudo apt-get install chromium"; exit 1; \
	fi
	@mkdir -p $(STAMP) && touch $@

# The environment of ARE that the tests of GAIA2 need; kept in .venv/cache.
$(STAMP)/are: data/gaia2/requirements.txt $(STAMP)/installed
	@TRACEJURY_CACHE=$(CURDIR)/$(VENV)/cache $(BIN)/tracejury gaia2 setup
	@touch $@

# The coverage-guided fuzzer of the soak; where it cannot be had, those tests are skipped and say so.
$(STAMP)/fuzz: $(STAMP)/installed
	@$(BIN)/uv pip install --python $(BIN)/python --quiet --group fuzz || echo "atheris cannot be installed here"
	@touch $@

demo: $(STAMP)/installed  ## Ingest the samples, judge them offline, open the app
	$(BIN)/tracejury demo $(ARGS)

test: $(STAMP)/installed $(STAMP)/browser $(STAMP)/are  ## Run every test, the browser's included (four at once on two cores: a browser waits more than it works)
	$(BIN)/python -m pytest -q -n 4 --dist loadfile -m 'not soak' $(ARGS)

soak: $(STAMP)/installed $(STAMP)/browser $(STAMP)/fuzz  ## Run the long forms: a run's process killed 100 times, 200 items by keys, each reader and route attacked
	$(BIN)/python -m pytest -q -m soak $(ARGS)

check: $(STAMP)/installed  ## Format, lint, types, quick tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q -n 2 --dist loadfile -m 'not browser and not slow and not soak' $(ARGS)

format: $(STAMP)/installed  ## Format and mend what lint can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(STAMP)/installed  ## Measure speed and size, ratios side by side
	$(BIN)/python -m tests.benchmarks $(ARGS)

lock: pyproject.toml  ## Renew requirements.lock and the list of ARE's environment
	$(BIN)/uv pip compile pyproject.toml --group dev --generate-hashes --no-annotate --no-header --quiet -o requirements.lock
	$(BIN)/uv pip compile --group are --universal --python-version 3.11 --generate-hashes --no-annotate --no-header --quiet -o data/gaia2/requirements.txt

clean:  ## Remove the environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
