# The commands people use; README.md explains the first two.

GO ?= go
UP_FLAGS ?=

.PHONY: up test build lint test-siyuan bench payload soak

## up: start everything on this machine (UP_FLAGS="--url http://127.0.0.1:6806 --allow rw")
up:
	@.ci/deps up
	$(GO) run ./cmd/siyuan-broker up $(UP_FLAGS)

## test: everything CI runs
test:
	@.ci/deps test
	$(MAKE) --no-print-directory lint
	$(GO) test -race -timeout 15m ./...

lint:
	@fmt=$$(gofmt -l .); if [ -n "$$fmt" ]; then echo "gofmt would change:"; echo "$$fmt"; exit 1; fi
	$(GO) vet ./...
	$(GO) tool staticcheck ./...

## build: both programs, static, into ./bin
build:
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-s -w" -o bin/ ./cmd/siyuan-broker ./cmd/siyuan-connector
