package frame

import (
	"errors"
	"fmt"
	"net/http"

	"capper/client"
)

// A Refusal is an error with two texts for visitors: the problem and the remedy. A page shows these texts unchanged.
type Refusal struct {
	Status int
	What   string // the problem, in a sentence
	Do     string // the remedy, in a sentence
}

func (r *Refusal) Error() string { return r.What }

func refused(status int, what, do string) *Refusal { return &Refusal{status, what, do} }

// A notice is the data of a page, such as an error page, that shows only a message and the next step for the visitor.
type notice struct {
	What, Do string
	Detail   string // error text of the API
	To       string // address of the next page
	Go       string // text of the link to the next page
}

// The method fail responds to a visitor with an error page. If the API key of the session no longer exists, the method
// redirects to the sign-in page.
func (f *Frame) fail(w http.ResponseWriter, c *content, err error) {
	if client.HasCode(err, client.CodeUnauthorized) {
		f.askToSignIn(w, c.Visit.Request)
		return
	}
	status, said := explain(err)
	if status == http.StatusInternalServerError {
		f.cfg.Logger.ErrorContext(c.Visit.Context(), "page failed", "path", c.page.Path, "error", err)
	}
	said.To, said.Go = c.at, "Try again"
	f.notify(w, c, status, titles(status), said)
}

// notify responds to a visitor with a page that shows a message and the next step.
func (f *Frame) notify(w http.ResponseWriter, c *content, status int, title string, said notice) {
	c.View = &View{Title: title, Data: said}
	f.render(w, c, f.notices, status)
}

func titles(status int) string {
	switch status {
	case http.StatusNotFound:
		return "Not found"
	case http.StatusForbidden:
		return "Rejected"
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		return "The service cannot answer now"
	case http.StatusInternalServerError:
		return "The service has a fault"
	}
	return "The page cannot be shown"
}

// The function explain converts an error to an HTTP status and a message for the visitor in plain language.
func explain(err error) (int, notice) {
	var own *Refusal
	if errors.As(err, &own) {
		return own.Status, notice{What: own.What, Do: own.Do}
	}
	var e *client.Error
	if !errors.As(err, &e) {
		return http.StatusServiceUnavailable, notice{What: "The service did not answer in time.",
			Do: "Try again. If the problem continues, the Overview shows the reason."}
	}
	said := notice{Detail: e.Error()}
	switch e.Code {
	case client.CodeForbidden:
		said.What, said.Do = "Your API key may not do this.",
			"Sign in with a key that has the scope named below, or ask the operator to add the scope to your key."
	case client.CodeUnavailable, client.CodeOverloaded, client.CodeTimeout:
		said.What, said.Do = "The service could not read the data now.",
			"Try again in a moment. The Overview shows the state of the store."
	case client.CodeRateLimited:
		said.What, said.Do = "Your API key has used its limit of users per second.",
			fmt.Sprintf("Try again in %s.", Span(max(e.RetryAfter, 1e9)))
	case client.CodeTooManyRecords:
		said.What, said.Do = "Calls for permits have reached the limit of stored records.",
			fmt.Sprintf("Try again in %s.", Span(max(e.RetryAfter, 1e9)))
	case client.CodeNotFound, client.CodeGone:
		said.What, said.Do = "The requested item does not exist or was removed.",
			"Check the address, or start at the Overview."
	case client.CodeInvalidRequest, client.CodeTooLarge:
		said.What, said.Do = "The service cannot answer this request.",
			"Correct the field named below and try again."
	default:
		said.What, said.Do = "The service has an internal error.", "Tell the operator: the log of the service "+
			"shows the reason."
		return http.StatusInternalServerError, said
	}
	return e.Status, said
}
