package ids

import (
	"fmt"
	"strings"
)

// A Kind determines the set of valid user ids. All user ids of a deployment have one Kind. The zero Kind is Dense.
type Kind uint8

// The kinds of user ids are Dense, Uint64, UUID and Text.
const (
	Dense  Kind = iota // 0 to 2^32-1, best without gaps between the ids
	Uint64             // 0 to 2^64-1
	UUID               // 128 bits
	Text               // 1 to 256 bytes of UTF-8
)

var kindNames = [...]string{Dense: "dense", Uint64: "uint64", UUID: "uuid", Text: "text"}

// Kinds returns all kinds of user ids, starting with Dense.
func Kinds() [len(kindNames)]Kind { return [...]Kind{Dense, Uint64, UUID, Text} }

// String returns the name of the kind in configurations and files, such as "uuid".
func (k Kind) String() string {
	if !k.known() {
		return fmt.Sprintf("Kind(%d)", uint8(k))
	}
	return kindNames[k]
}

func (k Kind) known() bool { return int(k) < len(kindNames) }

// ParseKind returns the kind of ids with the given name. Names of kinds are in lower case. The error text of ParseKind
// does not contain the field's name, for example: `must be dense, uint64, uuid or text, got "guid"`. The caller must
// put the field's name in front.
func ParseKind(name string) (Kind, error) { return parseKind(name, Dense) }

// parseKind returns the kind of ids with the given name. The function parseKind rejects kinds whose constants come
// before the argument "first".
func parseKind(name string, first Kind) (Kind, error) {
	for kind := first; kind.known(); kind++ {
		if kindNames[kind] == name {
			return kind, nil
		}
	}
	names := kindNames[first:]
	last := len(names) - 1
	return 0, fmt.Errorf("must be %s or %s, got %s", strings.Join(names[:last], ", "), names[last], shown(name))
}
