# The commands people use; README.md explains the first two.

GO ?= go
UP_FLAGS ?=

# How released programs are built. Checks and end-to-end tests use the same, so
# that the build cache serves all of them.
RELEASE = CGO_ENABLED=0 GOFLAGS=-trimpath

.PHONY: up test race build cross lint test-siyuan bench payload soak

## up: start everything on this machine (UP_FLAGS="--url http://127.0.0.1:6806 --allow rw")
up:
	@.ci/deps up
	$(GO) run ./cmd/siyuan-broker up $(UP_FLAGS)

# Packages whose tests live in SQLite, which the race detector slows twenty-fold,
# run without it here and with it in `make race`. Tests that judge how long a
# broken link takes run by themselves, and without it too: it takes their time.
SLOW_UNDER_RACE = connector/guard connector/proof connector/tools connector/siyuan/samplekernel
ALONE = cmd/internal/tunneltest
pick = $(shell $(GO) list ./... | grep $(1) -E '^siyuan-broker/($(shell echo $(2) | tr ' ' '|'))(/|$$)')

# Where .ci/deps puts the outside testers of the MCP endpoint.
export MCP_TOOLS ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/siyuan-broker/mcp-tools

## test: everything CI runs
test:
	@.ci/deps test
	$(MAKE) --no-print-directory lint
	@failed=0; set -x; \
	$(GO) test -race -timeout 15m $(call pick,-v,$(SLOW_UNDER_RACE) $(ALONE)) || failed=1; \
	$(GO) test -timeout 10m -p 1 $(call pick,,$(ALONE)) || failed=1; \
	$(GO) test -timeout 15m $(call pick,,$(SLOW_UNDER_RACE)) || failed=1; \
	{ set +x; } 2>/dev/null; exit $$failed

## race: the race detector on what make test runs without it; takes half an hour
race:
	$(GO) test -race -timeout 60m -p 1 $(call pick,,$(SLOW_UNDER_RACE) $(ALONE))

lint:
	@fmt=$$(gofmt -l .); if [ -n "$$fmt" ]; then echo "gofmt would change:"; echo "$$fmt"; exit 1; fi
	$(RELEASE) $(GO) vet ./...
	$(RELEASE) $(GO) tool staticcheck ./...

## build: both programs, static, into ./bin
build:
	$(RELEASE) $(GO) build -ldflags "-s -w" -o bin/ ./cmd/siyuan-broker ./cmd/siyuan-connector

## cross: the connector for the other systems it is released for, into ./bin/GOOS-GOARCH
cross:
	@for t in windows/amd64 darwin/arm64 linux/arm64; do \
		echo $$t; GOOS=$${t%/*} GOARCH=$${t#*/} $(RELEASE) $(GO) build -ldflags "-s -w" -o bin/$${t%/*}-$${t#*/}/ ./cmd/siyuan-connector || exit 1; \
	done

## test-siyuan: the same work in a real SiYuan (SIYUAN_API_URL, SIYUAN_TOKEN); it makes notebooks of its own and removes them
test-siyuan:
	@if [ -z "$(SIYUAN_API_URL)" ] || [ -z "$(SIYUAN_TOKEN)" ]; then echo "usage: make test-siyuan SIYUAN_API_URL=http://127.0.0.1:6806 SIYUAN_TOKEN=..."; exit 2; fi
	@.ci/deps test
	SIYUAN_API_URL="$(SIYUAN_API_URL)" SIYUAN_TOKEN="$(SIYUAN_TOKEN)" $(GO) test -count=1 -p 1 -run Live ./...

## bench: every target of speed in one table; FRPS and FRPC name frp's programs, SIYUAN_API_URL and SIYUAN_TOKEN a real SiYuan (docs/performance.md)
bench: build
	@.ci/deps test
	@$(RELEASE) $(GO) build -o bin/bench ./cmd/internal/bench
	@bin/bench

## payload: what an agent reads before its first call, in characters
payload:
	@$(GO) run ./cmd/siyuan-broker payload

## soak: the long versions of tests that make test keeps short
soak:
	@.ci/deps test
	PROOF_SEEDS=200 SOAK=1 $(GO) test -timeout 6h ./connector/proof ./cmd/internal/... ./broker/...
	KILL_SEEDS=500 $(GO) test -timeout 2h -run TestNothingIsWrittenTwice ./cmd/siyuan-broker
	for target in $$(grep -rlE '^func Fuzz' --include='*_test.go' . | xargs -n1 dirname | sort -u); do \
		for name in $$(grep -hoE '^func (Fuzz[A-Za-z0-9]+)' $$target/*_test.go | cut -d' ' -f2); do \
			$(GO) test -run xxx -fuzz "^$$name$$" -fuzztime 2m $$target || exit 1; \
		done; \
	done
