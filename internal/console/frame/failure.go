package frame

import (
	"errors"
	"fmt"
	"net/http"

	"capper/client"
)

// Refusal is an error that a page says as it is: what happened, and what to do.
type Refusal struct {
	Status int
	What   string // a sentence
	Do     string // a sentence
}

func (r *Refusal) Error() string { return r.What }

func refused(status int, what, do string) *Refusal { return &Refusal{status, what, do} }

// notice is a page of the frame's own: what happened, and what to do.
type notice struct {
	What, Do string
	Detail   string // the API's own words
	To       string // where to go on
	Go       string // what that is called
}

// fail answers with what went wrong. A session whose key has gone ends.
func (f *Frame) fail(w http.ResponseWriter, c *Content, err error) {
	if client.HasCode(err, client.CodeUnauthorized) {
		f.askToSignIn(w, c.Visit.Request)
		return
	}
	status, said := explain(err)
	if status == http.StatusInternalServerError {
		f.cfg.Logger.ErrorContext(c.Visit.Context(), "page failed", "path", c.page.Path, "error", err)
	}
	said.To, said.Go = c.at, "Try again"
	f.tell(w, c, status, titles(status), said)
}

// tell shows a notice.
func (f *Frame) tell(w http.ResponseWriter, c *Content, status int, title string, said notice) {
	c.View = &View{Title: title, Data: said}
	f.render(w, c, f.notices, status)
}

func titles(status int) string {
	switch status {
	case http.StatusNotFound:
		return "This was not found"
	case http.StatusForbidden:
		return "This was refused"
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		return "The service cannot answer now"
	case http.StatusInternalServerError:
		return "The service has a fault"
	}
	return "This cannot be shown"
}

// explain is an error in plain words, and what to do.
func explain(err error) (int, notice) {
	var own *Refusal
	if errors.As(err, &own) {
		return own.Status, notice{What: own.What, Do: own.Do}
	}
	var e *client.Error
	if !errors.As(err, &e) {
		return http.StatusServiceUnavailable, notice{What: "The service did not answer in time.",
			Do: "Try again; if it stays so, the Overview says what is wrong."}
	}
	said := notice{Detail: e.Error()}
	switch e.Code {
	case client.CodeForbidden:
		said.What, said.Do = "The key that you signed in with may not do this.",
			"Sign in with a key that has the scope named below, or ask whoever looks after the configuration to add it."
	case client.CodeUnavailable, client.CodeOverloaded, client.CodeTimeout:
		said.What, said.Do = "The service could not find the answer now.",
			"Try again in a moment; the Overview says whether the store is away."
	case client.CodeRateLimited:
		said.What, said.Do = "Your client has used up the users per second that it may ask for.",
			fmt.Sprintf("Try again in %s.", Span(max(e.RetryAfter, 1e9)))
	case client.CodeTooManyRecords:
		said.What, said.Do = "Calls for permits have left as many records as the service keeps.",
			fmt.Sprintf("Try again in %s.", Span(max(e.RetryAfter, 1e9)))
	case client.CodeNotFound, client.CodeGone:
		said.What, said.Do = "The service does not have this (any more).",
			"Check the address, or begin at the Overview."
	case client.CodeInvalidRequest, client.CodeTooLarge:
		said.What, said.Do = "What was asked for is not something the service can answer.",
			"Correct what is named below and ask again."
	default:
		said.What, said.Do = "The service has a fault of its own.", "Its log says why; tell whoever looks after it."
		return http.StatusInternalServerError, said
	}
	return e.Status, said
}
