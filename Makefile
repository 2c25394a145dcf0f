# Commands for developers. Each target installs the tools that it needs below build/
# (redis-server through apt or brew) and stops the servers that it started.

LISTEN ?= 127.0.0.1:8080
MINUTES ?= 2
SEED ?= 1
FACTOR ?= 1

.PHONY: help build run quick test race storms demo bench torture engines lint openapi screenshots gallery chart vulncheck cluster-up cluster-down s3-up s3-down module-path clean image image-test deb deb-check deb-test release release-check

build: ## build both programs into build/bin, with the version that git reports
	go build -trimpath -buildvcs=false -ldflags "$$(scripts/version.sh ldflags)" -o build/bin/ ./cmd/...

run: build ## run a service on the embedded store with sample segments, and filter three campaigns
	LISTEN=$(LISTEN) scripts/run.sh

help: ## list the targets of this file
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "%-14s %s\n", $$1, $$2 }' Makefile

quick: ## test the domain and the leaf packages, without servers; about 55 s on 2 cores
	scripts/test.sh quick

test: ## run all tests except the storms, on a Redis Cluster and an S3 server; 8 minutes on 2 cores with warm caches
	scripts/test.sh

race: ## run the tests of files that start goroutines with the race detector
	scripts/test.sh race

storms: ## test faults under load, operators' procedures, alerts, rented Redis servers and the image; needs root
	scripts/test.sh storms
	scripts/image-test.sh

demo: build ## run the whole system: S3, 3 Redis masters with 3 replicas, segments, calls with a million users
	scripts/demo.sh

bench: ## measure the figures in docs/benchmarks.md; FACTOR=10 divides the sizes by ten
	FACTOR=$(FACTOR) scripts/bench.sh

torture: ## test a store under random faults: make torture MINUTES=2 SEED=1 STORE=redis (or embedded)
	MINUTES=$(MINUTES) SEED=$(SEED) STORE=$(STORE) scripts/torture.sh

image: ## build the container image with buildah, podman or docker
	scripts/image.sh

image-test: ## build the image, run it without rights on a read-only root, and check its errors; needs root
	scripts/image-test.sh

deb: ## build the Debian package into build/deb
	scripts/deb.sh

deb-check: ## check the Debian package: contents, unit files, equal bytes of two builds
	scripts/deb-test.sh check

deb-test: ## boot a Debian, then install, start, reload, upgrade and remove the package in it; needs root
	scripts/deb-test.sh boot

release: ## build archives for linux and darwin into build/dist with goreleaser
	scripts/release.sh

release-check: ## check goreleaser's configuration, and that two builds of all archives have equal bytes; takes long
	scripts/release.sh check

engines: ## test the Redis store on other servers: make engines ENGINES="valkey-9.1 redis-8.0"
	scripts/engines.sh test $(ENGINES)

lint: ## check format, line width, vet and staticcheck, for the storms too
	scripts/lint.sh

openapi: ## lint the OpenAPI description of the API, and compile its types with tsc --strict
	scripts/openapi.sh

gallery: ## take pictures of every console page at 1440, 768 and 390 pixels, for people, into build/gallery
	scripts/screenshots.sh gallery

screenshots: ## take the pictures of docs/console.md in Chromium
	scripts/screenshots.sh

vulncheck: ## look for known vulnerabilities; needs the Internet
	go run golang.org/x/vuln/cmd/govulncheck@v1.1.4 ./...
	cd client && go run golang.org/x/vuln/cmd/govulncheck@v1.1.4 ./...

cluster-up: ## start a Redis Cluster of 3 masters and 3 replicas in build/cluster
	scripts/cluster.sh up build/cluster
	@echo "a cluster is up: . build/cluster/env names its nodes"

cluster-down: ## stop the Redis Cluster of build/cluster
	scripts/cluster.sh down build/cluster

s3-up: ## start an S3 server in build/s3
	scripts/s3.sh up build/s3
	@echo "an S3 server with the bucket segments is up: . build/s3/env sets what clients need"
	@echo "then: segmentbuild build --to s3://segments/prod --segment vip=testdata/segments/vip.csv"

chart: ## test the Helm chart with helm; compiling helm takes minutes the first time
	scripts/chart.sh

s3-down: ## stop the S3 server of build/s3
	scripts/s3.sh down build/s3

module-path: ## change the modules' import path: make module-path NEW=github.com/acme/capper
	scripts/module-path.sh "$(NEW)"

clean: ## remove all built files
	rm -rf build
