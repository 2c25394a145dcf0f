// Package version says what was built: the same in `capper version`, both
// programs' --version, the metric capper_build_info and the manifests that
// segmentbuild writes.
//
// A build is stamped from outside, as Makefile, image, packages and archives do,
// with what scripts/version.sh finds:
//
//	go build -ldflags "-X capper/internal/version.version=v1.2.3 -X ….commit=… -X ….date=…"
//
// What is not stamped is read from what Go itself keeps in a program: so `go
// install` and `go build` in a checkout tell their commit as well.
package version
