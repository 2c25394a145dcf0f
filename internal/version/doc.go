// Package version describes the build of the program. The same description of the build appears in the output of
// `capper version`, in --version of both programs, in the metric capper_build_info, and in the manifests that
// segmentbuild writes.
//
// The linker sets the version, the commit and the date of a build. The builds of the Makefile, the container image,
// the packages and the archives pass the version to the linker as follows (scripts/version.sh prints the options):
//
//	go build -ldflags "-X capper/internal/version.version=v1.2.3 -X ….commit=… -X ….date=…"
//
// If the linker sets no version, package version uses the build information that Go stores in every program. This build
// information also contains the commit of programs that were built with `go install`, or with `go build` in a checkout.
package version
