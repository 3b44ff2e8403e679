# weir: build, test, try. `make demo` and `make test` are all that a newcomer needs.

BIN   := bin
BUILD := build
LINT := $(BIN)/golangci-lint
LINT_VERSION := v2.15.0
TESTSUM := $(BIN)/gotestsum
TESTSUM_VERSION := v1.13.0
NFPM := $(BIN)/nfpm
NFPM_VERSION := v2.45.2

# Where make install puts things (PREFIX=~/.local needs no root). DESTDIR goes before all of them, for packages.
PREFIX   ?= /usr/local
override PREFIX := $(patsubst ~/%,$(HOME)/%,$(PREFIX))
BINDIR   ?= $(PREFIX)/bin
MANDIR   ?= $(PREFIX)/share/man/man1
BASHDIR  ?= $(PREFIX)/share/bash-completion/completions
ZSHDIR   ?= $(PREFIX)/share/zsh/site-functions
FISHDIR  ?= $(PREFIX)/share/fish/vendor_completions.d

.PHONY: man completions install uninstall screenshots
.PHONY: build demo test test-rucio test-xrootd lint needs bench bench-page rigs reports chaos golden clean web release site

# It runs on machines with another libc, too, where batch systems bring it, and is as small as can be.
build: web ## the command, bin/weir
	CGO_ENABLED=0 go build -ldflags "-s -w" -o $(BIN)/weir ./cmd/weir

man: build ## the manual pages, build/man1
	@$(MAKE) --no-print-directory $(BUILD)/man1/weir.1

completions: build ## what shells need to complete, build/completions
	@$(MAKE) --no-print-directory $(BUILD)/completions/weir

$(BIN)/weir:
	$(MAKE) build

$(BUILD)/man1/weir.1: $(BIN)/weir
	rm -rf $(BUILD)/man1
	$(BIN)/weir man $(BUILD)/man1

$(BUILD)/completions/weir: $(BIN)/weir
	mkdir -p $(BUILD)/completions
	$(BIN)/weir completion bash > $(BUILD)/completions/weir
	$(BIN)/weir completion zsh > $(BUILD)/completions/_weir
	$(BIN)/weir completion fish > $(BUILD)/completions/weir.fish
	$(BIN)/weir completion powershell > $(BUILD)/completions/weir.ps1

# It builds only what is missing, so that root, who may have no Go, can install what a user has built.
install: $(BIN)/weir $(BUILD)/man1/weir.1 $(BUILD)/completions/weir ## the command, its pages and completions, below PREFIX
	install -d "$(DESTDIR)$(BINDIR)" "$(DESTDIR)$(MANDIR)" "$(DESTDIR)$(BASHDIR)" "$(DESTDIR)$(ZSHDIR)" "$(DESTDIR)$(FISHDIR)"
	install -m 755 $(BIN)/weir "$(DESTDIR)$(BINDIR)/weir"
	install -m 644 $(BUILD)/man1/*.1 "$(DESTDIR)$(MANDIR)"
	install -m 644 $(BUILD)/completions/weir "$(DESTDIR)$(BASHDIR)/weir"
	install -m 644 $(BUILD)/completions/_weir "$(DESTDIR)$(ZSHDIR)/_weir"
	install -m 644 $(BUILD)/completions/weir.fish "$(DESTDIR)$(FISHDIR)/weir.fish"

uninstall: $(BUILD)/man1/weir.1 ## what make install has put there, and nothing else
	cd $(BUILD)/man1 && for page in *.1; do rm -f "$(DESTDIR)$(MANDIR)/$$page"; done
	rm -f "$(DESTDIR)$(BINDIR)/weir" "$(DESTDIR)$(BASHDIR)/weir" "$(DESTDIR)$(ZSHDIR)/_weir" "$(DESTDIR)$(FISHDIR)/weir.fish"

demo: build ## half a minute of load on the built-in server, then a verdict and a report
	$(BIN)/weir run

# It is built from a commit, with the pages' scripts: the same commit and the same Go give the same bytes.
release: $(NFPM) ## the files of a release, dist/: make release VERSION=1.2.3
	rm -rf dist
	sh web/build --check && sh web/build
	go run ./cmd/release -version "$(VERSION)" -nfpm $(NFPM)

$(NFPM): Makefile
	GOBIN=$(CURDIR)/$(BIN) go install github.com/goreleaser/nfpm/v2/cmd/nfpm@$(NFPM_VERSION)
	@touch $@

site: ## the documentation as HTML with a search, build/site
	go run ./cmd/site -out $(BUILD)/site

# A test that fails is run once more, alone: real servers on a busy machine may be late. One that passes then is listed at the end
# and is a defect of the test. More than twelve failures are not repeated.
test: needs build $(TESTSUM) $(NFPM) ## all tests; installs the real servers and clients that they use
	@mkdir -p $(BUILD)
	$(TESTSUM) --format pkgname --format-hide-empty-pkg --rerun-fails=1 --rerun-fails-max-failures=12 --rerun-fails-run-root-test \
		--rerun-fails-report=$(BUILD)/repeated.txt --packages=./... -- -timeout 45m
	@if [ -s $(BUILD)/repeated.txt ]; then echo "These tests failed and were repeated:"; cat $(BUILD)/repeated.txt; fi

needs: ## what the tests use: Debian packages (lab/packages.txt), Python packages (lab/python.txt, lab/fts.txt), HTCondor and later XRootDs (lab/condor.txt, lab/xrootd-*.txt), Kubernetes (lab/kubernetes), an S3 service (lab/versitygw)
	@sh lab/needs.sh
	@sh lab/python.sh python
	@sh lab/python.sh fts
	@sh lab/build.sh kubernetes
	@sh lab/build.sh versitygw
	@for each in lab/condor.txt lab/xrootd-*.txt; do sh lab/unpack.sh $$(basename $$each .txt) || exit 1; done

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

bench: needs build ## measured against the peers: rewrites docs/benchmarks.md and prints what changed (about forty minutes; CASES=tls measures those whose names begin so)
	mkdir -p $(BUILD)
	go test ./bench -run '^$$' -bench 'Peers/^$(CASES)' -timeout 3h -weir $(CURDIR)/$(BIN)/weir | tee $(BUILD)/bench.txt
	go test ./bench -run TestWritePage -count 1 -v -results $(CURDIR)/docs/benchmarks.md,$(CURDIR)/$(BUILD)/bench.txt -out $(CURDIR)/docs/benchmarks.md

bench-page: ## the text and the picture of docs/benchmarks.md written anew, its figures kept
	go test ./bench -run TestWritePage -count 1 -results $(CURDIR)/docs/benchmarks.md -out $(CURDIR)/docs/benchmarks.md

rigs: needs build ## situations whose truth is known, and 200 healthy runs: rewrites docs/truth.md (about half an hour)
	go test ./bench/rigs -run TestRigs -full -timeout 2h -count 1 -v -weir $(CURDIR)/$(BIN)/weir -out $(CURDIR)/docs/truth.md

# Interrupt it with Ctrl-C, and start it again when the machine is free: it goes on where it was.
reports: needs build ## the runs of docs/reports that are not in runs/ yet, their texts and figures (a day; ONLY=003 makes some)
	go test ./bench/reports -run TestMake -timeout 100h -count 1 -v -weir $(CURDIR)/$(BIN)/weir -only "$(ONLY)"

screenshots: build ## the pictures of the pages, docs/*.png (four minutes; best on a machine that does nothing else)
	WEIR_SCREENSHOTS=$(CURDIR)/docs go test ./cmd/weir -run 'TestScreenshots|TestFigureOfDocs' -count 1 -v

chaos: needs ## faults, for as long as they take: of runs on many machines (three minutes), and of transfers, on SQLite and on PostgreSQL (ten)
	WEIR_LONG=1 go test ./cluster -run 'TestWorkersAreKilled|TestTheNetworkIsCut|TestAKilledController|TestJobsThatEnd|TestAControllerKilled' -count 1 -v
	WEIR_LONG=1 go test ./transfer/chaos -timeout 40m -count 1 -v

# The files at the source are links to a hundred contents: 10,000 need 11 GB in TMPDIR, as long as the test runs.
test-rucio: needs ## Rucio transfers 10,000 files of 1 MiB with weir (FILES=1000 fewer), on SQLite and on PostgreSQL, and what it waits for is printed
	WEIR_REQUIRE=all WEIR_RUCIO_FILES=$(or $(FILES),10000) go test ./transfer/coordinator -run TestRucioKilled -timeout 6h -count 1 -v

test-xrootd: needs build ## whatever is tested on XRootD, on each of its versions (seven minutes)
	WEIR_REQUIRE=all WEIR_XROOTD=all go test ./lab ./storage/xrootd/... ./storage/webdav ./internal/tpc ./serve ./transfer/coordinator ./cmd/weir \
		-run 'XRootD|Suite|Redirect|Demand|Signed|Cluster|Copies|Killed|Checksums|Proxies' -timeout 45m -count 1

golden: ## rewrite the expected outputs of tests after looking at them
	go test ./report ./scenario ./internal/content -update

clean: ## what was built; runs/ stays
	rm -rf $(BIN) $(BUILD) dist web/dist/*.js web/dist/*.css
