// Package version describes the build of the program. The same build appears in `capper version`, in both programs'
// --version, in the metric capper_build_info and in the manifests that segmentbuild writes.
//
// The linker sets the version of a build. Makefile, image, packages and archives pass the output of
// scripts/version.sh:
//
//	go build -ldflags "-X capper/internal/version.version=v1.2.3 -X ….commit=… -X ….date=…"
//
// Values that the linker does not set come from the build information that Go stores in every program. `go install`
// and `go build` in a checkout therefore know their commit too.
package version
