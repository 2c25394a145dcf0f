package zones

import (
	"archive/zip"
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

//go:generate sh update.sh

// Version returns the release of the IANA time zone database in the program, such as 2025c.
func Version() string { return strings.TrimSpace(version) }

//go:embed version.txt
var version string

//go:embed zoneinfo.zip
var archive string

// noPlace is the name of an entry in the time zone database that is not a time zone. The entry "Factory" marks machines
// whose time zone nobody has set.
const noPlace = "Factory"

// The function database returns the files of the embedded time zone archive, by the names of the time zones.
var database = sync.OnceValue(func() map[string]*zip.File {
	all, err := zip.NewReader(strings.NewReader(archive), int64(len(archive)))
	if err != nil {
		panic(fmt.Sprintf("zones: the embedded database: %v", err)) // a test opens the archive
	}
	files := make(map[string]*zip.File, len(all.File))
	for _, file := range all.File {
		if !strings.HasSuffix(file.Name, "/") && file.Name != noPlace {
			files[file.Name] = file
		}
	}
	return files
})

// The map loaded caches the time zones that Load has already parsed, by name.
var loaded sync.Map // string → *time.Location

// Load returns a time zone by its exact name in the IANA database of the program. Load returns an error for "Local",
// for names of files of the machine, and for names whose upper and lower case differs from the database. Load is safe
// for concurrent use.
func Load(name string) (*time.Location, error) {
	if place, ok := loaded.Load(name); ok {
		return place.(*time.Location), nil
	}
	file, ok := database()[name]
	if !ok {
		return nil, fmt.Errorf("%q: must be a time zone of the IANA database such as Asia/Singapore", name)
	}
	place, err := read(name, file)
	if err != nil {
		return nil, fmt.Errorf("time zone %q: %w", name, err)
	}
	first, _ := loaded.LoadOrStore(name, place)
	return first.(*time.Location), nil
}

func read(name string, file *zip.File) (*time.Location, error) {
	if name == time.UTC.String() {
		return time.UTC, nil
	}
	content, err := file.Open()
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(content)
	if err != nil {
		return nil, err
	}
	return time.LoadLocationFromTZData(name, data)
}

// Names returns the names of all time zones, sorted.
func Names() []string {
	names := make([]string, 0, len(database()))
	for name := range database() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
