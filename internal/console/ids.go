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

	"capper/client"
	"capper/client/api"
	"capper/internal/console/frame"
	"capper/internal/ids"
)

// The method act tries a campaign, without recording sends, for the user ids that a visitor has pasted or uploaded in a
// form.
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
		to, err := keep(v, p)
		return nil, to, err
	}
	view, err = refusedBy(p, view, err)
	return view, "", err
}

func (ps tryPages) tryIDs(v *frame.Visit, p *tryView) error {
	kind, err := kindOf(v)
	if err != nil {
		return err
	}
	from, what, err := source(v)
	if err != nil {
		return err
	}
	field, read := "ids", readWords
	if what != pasted {
		field, read = "file", readFile
	}
	found, fault := read(kind, from)
	switch {
	case fault != "":
		p.Wrong = &wrong{Field: field, Text: fault}
	case found.count() == 0:
		p.Wrong = &wrong{Field: field, Text: "No user id was given. Paste ids, or choose a file with one id per line."}
	}
	if p.Wrong != nil {
		return nil
	}
	p.Tried = &tried{What: what, Users: found.count(), Ignored: found.repeats}
	return ps.tryUsers(v, p, &found.group)
}

const pasted = "the pasted ids"

// The function source returns a reader of the user ids in the form. The user ids come from an uploaded file or from
// text that the visitor pasted.
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

// A group holds the users of a request from the console to the service, for example the users of an uploaded file. A
// group names its users by dense ids (32-bit numbers), packed ids (UUIDs and 64-bit numbers), or text ids.
type group struct {
	dense  *roaring.Bitmap // nil: not dense
	packed *client.Packed  // nil: no packed form
	texts  []string
}

// The method count returns the number of users in the group.
func (g *group) count() uint64 {
	switch {
	case g.dense != nil:
		return g.dense.GetCardinality()
	case g.packed != nil:
		return uint64(g.packed.Len())
	}
	return uint64(len(g.texts))
}

// The method forecast returns an API request for a forecast of the decisions about the users of a group on a channel.
func (g *group) forecast(channel string) *client.ForecastRequest {
	return &client.ForecastRequest{Channel: channel, Bitmap: g.dense, Packed: g.packed, IDs: g.texts}
}

// The method "some" returns the group, or a sample of at most "most" users if the group is larger. The users of the
// sample are spread evenly over the ids, or over the positions in the list.
func (g *group) some(most uint64) *group {
	n := g.count()
	if n <= most {
		return g
	}
	some := &group{}
	switch {
	case g.dense != nil:
		some.dense = roaring.New()
	case g.packed != nil:
		some.packed = &client.Packed{Width: g.packed.Width}
	}
	for i := range most {
		at := i * n / most
		switch {
		case g.dense != nil:
			if id, err := g.dense.Select(uint32(at)); err == nil { //nolint:gosec // below the cardinality
				some.dense.Add(id)
			}
		case g.packed != nil:
			some.packed.Bytes = append(some.packed.Bytes, g.packed.ID(int(at))...)
		default:
			some.texts = append(some.texts, g.texts[at])
		}
	}
	return some
}

// These constants limit the bytes that the console stores of one word in pasted or uploaded text. Every dense id
// (32-bit number) is shorter than longestDense, and every other id, in any spelling, is shorter than longestOther.
const (
	longestDense = 40
	longestOther = 300
)

// The type "given" holds the users whose ids a visitor has pasted or uploaded.
type given struct {
	group
	kind    ids.Kind
	scheme  *ids.Scheme     // parses ids that are not dense
	known   map[string]bool // set of the ids, for ids that are not dense
	repeats int             // number of repetitions of ids
}

func newGiven(kind ids.Kind) *given {
	g := &given{kind: kind}
	if kind == ids.Dense {
		g.dense = roaring.New()
		return g
	}
	g.scheme, g.known = ids.New(kind, ids.Key{}), map[string]bool{}
	if width := g.scheme.Width(); width > 0 {
		g.packed = &client.Packed{Width: width}
	}
	return g
}

// The method add adds the user id in a word of the pasted text. The argument "line" is the line number of the word. If
// the word is not a valid user id, the result "fault" describes the error.
func (g *given) add(word string, line int) (fault string) {
	if g.kind != ids.Dense {
		return g.addOther(word, line)
	}
	id, err := strconv.ParseUint(word, 10, 32)
	if err != nil {
		if len(word) > longestDense {
			word = word[:longestDense]
		}
		return fmt.Sprintf("Line %d: %q is not a user id (0 to 4294967295).", line, strings.ToValidUTF8(word, "?"))
	}
	if !g.dense.CheckedAdd(uint32(id)) {
		g.repeats++
	}
	return ""
}

// addOther works like add(), for an id that is not dense (not a 32-bit number).
func (g *given) addOther(word string, line int) (fault string) {
	var id []byte
	var err error
	if g.packed != nil {
		id, err = g.scheme.AppendPacked(nil, []byte(word))
	} else {
		id, err = g.scheme.Canonical(nil, []byte(word))
	}
	switch {
	case err != nil:
		return fmt.Sprintf("Line %d: the id %s.", line, err)
	case g.known[string(id)]:
		g.repeats++
		return ""
	}
	g.known[string(id)] = true
	if g.packed != nil {
		g.packed.Bytes = append(g.packed.Bytes, id...)
	} else {
		g.texts = append(g.texts, string(id))
	}
	return ""
}

// mostOf returns the maximum number of user ids of the given kind in one trial.
func mostOf(kind ids.Kind) uint64 {
	if kind == ids.Text {
		return api.MaxUserIDs // text ids have no packed form
	}
	return mostNow
}

// tooMany returns an error text if the visitor has given more users than one trial permits, and otherwise "".
func (g *given) tooMany() string {
	n, most := g.count(), mostOf(g.kind)
	if n <= most {
		return ""
	}
	return fmt.Sprintf("The list has %s ids, but at most %s can be tried at once. Use a part of the list, or "+
		"publish it as a set and try the set.", frame.Count(n).Text, frame.Count(most).Text)
}

// readWords reads pasted user ids that are separated by white space, commas or semicolons. Text ids may contain
// spaces, commas and semicolons, so each text id must be on a separate line. The result "fault" describes the first
// error in the pasted text and names its line.
func readWords(kind ids.Kind, from io.Reader) (found *given, fault string) {
	found = newGiven(kind)
	longest := longestDense
	if kind != ids.Dense {
		longest = longestOther
	}
	words := bufio.NewReader(from)
	line, word := 1, make([]byte, 0, longest)
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
		if separates(kind, c) {
			if !take() {
				return found, fault
			}
			if c == '\n' {
				line++
			}
		} else if len(word) < longest {
			word = append(word, c)
		}
	}
	if !take() {
		return found, fault
	}
	return found, found.tooMany()
}

// The function "separates" reports whether the character c separates pasted ids of the given kind.
func separates(kind ids.Kind, c byte) bool {
	switch c {
	case '\r', '\n':
		return true
	case ' ', '\t', ',', ';':
		return kind != ids.Text
	}
	return false
}
