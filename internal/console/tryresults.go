package console

import (
	"crypto/rand"
	"net/http"
	"sync"
	"time"

	"capper/internal/console/frame"
)

// Results of id lists are kept for this time and up to this number. Each result has its own address without ids, so
// that its tables and pictures can be loaded.
const (
	keptFor  = 15 * time.Minute
	mostKept = 64
)

// results holds the results of id lists by a random name.
type results struct {
	mu   sync.Mutex
	kept map[string]result
}

type result struct {
	page *tryView
	key  string // id of the visitor's key
	at   time.Time
}

// keep stores the result of a page and returns its address.
func (r *results) keep(v *frame.Visit, p *tryView) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	oldest := ""
	for name, one := range r.kept {
		if v.Now.Sub(one.at) > keptFor {
			delete(r.kept, name)
		} else if oldest == "" || one.at.Before(r.kept[oldest].at) {
			oldest = name
		}
	}
	if len(r.kept) >= mostKept {
		delete(r.kept, oldest)
	}
	name := rand.Text()
	r.kept[name] = result{p, v.Session.Key, v.Now}
	return "/console/" + tryAt + "?result=" + name
}

func (r *results) of(v *frame.Visit, name string) *tryView {
	r.mu.Lock()
	defer r.mu.Unlock()
	one, ok := r.kept[name]
	if !ok || one.key != v.Session.Key || v.Now.Sub(one.at) > keptFor {
		return nil
	}
	p := *one.page
	return &p
}

// again shows a stored result of an id list.
func (ps tryPages) again(v *frame.Visit, name string) (*frame.View, error) {
	p := ps.results.of(v, name)
	if p == nil {
		return nil, &frame.Refusal{
			Status: http.StatusGone, What: "The result has expired: it is kept for 15 minutes, by one instance, for " +
				"the key that sent the ids.",
			Do: "Open Try it and send the ids again.",
		}
	}
	view := &frame.View{Title: "Try it", Question: tryQuestion, Data: p, Calls: []string{"POST /v1/forecast"}}
	present(p, view, v)
	return view, nil
}
