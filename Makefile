# weir: build, test, try. `make demo` and `make test` are all that a newcomer needs.

BIN  := bin
LINT := $(BIN)/golangci-lint
LINT_VERSION := v2.15.0

.PHONY: build demo test lint needs bench golden clean web

build: web ## the command, bin/weir
	go build -o $(BIN)/weir ./cmd/weir

demo: build ## half a minute of load on the built-in server, then a verdict and a report
	$(BIN)/weir run

test: needs build ## all tests; installs the real servers and clients that they use
	go test -timeout 30m ./...

needs: ## what the tests use and Debian has (lab/packages.txt)
	@sh lab/needs.sh

web: ## the pages' scripts, where there is Node; elsewhere plots stand still
	@sh web/build

lint: $(LINT) ## rules of .golangci.yml
	$(LINT) run

$(LINT): Makefile
	GOBIN=$(CURDIR)/$(BIN) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)
	@touch $@

bench: needs build ## measured against the peers: rewrites docs/benchmarks.md (about fifteen minutes)
	go run ./internal/bench -weir $(BIN)/weir -out docs/benchmarks.md

golden: ## rewrite the expected outputs of tests after looking at them
	go test ./... -run 'Golden|Script' -update

clean:
	rm -rf $(BIN) runs web/dist/*.js web/dist/*.css
