# Plimsoll's front door. `make` alone prints what there is; every target does its own set-up.
.DEFAULT_GOAL := help
SHELL := /bin/sh

PYTHON ?= python3
GO     ?= go
VENV   := .venv
BIN    := bin/replay

# What `make replay` takes; passed on through the environment, so that no quoting is lost.
LOG    ?=
TARGET ?=
FORMAT ?=
DATE_FORMAT ?=
TIME_FORMAT ?=
SPEED  ?= 1
OUT    ?= results
ARGS   ?=
export TARGET FORMAT DATE_FORMAT TIME_FORMAT SPEED OUT

help: ## This text
	@echo "Plimsoll: what happens to the slowest request in a thousand when the storage changes."
	@echo
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | while IFS='|' read -r target text; do printf '%-18s %s\n' "$$target" "$$text"; done
	@echo
	@echo "  make replay LOG=access.log TARGET=http://10.0.0.5 SPEED=10 OUT=results"
	@echo "  make replay LOG='access.log*' FORMAT=COMBINED        several logs, a format given"
	@echo "  make replay LOG=access.log ARGS='--limit 1000'       further flags: see bin/replay run --help"

setup: build $(VENV)/.runtime ## Build bin/replay and install the Python tools (all other targets do it when needed)

build: ## Build bin/replay
	@tests/need-go $(GO)
	@cd replay && CGO_ENABLED=0 $(GO) build -trimpath -o ../$(BIN) .

replay: build $(VENV)/.runtime ## Replay an access log and write a report: LOG= [TARGET= FORMAT= SPEED= OUT= ARGS=]
	@if [ -z "$(strip $(LOG))" ]; then echo "make replay: say which log: make replay LOG=access.log (try LOG=examples/access.log)" >&2; exit 2; fi
	@trap : INT; before=$$(readlink "$$OUT/latest"); \
	set -- --speed "$$SPEED" --out "$$OUT"; \
	[ -z "$$TARGET" ] || set -- "$$@" --target "$$TARGET"; \
	[ -z "$$FORMAT" ] || set -- "$$@" --format "$$FORMAT"; \
	[ -z "$$DATE_FORMAT" ] || set -- "$$@" --date-format "$$DATE_FORMAT"; \
	[ -z "$$TIME_FORMAT" ] || set -- "$$@" --time-format "$$TIME_FORMAT"; \
	$(BIN) run "$$@" $(ARGS) $(LOG); code=$$?; \
	if [ "$$(readlink "$$OUT/latest")" != "$$before" ]; then $(VENV)/bin/plimsoll report "$$OUT/latest" || exit; fi; \
	exit $$code

DIR ?= $(OUT)/latest
report: $(VENV)/.runtime ## Write report.html for run directories: [DIR=results/latest]
	@$(VENV)/bin/plimsoll report $(DIR)

# A document to sign; docs/signoff.md.
BASELINE  ?=
CANDIDATE ?=
GATES     ?=
export BASELINE CANDIDATE GATES
signoff: $(VENV)/.runtime ## Write a document to sign: BASELINE= CANDIDATE= GATES=gates.yml [OUT= ARGS=]
	@if [ -z "$$BASELINE" ] || [ -z "$$GATES" ]; then echo "make signoff: say what to judge and by what: make signoff BASELINE=results/old CANDIDATE=results/new GATES=gates.yml" >&2; exit 2; fi
	@set -- "$$BASELINE"; [ -z "$$CANDIDATE" ] || set -- "$$@" "$$CANDIDATE"; \
	mkdir -p "$$OUT" && $(VENV)/bin/plimsoll signoff --gates "$$GATES" --out "$$OUT/signoff-$$(date -u +%Y%m%dT%H%M%SZ)" $(ARGS) -- "$$@"

lint: $(VENV)/.dev bin/staticcheck ## Check the form of the code: gofmt, go vet, staticcheck, ruff, mypy, shellcheck
	@tests/lint

test: build $(VENV)/.dev ## Run every test that needs neither root nor Docker
	@cd replay && $(GO) test ./...
	@cd tests/peers/go && $(GO) test ./...
	@$(VENV)/bin/pytest
	@$(VENV)/bin/pytest tests/scenarios

test-lab: build k6 $(VENV)/.dev bin/staticcheck ## Run the tests against real programs (root; installs nginx, goaccess, Chromium when missing)
	@tests/need-lab
	@cd replay && PLIMSOLL_LAB=1 $(GO) test -count=1 ./accesslog .
	@cd replay/k6 && $(GO) vet ./... && ../../bin/staticcheck ./... && $(GO) test ./...
	@PLIMSOLL_LAB=1 $(VENV)/bin/pytest tests/analysis tests/lab

# The site under test; empty means the default that docs/site.md names.
BACKEND_DIR ?=
SITE_NAME   ?=
SITE_PORT   ?=
SITE_BIND   ?=
SITE_SIZE   ?=
SITE_SEED   ?=
SITE_EDITOR ?=
SITE_LARGE_GIB ?=
WP_UPGRADE_ZIP ?=
DB_BUFFER_POOL ?=
PHP_CHILDREN   ?=
VARNISH_STORAGE ?=
SITE_WAIT_S ?=
KEEP   ?=
IMAGES ?=
export BACKEND_DIR SITE_NAME SITE_PORT SITE_BIND SITE_SIZE SITE_SEED SITE_EDITOR SITE_LARGE_GIB WP_UPGRADE_ZIP
export DB_BUFFER_POOL PHP_CHILDREN VARNISH_STORAGE SITE_WAIT_S KEEP IMAGES

base-image: ## Make the image debian:bookworm-slim where no hub can be reached
	@site/base-image

site: ## Start the site under test: [BACKEND_DIR= SITE_PORT= SITE_SIZE=small|medium|large SITE_EDITOR=block|classic …]
	@site/up

site-down: ## End the site and remove what it made: [BACKEND_DIR= KEEP=1 IMAGES=1]
	@site/down

# A disk of the site for virtual machines; docs/vm.md.
VM_IMAGE    ?=
VM_SSH_KEY  ?=
VM_FREE_GIB ?=
export VM_IMAGE VM_SSH_KEY VM_FREE_GIB
vm-image: ## Make a bootable disk of the site: [VM_IMAGE=vm/plimsoll-site.qcow2 VM_SSH_KEY=KEY.pub SITE_SIZE= …]
	@site/vm-image

LAB ?= examples/one-machine.yml
bench: build $(VENV)/.runtime ## The whole on this machine: clones on a slow and a fast disk, load under zfs send, report (root, Docker): [LAB=]
	@lab/need
	@$(VENV)/bin/plimsoll run $(LAB) $(ARGS)

HISTORY ?= results/history.sqlite
export HISTORY
regression: build $(VENV)/.regress ## Run a lab.yml and judge it by the nights before: LAB= [HISTORY= ARGS='--junit FILE …']
	@analysis/history/nightly "$(VENV)/bin/plimsoll" "$(LAB)" $(ARGS)

k6: ## Build bin/k6-plimsoll: Grafana k6 with k6/x/plimsoll, which replays logs and writes run directories (docs/k6.md)
	@tests/need-go $(GO)
	@cd replay/k6 && CGO_ENABLED=0 $(GO) build -trimpath -o ../../bin/k6-plimsoll ./cmd/k6

FUZZTIME ?= 10m
fuzz: ## Fuzz every parser: [FUZZTIME=10m each]
	@tests/fuzz $(FUZZTIME)

peers: build $(VENV)/.runtime ## Benchmark against wrk, k6, vegeta, Locust, The Grinder, goaccess … into docs/peers.md
	@tests/peers/run

clean: ## Remove what was built; results stay
	rm -rf bin $(VENV) plimsoll.egg-info tests/peers/installed

$(VENV)/.runtime: requirements.lock pyproject.toml
	@tests/make-venv $(PYTHON) $(VENV) requirements.lock
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime $(VENV)/.regress requirements-dev.lock
	@tests/make-venv $(PYTHON) $(VENV) requirements-dev.lock
	@touch $@

$(VENV)/.regress: $(VENV)/.runtime requirements-regress.lock
	@echo "Installing what requirements-regress.lock names ..." >&2
	@$(VENV)/bin/pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements-regress.lock
	@touch $@

bin/staticcheck: tests/tools/go.mod
	@tests/need-go $(GO)
	@cd tests/tools && $(GO) build -o ../../$@ honnef.co/go/tools/cmd/staticcheck

.PHONY: help setup build replay report signoff base-image site site-down bench regression vm-image lint test test-lab fuzz peers clean
