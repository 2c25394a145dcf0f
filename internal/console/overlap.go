package console

import (
	"errors"
	"fmt"
	"math/bits"
	"net/url"
	"strings"

	"capper/client"
	"capper/internal/console/frame"
)

// mostOthers is the maximum number of other planned audiences whose overlap with the tried audience the page shows. The
// constant mostOthers is small, because the console makes a separate count for each combination of audiences.
const mostOthers = 3

// othersOf reads the audience expressions of other planned campaigns from the query parameters of the page. If there
// are fewer than mostOthers expressions, othersOf adds an empty one, for an empty field of the form.
func othersOf(query url.Values) (others []string) {
	for _, text := range query["other"] {
		if strings.TrimSpace(text) != "" && len(others) < mostOthers {
			others = append(others, text)
		}
	}
	if len(others) < mostOthers {
		others = append(others, "")
	}
	return others
}

// An overlap holds the exact sizes of several audiences and of all their intersections.
type overlap struct {
	Audiences []string
	Users     []uint64 // size of each intersection; the index has a bit for each audience; index 0 is unused
}

// overlapOf counts the users in each combination of the tried audience and the other planned audiences. If the
// expression of another audience is wrong, the page shows the error.
func overlapOf(v *frame.Visit, p *tryView) (*overlap, error) {
	o := &overlap{Audiences: []string{p.Expression}}
	for _, text := range p.Others {
		if text != "" {
			o.Audiences = append(o.Audiences, text)
		}
	}
	o.Users = make([]uint64, 1<<len(o.Audiences))
	for mask := 1; mask < len(o.Users); mask++ {
		audience := client.Audience{Expression: o.expression(mask), Generation: p.Tried.Generation}
		count, err := v.API.Count(v.Context(), &client.CountRequest{Audience: &audience, Total: true})
		var e *client.Error
		if errors.As(err, &e) && e.Code == client.CodeInvalidRequest {
			p.Wrong = &wrong{Field: "other", Text: fmt.Sprintf("The audience %s: %s", audience.Expression, e.Message)}
			return nil, nil //nolint:nilnil // the page shows the error
		}
		if err != nil {
			return nil, err
		}
		o.Users[mask] = count.Users
	}
	return o, nil
}

// The method expression returns an audience expression for the users who are in all audiences that a bit mask selects.
func (o *overlap) expression(mask int) string {
	var parts []string
	for i, text := range o.Audiences {
		if mask>>i&1 == 1 {
			parts = append(parts, text)
		}
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return "(" + strings.Join(parts, ") & (") + ")"
}

// The method "pairs" returns a table with the size of each audience and the overlap of each pair of audiences.
func (o *overlap) pairs() *frame.Table {
	t := &frame.Table{Name: "overlap", Caption: "Sizes, and users in two of the audiences",
		Columns: []frame.Column{{Title: "Audience"}, {Title: "Users", Number: true}}}
	for i := range o.Audiences {
		t.Columns = append(t.Columns, frame.Column{Title: fmt.Sprintf("Also in %d", i+1), Means: "users", Number: true})
	}
	for i, text := range o.Audiences {
		size := o.Users[1<<i]
		row := []frame.Cell{frame.Text(fmt.Sprintf("%d: %s", i+1, text)), frame.Count(size)}
		for j := range o.Audiences {
			cell := frame.Text("")
			if i != j {
				if cell = frame.Count(o.Users[1<<i|1<<j]); size > 0 {
					cell = cell.With(fmt.Sprintf("%.1f %%", 100*float64(o.Users[1<<i|1<<j])/float64(size)))
				}
			}
			row = append(row, cell)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// byCount returns a table with the number of users who are in exactly one of the audiences, in exactly two, and so on.
func (o *overlap) byCount() *frame.Table {
	t := &frame.Table{Name: "messages", Caption: "Users by the number of these audiences that they are in",
		Columns: []frame.Column{{Title: "Audiences", Number: true}, {Title: "Users", Number: true}}}
	counts := o.exactly()
	for n := 1; n < len(counts); n++ {
		t.Rows = append(t.Rows, []frame.Cell{frame.Count(n), frame.Count(counts[n])})
	}
	return t
}

// The method "exactly" returns, for each number n, the number of users who are in exactly n of the audiences. The
// method "exactly" computes its result from the sizes of the intersections, by the principle of inclusion and
// exclusion.
func (o *overlap) exactly() []uint64 {
	counts := make([]int64, len(o.Audiences)+1)
	for mask := 1; mask < len(o.Users); mask++ {
		exact := int64(0)
		for more := mask; more < len(o.Users); more++ {
			if more&mask == mask {
				n := int64(o.Users[more]) //nolint:gosec // a count of users
				if bits.OnesCount(uint(more&^mask))%2 == 1 {
					n = -n
				}
				exact += n
			}
		}
		counts[bits.OnesCount(uint(mask))] += exact
	}
	users := make([]uint64, len(counts))
	for i, n := range counts {
		users[i] = uint64(max(n, 0))
	}
	return users
}
