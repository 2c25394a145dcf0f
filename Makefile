# What a person would type. Each target installs what it needs below build/
# (redis-server through apt or brew) and stops what it started.

LISTEN ?= 127.0.0.1:8080
MINUTES ?= 2
SEED ?= 1
FACTOR ?= 1

.PHONY: build run quick test storms demo bench torture engines lint openapi screenshots chart vulncheck cluster-up cluster-down s3-up s3-down module-path clean image image-test deb deb-check deb-test release release-check

build: ## both programs, into build/bin, stamped with what git says they are
	go build -trimpath -buildvcs=false -ldflags "$$(scripts/version.sh ldflags)" -o build/bin/ ./cmd/...

run: build ## a service on the embedded store with sample segments, and a first campaign
	LISTEN=$(LISTEN) scripts/run.sh

quick: ## the tests of the domain and the leaves: no server, no program; about a minute
	scripts/test.sh quick

test: ## every test but the storms, on a real cluster and a real S3 server; about ten minutes
	scripts/test.sh

storms: ## storms, kills, drills, alerts and rented servers, and the image; needs root for the image
	scripts/test.sh storms
	scripts/image-test.sh

demo: build ## the whole system: S3, a 3+3 cluster, segmentbuild, capper, blasts of a million users
	scripts/demo.sh

bench: ## both sides of the figures in docs/benchmarks.md; FACTOR=10 for a tenth of the sizes
	FACTOR=$(FACTOR) scripts/bench.sh

torture: ## faults at random: make torture MINUTES=2 SEED=1 STORE=redis (or embedded)
	MINUTES=$(MINUTES) SEED=$(SEED) STORE=$(STORE) scripts/torture.sh

image: ## the container image, with buildah, podman or docker
	scripts/image.sh

image-test: ## the image, tried: built, run as nobody on a read-only root, refused what it must refuse; needs root
	scripts/image-test.sh

deb: ## the Debian package, into build/deb
	scripts/deb.sh

deb-check: ## the Debian package looked at: contents, unit files, two builds with the same bytes
	scripts/deb-test.sh check

deb-test: ## the Debian package installed, started, reloaded, upgraded and removed in a Debian that is booted for it; needs root
	scripts/deb-test.sh boot

release: ## archives for linux and darwin, into build/dist, with goreleaser
	scripts/release.sh

release-check: ## goreleaser's check, and two builds of all archives with the same bytes; long
	scripts/release.sh check

engines: ## the tests of the Redis store on Valkey, newer and older Redis: make engines ENGINES="valkey-9.1 redis-8.0"
	scripts/engines.sh test $(ENGINES)

lint: ## gofmt, vet, staticcheck, over the storms too
	scripts/lint.sh

openapi: ## the API's description: a linter, and its types under tsc --strict
	scripts/openapi.sh

screenshots: ## the pictures of docs/console.md, in a Chromium
	scripts/screenshots.sh

vulncheck: ## known vulnerabilities; needs the network's vulnerability database
	go run golang.org/x/vuln/cmd/govulncheck@v1.1.4 ./...
	cd client && go run golang.org/x/vuln/cmd/govulncheck@v1.1.4 ./...

cluster-up: ## a 3+3 Redis Cluster in build/cluster
	scripts/cluster.sh up build/cluster
	@echo "a cluster is up: . build/cluster/env names its nodes"

cluster-down:
	scripts/cluster.sh down build/cluster

s3-up: ## an S3 server in build/s3
	scripts/s3.sh up build/s3
	@echo "an S3 server is up: . build/s3/env sets what clients need"

chart: ## the Helm chart by the whole of helm, which takes minutes to compile once
	scripts/chart.sh

s3-down:
	scripts/s3.sh down build/s3

module-path: ## give the modules the address of who hosts them: make module-path NEW=github.com/acme/capper
	scripts/module-path.sh "$(NEW)"

clean:
	rm -rf build
