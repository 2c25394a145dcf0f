package database

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// Manifest is the table of contents of a backup archive.
type Manifest struct {
	Kind    string    `json:"kind"`    // always the constant kind
	Version int       `json:"version"` // version of the archive's layout; 1 for dense ids, which older programs read
	Store   string    `json:"store"`   // the store's id
	Mark    uint64    `json:"mark"`    // the newest mark in the database
	At      time.Time `json:"at"`      // the archive contains all writes until this time
	Program string    `json:"program"` // version of the program that wrote the archive
	// Channels holds the number of each configured channel in the logs. In archives of older versions of capper,
	// Channels is nil.
	Channels map[string]uint8 `json:"channels,omitempty"`
	IDs      *IDs             `json:"ids,omitempty"` // kind of the users' ids; nil: dense ids
	Files    []File           `json:"files"`
}

// File describes one database file in an archive.
type File struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"` // in hex digits
}

// Size returns the total size in bytes of the files that a backup archive contains.
func (m *Manifest) Size() (size int64) {
	for _, file := range m.Files {
		size += file.Size
	}
	return size
}

const (
	kind    = "capper embedded store"
	version = 2 // the newest version that this program reads

	denseVersion = 1 // the version of archives of stores with dense ids
)

// These constants are the names of files in a backup archive that do not belong to the database.
const (
	manifestName = "manifest.json"
	sumName      = "SHA256"
)

func (m *Manifest) encode() ([]byte, error) {
	m.Kind, m.Version = kind, version
	if m.IDs == nil {
		m.Version = denseVersion
	}
	return json.MarshalIndent(m, "", "  ")
}

func decodeManifest(content []byte) (*Manifest, error) {
	m := new(Manifest)
	if err := json.Unmarshal(content, m); err != nil {
		return nil, fmt.Errorf("%s: %w", manifestName, err)
	}
	switch {
	case m.Kind != kind:
		return nil, fmt.Errorf("%s: kind %q: must be %q", manifestName, m.Kind, kind)
	case m.Version < 1 || m.Version > version:
		return nil, fmt.Errorf("%s: version %d is too new for this program, which reads versions up to %d: "+
			"use the version of capper that wrote the backup (%s), or a later one",
			manifestName, m.Version, version, m.Program)
	case (m.IDs == nil) != (m.Version == denseVersion):
		return nil, fmt.Errorf("file %s says that ids are of the kind %s, which version %d of the file does not allow",
			manifestName, m.IDs.value(), m.Version)
	case m.Store == "" || len(m.Files) == 0:
		return nil, errors.New(manifestName + ": the store or its files are not named")
	}
	for _, file := range m.Files {
		if !isName(file.Name) {
			return nil, fmt.Errorf("%s: invalid file name %q", manifestName, file.Name)
		}
	}
	return m, nil
}

// isName reports whether the text is allowed as a name of a file in a backup archive. A backup archive contains only
// files directly in the directory of the database, and no files in subdirectories.
func isName(name string) bool {
	return name != "" && name != "." && name != ".." && filepath.Base(name) == name && !strings.ContainsAny(name, `/\`)
}

// The function "leads" reports whether the file is the marker file, which makes a directory a database. The marker file
// must be written last, because this file makes a directory a database.
func leads(name string) bool { return strings.HasPrefix(name, "marker.manifest.") }
