package ids

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// FileName is the name of the object with the kind and the hash key of the user ids at a location of segments.
const FileName = "ids.json"

// MaxFile is the maximum size of an ids.json in bytes.
const MaxFile = 4096

// The type File is the content of ids.json: {"kind": "uuid", "key": "<32 hexadecimal digits>"}. A location whose user
// ids are dense (32-bit integers) has no ids.json.
type File struct {
	Kind Kind
	Key  Key
}

// The method Scheme returns the Scheme with the kind and the hash key in the file.
func (f File) Scheme() *Scheme { return New(f.Kind, f.Key) }

// Encode returns the content of the file ids.json: the JSON object and a line end. For equal File values, Encode
// returns equal bytes.
func (f File) Encode() []byte {
	return fmt.Appendf(nil, "{\"kind\": %q, \"key\": %q}\n", f.Kind, f.Key)
}

// ParseFile parses the bytes of an ids.json strictly: the object must have the fields kind and key, each once, and no
// other field. The error text contains the field, its value and the rule, but not the name of the file.
func ParseFile(raw []byte) (f File, err error) {
	fields, err := fileFields(raw)
	if err != nil {
		return File{}, err
	}
	kind, key := fields["kind"], fields["key"]
	if kind == nil {
		return File{}, errors.New("kind: is missing")
	}
	if key == nil {
		return File{}, errors.New("key: is missing")
	}
	if f.Kind, err = parseKind(*kind, Uint64); err != nil {
		return File{}, fmt.Errorf("kind: %w", err)
	}
	if f.Key, err = ParseKey(*key); err != nil {
		return File{}, fmt.Errorf("key: %w", err)
	}
	return f, nil
}

// fileFields returns the fields of a JSON object whose values are all strings. The function json.Unmarshal would accept
// "Kind" instead of "kind". For a field that occurs twice, json.Unmarshal would silently use the last value.
func fileFields(raw []byte) (map[string]*string, error) {
	if len(raw) > MaxFile {
		return nil, fmt.Errorf("must be a file of at most %d bytes, got %d", MaxFile, len(raw))
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if start, err := decoder.Token(); err != nil {
		return nil, fmt.Errorf("decode JSON: %w", noEOF(err))
	} else if start != json.Delim('{') {
		return nil, errors.New("must be a JSON object")
	}
	fields := map[string]*string{}
	for decoder.More() {
		if err := fileField(decoder, fields); err != nil {
			return nil, err
		}
	}
	if _, err := decoder.Token(); err != nil {
		return nil, fmt.Errorf("decode JSON: %w", noEOF(err))
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("must be one JSON object, but more text follows the object")
	}
	return fields, nil
}

// fileField reads one JSON field of the file ids.json from the decoder, and stores the field's value in the map in the
// argument "fields".
func fileField(decoder *json.Decoder, fields map[string]*string) error {
	token, err := decoder.Token()
	if err != nil {
		return fmt.Errorf("decode JSON: %w", noEOF(err))
	}
	name, _ := token.(string)
	if name != "kind" && name != "key" {
		return fmt.Errorf("%s: the name of a field must be 'kind' or 'key'", shown(name))
	}
	if fields[name] != nil {
		return fmt.Errorf("%s: the field must occur only once", name)
	}
	if token, err = decoder.Token(); err != nil {
		return fmt.Errorf("decode JSON: %w", noEOF(err))
	}
	value, ok := token.(string)
	if !ok {
		return fmt.Errorf("%s: must be a string, got %v", name, token)
	}
	fields[name] = &value
	return nil
}

// noEOF replaces the error io.EOF by io.ErrUnexpectedEOF, because an input that ends within the JSON object is
// truncated.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
