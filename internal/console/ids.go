package console

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"capper/internal/console/frame"
	"capper/internal/ids"
)

// act tries the ids in a form, which were pasted or uploaded as a file.
func (ps tryPages) act(v *frame.Visit) (*frame.View, string, error) {
	p, err := begin(v, v.PostFormValue("channel"))
	if err != nil {
		return nil, "", err
	}
	p.Pasted = v.PostFormValue("ids")
	view := &frame.View{Title: "Try it", Question: tryQuestion, Data: p}
	if p.Wrong = checkChannel(p); p.Wrong == nil {
		err = ps.tryIDs(v, p)
	}
	if err == nil && p.Wrong == nil {
		return nil, ps.results.keep(v, p), nil
	}
	view, err = refusedBy(p, view, err)
	return view, "", err
}

func (ps tryPages) tryIDs(v *frame.Visit, p *tryView) error {
	kind, err := kindOf(v)
	if err != nil {
		return err
	}
	if kind != ids.Dense {
		p.Wrong = &wrong{Field: "ids", Text: fmt.Sprintf("This deployment's ids are %s: this page takes dense ids "+
			"alone so far. Use capper filter --preview with a file instead.", kind)}
		return nil
	}
	from, what, err := source(v)
	if err != nil {
		return err
	}
	field, read := "ids", readWords
	if what != pasted {
		field, read = "file", readFile
	}
	found, fault := read(from)
	switch {
	case fault != "":
		p.Wrong = &wrong{Field: field, Text: fault}
	case found.users.IsEmpty():
		p.Wrong = &wrong{Field: field, Text: "No user id was given. Paste ids, or choose a file with one id per line."}
	}
	if p.Wrong != nil {
		return nil
	}
	p.Tried = &tried{What: what, Users: found.users.GetCardinality(), Ignored: found.repeats}
	if len(p.Pasted) > keptPaste {
		p.Pasted = "" // the page need not return the pasted text
	}
	return ps.tryUsers(v, p, found.users)
}

const (
	pasted    = "the pasted ids"
	keptPaste = 64 << 10
)

// source returns the ids of the form: the uploaded file, or otherwise the pasted text.
func source(v *frame.Visit) (from io.Reader, what string, err error) {
	file, header, err := v.FormFile("file")
	switch {
	case err == nil && header.Size > 0:
		return file, "the ids of " + header.Filename, nil
	case err != nil && !errors.Is(err, http.ErrMissingFile) && !errors.Is(err, http.ErrNotMultipart):
		return nil, "", &frame.Refusal{Status: http.StatusBadRequest, What: "The file could not be read.",
			Do: "Choose the file again."}
	}
	return strings.NewReader(v.PostFormValue("ids")), pasted, nil
}

// longestID is the number of bytes that a page shows of a wrong id. A valid id is shorter.
const longestID = 40

// given holds users that a form listed by id.
type given struct {
	users   *roaring.Bitmap
	repeats int // number of repeated ids
}

func newGiven() *given { return &given{users: roaring.New()} }

// add adds an id from a line. The returned text describes an invalid id.
func (g *given) add(word string, line int) (fault string) {
	id, err := strconv.ParseUint(word, 10, 32)
	if err != nil {
		if len(word) > longestID {
			word = word[:longestID]
		}
		return fmt.Sprintf("Line %d: %q is not a user id (0 to 4294967295).", line, strings.ToValidUTF8(word, "?"))
	}
	if !g.users.CheckedAdd(uint32(id)) {
		g.repeats++
	}
	return ""
}

// tooMany returns an error text when there are more users than can be tried at once, and otherwise "".
func (g *given) tooMany() string {
	n := g.users.GetCardinality()
	if n <= mostNow {
		return ""
	}
	return fmt.Sprintf("The list has %s ids, but at most %s can be tried at once. Use a part of the list, or "+
		"publish it as a set and try the set.", frame.Count(n).Text, frame.Count(mostNow).Text)
}

// readWords reads ids separated by white space, commas or semicolons. The returned fault describes the first error
// and its line.
func readWords(from io.Reader) (found *given, fault string) {
	found = newGiven()
	words := bufio.NewReader(from)
	line, word := 1, make([]byte, 0, longestID)
	take := func() bool {
		if len(word) > 0 {
			fault = found.add(string(word), line)
			word = word[:0]
		}
		return fault == ""
	}
	for {
		c, err := words.ReadByte()
		if err != nil {
			break
		}
		switch c {
		case ' ', '\t', '\r', '\n', ',', ';':
			if !take() {
				return found, fault
			}
			if c == '\n' {
				line++
			}
		default:
			if len(word) < longestID {
				word = append(word, c)
			}
		}
	}
	if !take() {
		return found, fault
	}
	return found, found.tooMany()
}
