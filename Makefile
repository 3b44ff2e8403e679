# weir: build, test, try. `make demo` and `make test` are all that a newcomer needs.

BIN   := bin
BUILD := build
LINT := $(BIN)/golangci-lint
LINT_VERSION := v2.15.0
TESTSUM := $(BIN)/gotestsum
TESTSUM_VERSION := v1.13.0
SUITE := $(BIN)/suite
PACKAGES ?= ./...
BASE ?= auto
LIMIT ?= 40m
NFPM := $(BIN)/nfpm
NFPM_VERSION := v2.45.2

# Where make install puts things (PREFIX=~/.local needs no root). DESTDIR goes before all of them, for packages.
PREFIX   ?= /usr/local
override PREFIX := $(patsubst ~/%,$(HOME)/%,$(PREFIX))
BINDIR   ?= $(PREFIX)/bin
MANDIR   ?= $(PREFIX)/share/man
BASHDIR  ?= $(PREFIX)/share/bash-completion/completions
ZSHDIR   ?= $(PREFIX)/share/zsh/site-functions
FISHDIR  ?= $(PREFIX)/share/fish/vendor_completions.d

.PHONY: man completions install uninstall screenshots
.PHONY: build demo test test-full test-changed test-rucio test-xrootd lint needs needs-full bench bench-page rigs proof reports chaos golden clean web release site

# It runs on machines with another libc, too, where batch systems bring it, and is as small as can be.
build: web ## the command, bin/weir
	CGO_ENABLED=0 go build -ldflags "-s -w" -o $(BIN)/weir ./cmd/weir

man: build ## the manual pages, build/man
	@$(MAKE) --no-print-directory $(BUILD)/man/weir.1

completions: build ## what shells need to complete, build/completions
	@$(MAKE) --no-print-directory $(BUILD)/completions/weir

$(BIN)/weir:
	$(MAKE) build

$(BUILD)/man/weir.1: $(BIN)/weir
	rm -rf $(BUILD)/man
	$(BIN)/weir man $(BUILD)/man

$(BUILD)/completions/weir: $(BIN)/weir
	mkdir -p $(BUILD)/completions
	$(BIN)/weir completion bash > $(BUILD)/completions/weir
	$(BIN)/weir completion zsh > $(BUILD)/completions/_weir
	$(BIN)/weir completion fish > $(BUILD)/completions/weir.fish
	$(BIN)/weir completion powershell > $(BUILD)/completions/weir.ps1

# It builds only what is missing, so that root, who may have no Go, can install what a user has built.
install: $(BIN)/weir $(BUILD)/man/weir.1 $(BUILD)/completions/weir ## the command, its pages and completions, below PREFIX
	install -d "$(DESTDIR)$(BINDIR)" "$(DESTDIR)$(MANDIR)/man1" "$(DESTDIR)$(MANDIR)/man5" "$(DESTDIR)$(MANDIR)/man7" "$(DESTDIR)$(BASHDIR)" "$(DESTDIR)$(ZSHDIR)" "$(DESTDIR)$(FISHDIR)"
	install -m 755 $(BIN)/weir "$(DESTDIR)$(BINDIR)/weir"
	for n in 1 5 7; do install -m 644 $(BUILD)/man/*.$$n "$(DESTDIR)$(MANDIR)/man$$n"; done
	install -m 644 $(BUILD)/completions/weir "$(DESTDIR)$(BASHDIR)/weir"
	install -m 644 $(BUILD)/completions/_weir "$(DESTDIR)$(ZSHDIR)/_weir"
	install -m 644 $(BUILD)/completions/weir.fish "$(DESTDIR)$(FISHDIR)/weir.fish"

uninstall: $(BUILD)/man/weir.1 ## what make install has put there, and nothing else
	cd $(BUILD)/man && for page in *; do rm -f "$(DESTDIR)$(MANDIR)/man$${page##*.}/$$page"; done
	rm -f "$(DESTDIR)$(BINDIR)/weir" "$(DESTDIR)$(BASHDIR)/weir" "$(DESTDIR)$(ZSHDIR)/_weir" "$(DESTDIR)$(FISHDIR)/weir.fish"

demo: build ## half a minute of load on the built-in server, then a verdict and a report
	$(BIN)/weir run

# It is built from a commit, with the pages' scripts: the same commit and the same Go give the same bytes.
release: $(NFPM) ## the files of a release, dist/: make release VERSION=1.2.3
	rm -rf dist
	sh web/build --check && sh web/build
	go run ./cmd/release -version "$(VERSION)" -nfpm $(NFPM) $(if $(MAINTAINER),-maintainer "$(MAINTAINER)") $(if $(HOMEPAGE),-homepage "$(HOMEPAGE)")

$(NFPM): Makefile
	GOBIN=$(CURDIR)/$(BIN) go install github.com/goreleaser/nfpm/v2/cmd/nfpm@$(NFPM_VERSION)
	@touch $@

site: ## the documentation as HTML with a search, build/site
	go run ./cmd/site -out $(BUILD)/site

# WEIR_REQUIRE=all fails tests that would be skipped since something is missing. ARGS go to go test: make test ARGS=-count=1.
test: needs build $(TESTSUM) $(SUITE) ## the first tier of tests: every package and every kind of server once; installs what they need (15 minutes)
	$(SUITE) -packages "$(PACKAGES)" -- $(ARGS)

# A test that fails is run once more, alone. One that passes then is listed at the end and is a defect of the test.
test-full: needs-full build $(TESTSUM) $(SUITE) $(NFPM) ## all tests: every version and database, Kubernetes, Rucio, documentation line by line (an hour; PACKAGES=./lab some)
	$(SUITE) -full -packages "$(PACKAGES)" -- $(ARGS)

# A limit ends it, not an error: packages that it leaves untested are listed.
test-changed: needs-full build $(TESTSUM) $(SUITE) $(NFPM) ## the full tier of packages that changed since BASE (a commit; by default in the last 3 hours of work), for LIMIT at most
	$(SUITE) -full -changed "$(BASE)" -limit "$(LIMIT)" -- $(ARGS)

$(SUITE): $(wildcard cmd/suite/*.go)
	go build -o $@ ./cmd/suite

needs: ## what the first tier of tests uses: Debian and Python packages, HTCondor, an S3 service (lab/needs.sh)
	@sh lab/needs.sh

needs-full: ## what the full tier uses: also further XRootDs, Kubernetes, and tools of the benchmarks and the release
	@sh lab/needs.sh full

web: ## the pages' scripts, where there is Node; elsewhere plots stand still
	@sh web/build

lint: $(LINT) ## rules of .golangci.yml
	$(LINT) run

$(LINT): Makefile
	GOBIN=$(CURDIR)/$(BIN) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)
	@touch $@

$(TESTSUM): Makefile
	GOBIN=$(CURDIR)/$(BIN) go install gotest.tools/gotestsum@$(TESTSUM_VERSION)
	@touch $@

bench: needs-full build ## measured against the peers: rewrites docs/benchmarks.md and prints what changed (about forty minutes; CASES=tls measures those whose names begin so)
	mkdir -p $(BUILD)
	go test ./benchmarks -run '^$$' -bench 'Peers/^$(CASES)' -timeout 3h -weir $(CURDIR)/$(BIN)/weir | tee $(BUILD)/bench.txt
	go test ./benchmarks -run TestWritePage -count 1 -v -results $(CURDIR)/docs/benchmarks.md,$(CURDIR)/$(BUILD)/bench.txt -out $(CURDIR)/docs/benchmarks.md

bench-page: ## the text and the picture of docs/benchmarks.md written anew, its figures kept
	go test ./benchmarks -run TestWritePage -count 1 -results $(CURDIR)/docs/benchmarks.md -out $(CURDIR)/docs/benchmarks.md

rigs: needs-full build ## situations whose truth is known, and 200 healthy runs: rewrites docs/truth.md (AREA=load or challenge: half an hour each; AREA=diagnose: five hours, goes on where it was)
	WEIR_TIER=full go test ./benchmarks/rigs -run 'TestRigs|TestChallengeRigs|TestDiagnoseRigs' -full -area "$(AREA)" -keep $(CURDIR)/$(BUILD)/rigs -parallel 4 -timeout 10h -count 1 -v -weir $(CURDIR)/$(BIN)/weir -out $(CURDIR)/docs/truth.md

proof: needs-full build ## data challenges of half an hour between six real sites, by each injector (two hours, on a machine that does nothing else)
	WEIR_TIER=full go test ./benchmarks/rigs -run TestChallengeProof -minutes 30 -parallel 1 -timeout 4h -count 1 -v -weir $(CURDIR)/$(BIN)/weir

# Interrupt it with Ctrl-C, and start it again when the machine is free: it goes on where it was.
reports: needs-full build ## the runs of docs/reports that are not in runs/ yet, their texts and figures (a day; ONLY=003 makes some)
	go test ./benchmarks/reports -run TestMake -timeout 100h -count 1 -v -weir $(CURDIR)/$(BIN)/weir -only "$(ONLY)"

screenshots: build ## the pictures of the pages, docs/*.png (four minutes; best on a machine that does nothing else)
	WEIR_TIER=full WEIR_SCREENSHOTS=$(CURDIR)/docs go test ./cmd/weir -run 'TestScreenshots|TestFigureOfDocs' -count 1 -v

chaos: needs-full ## faults, for as long as they take: of runs on many machines (three minutes), and of transfers, on SQLite and on PostgreSQL (ten)
	WEIR_TIER=full WEIR_LONG=1 go test ./loadtest/cluster -run 'TestWorkersAreKilled|TestTheNetworkIsCut|TestAKilledController|TestJobsThatEnd|TestAControllerKilled' -count 1 -v
	WEIR_TIER=full WEIR_LONG=1 go test ./transfer/chaos -timeout 40m -count 1 -v

# The files at the source are links to a hundred contents: 10,000 need 11 GB in TMPDIR, as long as the test runs.
test-rucio: needs-full ## Rucio transfers 10,000 files of 1 MiB with weir (FILES=1000 fewer), on SQLite and on PostgreSQL, and what it waits for is printed
	WEIR_REQUIRE=all WEIR_TIER=full WEIR_RUCIO_FILES=$(or $(FILES),10000) go test ./transfer/coordinator -run TestRucioKilled -timeout 6h -count 1 -v

test-xrootd: needs-full build ## whatever is tested on XRootD, on each of its versions (seven minutes)
	WEIR_REQUIRE=all WEIR_TIER=full go test ./lab ./storage/xrootd/... ./storage/webdav ./internal/tpc ./serve ./transfer/coordinator ./cmd/weir \
		-run 'XRootD|Suite|Redirect|Demand|Signed|Cluster|Copies|Killed|Checksums|Proxies' -timeout 45m -count 1

golden: ## rewrite the expected outputs of tests after looking at them
	go test ./loadtest/report ./loadtest/scenario ./internal/content -update

clean: ## what was built; runs/ stays
	rm -rf $(BIN) $(BUILD) dist web/dist/*.js web/dist/*.css
