# Plimsoll's front door. `make` alone lists the targets; every target does its own set-up.
.DEFAULT_GOAL := help
SHELL := /bin/sh

PYTHON ?= python3
GO     ?= go
VENV   := .venv
BIN    := bin/replay
FILES  := $(VENV)/bin/python tools/paths.py

# The variables of `make replay`.
LOG    ?=
TARGET ?=
FORMAT ?=
DATE_FORMAT ?=
TIME_FORMAT ?=
SPEED  ?= 1
OUT    ?= results
LIMITS ?=
ARGS   ?=
GIVEN  := LOG TARGET FORMAT DATE_FORMAT TIME_FORMAT SPEED OUT LIMITS

help: ## Show this help
	@echo "Plimsoll: what happens to the slowest request in a thousand when the storage changes."
	@echo
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | while IFS='|' read -r target text; do printf '%-18s %s\n' "$$target" "$$text"; done
	@echo
	@echo "  make replay LOG=access.log TARGET=http://10.0.0.5 SPEED=10 OUT=results"
	@echo "  make replay LOG='access.log*' FORMAT=COMBINED        several logs, with a format"
	@echo "  make replay LOG=access.log ARGS='--limit 1000'       further flags: see plimsoll replay --help"

# Go and Python are made at the same time.
together = +@"$(MAKE)" --silent --no-print-directory $(if $(findstring --jobserver,$(MAKEFLAGS)),,-j2)

setup: ## Build bin/replay and install the Python tools (other targets do so when needed)
	$(together) build $(VENV)/.runtime

build: ## Build bin/replay
	@tools/need-go $(GO)
	@cd replay && $(GO) build -o ../$(BIN) .

replay: ## Replay an access log and write a report: LOG= [TARGET= FORMAT= SPEED= OUT= LIMITS= ARGS=]
	$(together) build $(VENV)/.runtime
	@if [ -z "$$LOG" ]; then echo "make replay: name a log: make replay LOG=access.log (try LOG=examples/access.log)" >&2; exit 2; fi
	@before=$$(readlink "$$OUT/latest"); \
	set -- --speed "$$SPEED" --out "$$OUT"; \
	[ -z "$$TARGET" ] || set -- "$$@" --target "$$TARGET"; \
	[ -z "$$FORMAT" ] || set -- "$$@" --format "$$FORMAT"; \
	[ -z "$$DATE_FORMAT" ] || set -- "$$@" --date-format "$$DATE_FORMAT"; \
	[ -z "$$TIME_FORMAT" ] || set -- "$$@" --time-format "$$TIME_FORMAT"; \
	set -f; for limit in $$LIMITS; do set -- "$$@" --fail-over "$$limit"; done; set +f; \
	trap : INT HUP; trap 'kill $$replay' TERM; exec 3<&0; \
	env --default-signal=INT,QUIT $(FILES) "$$LOG" $(BIN) run "$$@" $(ARGS) <&3 3<&- & replay=$$!; \
	while wait $$replay; code=$$?; [ $$code -gt 128 ] && kill -0 $$replay 2>/dev/null; do :; done; \
	if [ "$$(readlink "$$OUT/latest")" != "$$before" ]; then $(VENV)/bin/plimsoll report "$$OUT/latest" || exit; fi; \
	exit $$code

DIR   ?=
GIVEN += DIR
report: $(VENV)/.runtime ## Write report.html for run directories: [DIR=results/latest]
	@$(FILES) "$${DIR:-$$OUT/latest}" $(VENV)/bin/plimsoll report

BASELINE  ?=
CANDIDATE ?=
ab: ## Replay a log against two servers in turns, and judge them: LOG= BASELINE=URL CANDIDATE=URL [FORMAT= SPEED= OUT= ARGS=]
	$(together) build $(VENV)/.runtime
	@if [ -z "$$LOG" ] || [ -z "$$BASELINE" ] || [ -z "$$CANDIDATE" ]; then echo "make ab: name a log and two servers: make ab LOG=access.log BASELINE=http://10.0.0.5 CANDIDATE=http://10.0.0.6" >&2; exit 2; fi
	@set -- --baseline "$$BASELINE" --candidate "$$CANDIDATE" --speed "$$SPEED" --out "$$OUT"; \
	[ -z "$$FORMAT" ] || set -- "$$@" --format "$$FORMAT"; \
	$(FILES) "$$LOG" $(VENV)/bin/plimsoll ab "$$@" $(ARGS)

rehearse: ## Say what such an experiment would find on a site as it is: LOG= TARGET=URL [FORMAT= SPEED= OUT= ARGS=]
	$(together) build $(VENV)/.runtime
	@if [ -z "$$LOG" ] || [ -z "$$TARGET" ]; then echo "make rehearse: name a log and a server: make rehearse LOG=access.log TARGET=http://10.0.0.5" >&2; exit 2; fi
	@set -- --target "$$TARGET" --speed "$$SPEED" --out "$$OUT"; \
	[ -z "$$FORMAT" ] || set -- "$$@" --format "$$FORMAT"; \
	$(FILES) "$$LOG" $(VENV)/bin/plimsoll rehearse "$$@" $(ARGS)

# A document to sign; docs/signoff.md.
GATES     ?=
GIVEN     += BASELINE CANDIDATE GATES
signoff: $(VENV)/.runtime ## Write a document to sign: BASELINE= CANDIDATE= GATES=gates.yml [OUT= ARGS=]
	@if [ -z "$$BASELINE" ] || [ -z "$$GATES" ]; then echo "make signoff: name the runs and the gates: make signoff BASELINE=results/old CANDIDATE=results/new GATES=gates.yml" >&2; exit 2; fi
	@set -- "$$BASELINE"; [ -z "$$CANDIDATE" ] || set -- "$$@" "$$CANDIDATE"; \
	mkdir -p "$$OUT" && $(VENV)/bin/plimsoll signoff --gates "$$GATES" --out "$$OUT/signoff-$$(date -u +%Y%m%dT%H%M%SZ)" $(ARGS) -- "$$@"

docs: build $(VENV)/.dev ## Rewrite docs/commands.md, the tables of keys and the drawing in docs/house.md from the code
	@$(VENV)/bin/python tools/reference.py
	@$(VENV)/bin/python tools/house.py
	@$(VENV)/bin/python tools/tables.py
	@$(VENV)/bin/python tools/script_defaults.py

man: build $(VENV)/.runtime ## Write the man pages of plimsoll and replay to build/man
	@$(VENV)/bin/python tools/manual.py

# Releases; docs/install.md.
ARCH  ?=
GIVEN += ARCH
dist: build $(VENV)/.runtime ## Build releases of the last commit in dist/, which install without network, and Debian packages: [ARCH=amd64]
	@tools/packages/dist

image: build $(VENV)/.runtime ## Build the container image plimsoll (Docker)
	@tools/packages/image

lint: ## Check the form of the code: gofmt, go vet, staticcheck, ruff, mypy, shellcheck, PHP, Biome, prettier, markdownlint, textlint
	$(together) build $(VENV)/.dev bin/staticcheck
	@tools/need-lint
	@tools/lint

test: ## Run every test that needs neither root nor Docker
	$(together) build $(VENV)/.dev
	@tools/test $(GO) $(VENV)/bin/pytest

golden: build $(VENV)/.dev ## Rewrite the golden files (tests/golden and others); review their diff
	@UPDATE_GOLDEN=1 $(VENV)/bin/pytest -n 2 $$(grep -rlE 'UPDATE_GOLDEN|check_golden' tests/unit --include='test_*.py')
	@cd replay && $(GO) test ./record -update

test-lab: build k6 $(VENV)/.dev bin/staticcheck ## Run the tests against real programs (root; installs nginx, goaccess, Chromium when missing)
	@tools/need-lab
	@PLIMSOLL_LAB=1 tools/test-lab $(GO) $(VENV)/bin/pytest

test-lab-full: test-lab audit mutants ## Also run the long tests: kills, studies, upgrades, audit, mutants, bare Debians; see CONTRIBUTING.md (hours)
	@cd benchmarks/go && $(GO) test ./...
	@PLIMSOLL_LAB=1 PLIMSOLL_SLOW=1 $(VENV)/bin/pytest -n 2 -m "slow or hypothesis" tests
	@PLIMSOLL_SLOW=1 $(VENV)/bin/pytest -m hypothesis tests/unit/scenarios

BASE  ?= tools/mutants.csv
GIVEN += BASE
mutants: build $(VENV)/.dev bin/gomutants ## Check that the tests do not kill fewer of 300 mutants than before: [OUT=results BASE=tools/mutants.csv]
	@$(VENV)/bin/python tools/mutants.py run "$$OUT" "$$BASE"

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
SITE_CONFIG    ?=
DB_BUFFER_POOL ?=
PHP_CHILDREN   ?=
VARNISH_STORAGE ?=
SITE_WAIT_S ?=
KEEP   ?=
IMAGES ?=
GIVEN  += BACKEND_DIR SITE_NAME SITE_PORT SITE_BIND SITE_SIZE SITE_SEED SITE_EDITOR SITE_LARGE_GIB WP_UPGRADE_ZIP
GIVEN  += SITE_CONFIG DB_BUFFER_POOL PHP_CHILDREN VARNISH_STORAGE SITE_WAIT_S KEEP IMAGES

base-image: ## Build the image debian:bookworm-slim without a registry
	@site/base-image

site: ## Start the site under test and register it as a clone: [BACKEND_DIR= SITE_PORT= SITE_SIZE=small|medium|large SITE_EDITOR=block|classic …]
	@site/needs
	@"$(MAKE)" --silent --no-print-directory "$(VENV)/.runtime"
	@site/up
	@site/list

site-down: ## Stop the site and remove what it created: [BACKEND_DIR= KEEP=1 IMAGES=1]
	@site/down

# A disk of the site for virtual machines; docs/vm.md.
VM_IMAGE    ?=
VM_SSH_KEY  ?=
VM_FREE_GIB ?=
GIVEN       += VM_IMAGE VM_SSH_KEY VM_FREE_GIB
vm-image: ## Build a bootable disk of the site: [VM_IMAGE=vm/plimsoll-site.qcow2 VM_SSH_KEY=KEY.pub SITE_SIZE= …]
	@site/vm-image

# A host with OpenZFS in its kernel, for the tests of the lab; docs/zfs-vm.md.
SUITE        ?=
ZFS_VM_CACHE ?=
GIVEN        += SUITE ZFS_VM_CACHE
zfs-vm: ## Build the Debian machine with OpenZFS that tests run under QEMU (root): [SUITE=bookworm|trixie ZFS_VM_CACHE=]
	@tools/zfs-vm/build

LAB   ?= examples/one-machine.yml
GIVEN += LAB
bench: build $(VENV)/.runtime ## Run the whole experiment on this machine: clones on a slow and a fast disk, load under zfs send, report (root, Docker): [LAB=]
	@tools/need-bench
	@$(FILES) "$$LAB" $(VENV)/bin/plimsoll run $(ARGS)

HISTORY ?= results/history.sqlite
GIVEN   += HISTORY
regression: build $(VENV)/.regress ## Run a lab.yml and judge it against earlier nights: LAB= [HISTORY= ARGS='--junit FILE …']
	@tools/nightly "$(VENV)/bin/plimsoll" "$$LAB" $(ARGS)

k6: ## Build bin/k6-plimsoll: Grafana k6 with k6/x/plimsoll, which replays logs and writes run directories (docs/k6.md)
	@tools/need-go $(GO)
	@cd replay/k6 && $(GO) build -o ../../bin/k6-plimsoll ./cmd/k6

GO_ADVISORIES ?=
OSV_URL       ?=
GIVEN         += GO_ADVISORIES OSV_URL
audit: $(VENV)/.dev ## List known vulnerabilities in pinned Go and Python dependencies: [GO_ADVISORIES= OSV_URL=]
	@tools/need-go $(GO)
	@mkdir -p .cache && GO=$(GO) $(VENV)/bin/python tools/audit.py

FUZZTIME ?= 10m
fuzz: ## Fuzz every parser: [FUZZTIME=10m each]
	@tools/fuzz $(FUZZTIME)

# The source of wrk2, which is in no package registry.
WRK2  ?=
GIVEN += WRK2
peers: build $(VENV)/.runtime ## Benchmark against wrk, wrk2, oha, k6, Locust, goaccess … into docs/peers.md: [WRK2=its source ARGS=]
	@set --; [ -z "$$WRK2" ] || set -- --wrk2 "$$WRK2"; benchmarks/run "$$@" $(ARGS)

locks: ## Rewrite the Python locks, for the lowest Python that pyproject.toml allows: [ARGS=--upgrade]
	@uv=$$(tools/need-uv --pinned "$(PYTHON)") && tools/locks write "$${uv:?}" $(ARGS)

clean: ## Remove build products; results are kept
	rm -rf bin build dist .cache/uv tools/node/node_modules $(VENV) plimsoll.egg-info benchmarks/installed

# A misspelt variable would be passed over in silence. Its value is never expanded.
UNKNOWN := $(sort $(foreach name,$(filter-out $(GIVEN) ARGS FUZZTIME PYTHON GO VENV BIN together CGO_ENABLED GOFLAGS SHELL MAKE MAKEFLAGS,$(.VARIABLES)),$(if $(filter command,$(origin $(name))),$(name))))
unexport $(UNKNOWN)

# What you give goes to the commands through the environment, as you wrote it: neither make nor a shell expands or runs it.
# This comes before any $(shell …), which hands the environment on, and so would expand it, since GNU make 4.4.
$(foreach name,$(GIVEN),$(eval override $(name) := $$(value $(name))))
export $(GIVEN)

NEAR = $(shell python3 -c 'import difflib, sys; print(*difflib.get_close_matches(sys.argv[1].upper(), sys.argv[2:], 1))' '$(subst ','\'',$(1))' $(GIVEN) ARGS FUZZTIME PYTHON GO)
$(if $(UNKNOWN),$(error $(foreach name,$(UNKNOWN),$(name) is not a variable of this Makefile ($(or $(patsubst %,did you mean %?,$(call NEAR,$(name))),`make` lists them)))))

# Where an image sets this, each of the thousand Pythons that the tests start would recompile all of its modules.
unexport PYTHONDONTWRITEBYTECODE

# All Go code is compiled with the same settings, so that builds, vet and tests share what the compiler has cached.
export CGO_ENABLED := 0
export GOFLAGS     := $(strip $(shell $(GO) env GOFLAGS 2>/dev/null) -trimpath)

# A virtual environment holds its own path: if it was moved or copied, or its Python is gone, it is rebuilt.
MOVED := $(shell tools/make-venv --fits $(VENV) || echo moved)
.PHONY: moved
moved: ;

$(VENV)/.runtime: uv.lock pyproject.toml $(MOVED)
	@tools/make-venv "$(PYTHON)" $(VENV)
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime
	@UV_COMPILE_BYTECODE=1 tools/make-venv "$(PYTHON)" $(VENV) dev regress
	@touch $@

$(VENV)/.regress: $(VENV)/.runtime
	@tools/make-venv "$(PYTHON)" $(VENV) regress
	@touch $@

bin/staticcheck: tools/staticcheck/go.mod
	@tools/need-go $(GO)
	@cd tools/staticcheck && $(GO) build -o ../../$@ honnef.co/go/tools/cmd/staticcheck

bin/gomutants: tools/gomutants/go.mod tools/gomutants/main.go
	@tools/need-go $(GO)
	@cd tools/gomutants && $(GO) build -o ../../$@ .

.PHONY: help setup build replay ab rehearse report signoff docs man dist image lint test golden test-lab test-lab-full mutants base-image site site-down vm-image zfs-vm bench regression k6 audit fuzz peers locks clean
