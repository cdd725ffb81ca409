# Each goal does its own set-up. `make` alone says what there is.

CAPTURE := examples/two-hosts.pcap
THALWEG := $(or $(CARGO_TARGET_DIR),target)/release/thalweg

.DEFAULT_GOAL := help
.PHONY: help run python test lint bench fuzz

help: ## list the targets
	@echo "Thalweg: finds the flows that fill a network's links, within milliseconds."
	@echo
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-6s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo '  FUZZ_SECONDS=N make fuzz   spends N seconds on each fuzz target (60)'

run: ## build, and demonstrate rerouting on an emulated network for 12 s
	@scripts/setup.sh run
	@echo '==> build the release binary'
	@cargo build --release -p thalweg
	@scripts/symbols.sh $(THALWEG)
	@scripts/run.sh $(THALWEG)
	@echo
	@echo 'Try next:'
	@printf '  %-64s %s\n' \
	  '$(THALWEG) watch --replay $(CAPTURE)' 'live view of a capture file' \
	  'sudo $(THALWEG) watch eth0' 'live view of an interface' \
	  '$(THALWEG) serve -c examples/rerouting/thalweg.toml' 'this demonstration, until Ctrl+C' \
	  '$(THALWEG) serve -c examples/isolation/thalweg.toml' 'isolation of large flows on an emulated link' \
	  'sudo $(THALWEG) lab run collide' 'the same with real TCP on this machine' \
	  'make python && $(THALWEG) flows --help' 'analyse flow records'

python: ## install the Python package into .venv, for thalweg flows and notebooks
	@scripts/setup.sh python
	@scripts/python.sh run
	@echo
	@echo 'Analyse flow records:  $(THALWEG) flows --help'
	@echo 'In a notebook:         .venv/bin/python, import thalweg'

test: ## check format and lints, run every test
	@scripts/setup.sh test
	@scripts/test.sh

lint: ## check format, lints, documentation and shell scripts
	@scripts/setup.sh lint
	@scripts/lint.sh

bench: ## measure speed and error against peers
	@scripts/setup.sh bench
	@scripts/python.sh bench
	@echo '==> build the release binary'
	@cargo build --release -p thalweg
	@scripts/symbols.sh $(THALWEG)
	@echo '==> bench/run.sh'
	@bench/run.sh

fuzz: ## fuzz every parser of foreign bytes
	@scripts/setup.sh fuzz
	@scripts/fuzz.sh
