// Package version describes the build of the program. The description of the build appears in the output of `capper
// version`, in --version of both programs, in the metric capper_build_info, and in the manifests that segmentbuild
// writes.
//
// The linker sets the version, the commit and the date of a build. All builds (Makefile, container image, packages and
// archives) pass the version to the linker in this way (scripts/version.sh prints the options):
//
//	go build -ldflags "-X capper/internal/version.version=v1.2.3 -X ….commit=… -X ….date=…"
//
// If the linker sets no version, package version uses the build information that Go stores in every program. Go's build
// information also contains the commit of programs that were built with `go install`, or with `go build` in a checkout.
package version
