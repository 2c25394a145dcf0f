package console

import (
	"net/http"

	"capper/internal/console/frame"
)

// needsStore returns a copy of a console page that shows an error immediately while the store does not respond. Without
// needsStore, the API calls of the page would wait for the store until their time-out.
func needsStore(p frame.Page) frame.Page {
	show := p.Show
	p.Show = func(v *frame.Visit) (*frame.View, error) {
		if err := storeAway(v); err != nil {
			return nil, err
		}
		return show(v)
	}
	return p
}

// asksStore works like needsStore, for a page that shows only a form before the visitor sends the form.
func asksStore(p frame.Page) frame.Page {
	needs := needsStore(p)
	form := p.Show
	p.Show = func(v *frame.Visit) (*frame.View, error) {
		if len(v.URL.Query()) == 0 {
			return form(v)
		}
		return needs.Show(v)
	}
	return p
}

// storeAway returns an error for the visitor if the service has found that its store does not respond. The service
// checks the store continually, so storeAway returns nil soon after the store responds again.
func storeAway(v *frame.Visit) error {
	status, err := v.API.Status(v.Context())
	if err != nil {
		return err
	}
	if status.Store.State != "down" {
		return nil
	}
	return &frame.Refusal{Status: http.StatusServiceUnavailable,
		What: "The store does not answer, so this page has no numbers now.",
		Do:   "The Overview shows the state of the store. Load this page again when the store answers."}
}
