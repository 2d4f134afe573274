# Onceward. `make` alone lists what can be made; the list is made from the
# comments behind the targets.

GO       ?= go
FUZZTIME ?= 30s
KILLS    ?= 300
ROUNDS   ?= 10000

# One set of flags for all that is built, so that the tests, the linters and the
# program share what is compiled: static, and without the paths of the machine.
export CGO_ENABLED := 0
export GOFLAGS     := $(GOFLAGS) -trimpath -buildvcs=false

PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64

# What the tests start beside Go: a PostgreSQL server and PgBouncer, each with
# its files in a temporary folder, and a C compiler for the race detector.
# Debian keeps PostgreSQL's programs off the PATH.
has_postgres  = command -v postgres || ls /usr/lib/postgresql/*/bin/postgres
has_pgbouncer = command -v pgbouncer || ls /usr/sbin/pgbouncer
has_compiler  = command -v $$($(GO) env CC)

.DEFAULT_GOAL := help
.PHONY: help test vet unit race services planted converge races crash soak bench fuzz lint fmt build cover clean

help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

test: services vet unit race planted ## Run every test; install what they need first (this is the one that must pass).

vet: ## Run go vet.
	$(GO) vet ./...
	$(GO) vet -tags planted ./internal/planted

unit: ## Run the tests, in random order.
	$(GO) test -shuffle=on -timeout=15m ./...

# Lifecycle and inboxtest play many orders one after the other, which finds no
# race that the packages they play on do not find sooner.
race: ## Run the tests under the race detector, the long ones in their short form.
	@packages=$$($(GO) list ./...) || exit 1; set -x; CGO_ENABLED=1 $(GO) test -race -short -shuffle=on -timeout=15m \
		$$(echo "$$packages" | grep -v -e '/internal/lifecycle$$' -e '/inbox/inboxtest$$')

services: ## Install PostgreSQL, PgBouncer and a C compiler if they are missing (Debian, as root).
	@missing=; \
	{ $(has_postgres); } >/dev/null 2>&1 || missing="$$missing postgresql"; \
	{ $(has_pgbouncer); } >/dev/null 2>&1 || missing="$$missing pgbouncer"; \
	{ $(has_compiler); } >/dev/null 2>&1 || missing="$$missing gcc libc6-dev"; \
	if [ -z "$$missing" ]; then exit 0; fi; \
	if [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then \
		echo "The tests need these Debian packages, or what your system calls them:$$missing" >&2; \
		echo "Install them, or run 'make services' as root on Debian." >&2; \
		exit 1; \
	fi; \
	echo "installing$$missing"; \
	export DEBIAN_FRONTEND=noninteractive; \
	apt-get -o DPkg::Lock::Timeout=300 -q update && \
	apt-get -o DPkg::Lock::Timeout=300 -q install --yes --no-install-recommends $$missing

planted: services ## Plant each wrong guard of a list in the code, and want the general suites to notice.
	$(GO) test -count=1 -tags planted -timeout=15m -v -run 'TestPlants$$' ./internal/planted

converge: services ## Play every order of every sample lifecycle on both stores.
	ONCEWARD_CONVERGE=all $(GO) test -count=1 -timeout=2h -v ./provider ./internal/lifecycle -run 'Converge|EveryOrder'

races: services ## Race two processes over each store for ROUNDS rounds, and check concurrent histories.
	ONCEWARD_RACES=$(ROUNDS) $(GO) test -count=1 -timeout=2h -v \
		-run '^(TestStore|TestStoreInPool|TestConformance)$$/^(processes|linearizable)$$' ./sqlite ./postgres

crash: services ## Kill the server KILLS times under load and look for what was acknowledged.
	ONCEWARD_CRASH=$(KILLS) $(GO) test -count=1 -timeout=2h -v -run Crash ./internal/cli

soak: converge races crash fuzz ## Run all the long forms, one after the other: some hours.

bench: services ## Measure against the ceiling and against handlers written by hand; writes bench/RESULTS.md.
	$(GO) run ./bench

fuzz: ## Run each fuzz target for FUZZTIME.
	@set -e; \
	for dir in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u); do \
		for target in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' $$dir/*_test.go); do \
			echo "$$dir $$target"; \
			$(GO) test -run='^$$' -fuzz="^$$target\$$" -fuzztime=$(FUZZTIME) -fuzzminimizetime=10x $$dir; \
		done; \
	done

.tools/golangci-lint: tools/go.mod tools/go.sum
	$(GO) -C tools build -o ../.tools/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint

lint: .tools/golangci-lint ## Run the linters; .golangci.yaml says which.
	.tools/golangci-lint run

fmt: ## Format the code.
	gofmt -l -w .

build: ## Build the program for every platform, into dist.
	@set -e; for platform in $(PLATFORMS); do \
		os=$${platform%/*} arch=$${platform#*/} ext=; \
		[ $$os != windows ] || ext=.exe; \
		echo "dist/onceward-$$os-$$arch$$ext"; \
		GOOS=$$os GOARCH=$$arch $(GO) build -buildvcs=auto -ldflags='-s -w' -o dist/onceward-$$os-$$arch$$ext ./cmd/onceward; \
	done

cover: services ## Show how much of the code the tests run; dist/cover.html has the lines.
	@mkdir -p dist
	$(GO) test -coverpkg=./... -coverprofile=dist/cover.out -timeout=30m ./...
	$(GO) tool cover -html=dist/cover.out -o dist/cover.html
	@$(GO) tool cover -func=dist/cover.out | tail -n 1

clean: ## Remove what was built.
	rm -rf dist .tools onceward
