package cli

import (
	"crypto/x509"
	"errors"
	"net/http"
	"os"
	"strings"
	"time"

	"capper/client"
	"capper/internal/terminal"
)

// Service holds the command-line flags for API calls to a running service.
type Service struct {
	URL  string `default:"http://127.0.0.1:8080" env:"CAPPER_URL" help:"Base URL of the service."`
	JSON bool   `help:"Print the result as JSON."`
}

// StatusSays is advice for errors about users for whom the service repeatedly returned no decision. A retry does not
// help users whose records the store has lost.
const StatusSays = "capper status shows the reason"

// KeyVariable is the name of the environment variable with the API key, in the form id.secret. No command-line flag
// contains the API key, because other users of the machine can read the flags of a process.
const KeyVariable = "CAPPER_API_KEY"

// The function Key returns the API key from the environment, or "" if the variable is not set.
func Key() string { return os.Getenv(KeyVariable) }

// The method Client returns a client for calls to the service. The method Client makes no call.
func (r *Service) Client() (*client.Client, error) {
	api, err := client.New(client.Config{URL: r.URL, Key: Key()})
	if err != nil {
		return nil, terminal.Misuse(err)
	}
	return api, nil
}

// patientAttempts is the number of attempts that a client from PatientClient makes for one call. All attempts of one
// call take about a minute.
const patientAttempts = 20

// PatientClient returns a client that repeats a failed call for about a minute, and prints each pause.
func (r *Service) PatientClient(on *terminal.Streams) (*client.Client, error) {
	api, err := client.New(client.Config{URL: r.URL, Key: Key(), Attempts: patientAttempts,
		Waiting: func(reason error, pause time.Duration) {
			on.Say("the call is repeated in %s: %v", pause.Round(100*time.Millisecond), reason)
		}})
	if err != nil {
		return nil, terminal.Misuse(err)
	}
	return api, nil
}

// The method Hinted adds advice to an error that a call to the service returned.
func (r *Service) Hinted(err error) error {
	switch {
	case err == nil, terminal.StatusOf(err) == terminal.BadInput:
		return err
	case client.HasCode(err, client.CodeUnauthorized):
		return terminal.Hinted(err, "set "+KeyVariable+" to id.secret")
	case client.HasCode(err, client.CodeUnavailable):
		return terminal.Hinted(err, StatusSays)
	}
	var refused *client.Error
	if client.HasCode(err, client.CodeForbidden) && strings.Contains(err.Error(), "lacks the scope") {
		return terminal.Hinted(err, "set "+KeyVariable+" to a key with this scope, or add the scope to the key in "+
			"server.api_keys")
	}
	switch known := errors.As(err, &refused) && refused.Code != ""; {
	case known && refused.Code == client.CodeNotFound && strings.HasSuffix(strings.TrimRight(r.URL, "/"), "/v1"):
		return terminal.Hinted(err, "the base URL must not end with /v1: change --url or CAPPER_URL")
	case known && refused.Code == client.CodeMethodNotAllowed:
		return terminal.Hinted(err, "--url must name the listener of the API (server.listen), not the admin listener "+
			"(server.admin_listen)")
	case known:
		return err
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return terminal.Hinted(err, "if your own authority signed the certificate, set SSL_CERT_FILE to its PEM file")
	case errors.Is(err, http.ErrSchemeMismatch):
		return terminal.Hinted(err, "the service has no TLS: use http:// in --url or CAPPER_URL")
	case refused != nil && refused.Status == http.StatusBadRequest && strings.HasPrefix(r.URL, "http:"):
		return terminal.Hinted(err, "the service probably has TLS: use https:// in --url or CAPPER_URL")
	default:
		return terminal.Hinted(err, "is a capper service running at "+r.URL+
			"? use --url or CAPPER_URL for another address")
	}
}

// HintedAdmin adds advice to an error of a call that requires an API key with the scope "admin".
func (r *Service) HintedAdmin(err error) error {
	switch {
	case client.HasCode(err, client.CodeForbidden):
		return terminal.Hinted(err, "the key in "+KeyVariable+" needs the scope admin")
	case client.HasCode(err, client.CodeNotFound), client.HasCode(err, client.CodeMethodNotAllowed):
		return terminal.Hinted(err, "--url must name the admin listener (server.admin_listen) if there is one")
	case client.HasCode(err, client.CodeConflict):
		return err
	}
	return r.Hinted(err)
}
