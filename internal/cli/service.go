package cli

import (
	"errors"
	"os"
	"time"

	"capper/client"
	"capper/internal/terminal"
)

// Service holds the flags that name a running service.
type Service struct {
	URL  string `default:"http://127.0.0.1:8080" env:"CAPPER_URL" help:"Base URL of the service."`
	JSON bool   `help:"Print the result as JSON."`
}

// StatusSays is the advice about users who stay unavailable. If the store has lost their records, a retry does not
// help.
const StatusSays = "capper status shows the reason"

// KeyVariable is the environment variable with the API key, in the form id.secret. There is no flag for the key,
// because the key is a secret.
const KeyVariable = "CAPPER_API_KEY"

// Key returns the API key from the environment, or "" if there is none.
func Key() string { return os.Getenv(KeyVariable) }

// Client returns a client for the service. Client makes no call yet.
func (r *Service) Client() (*client.Client, error) {
	api, err := client.New(client.Config{URL: r.URL, Key: Key()})
	if err != nil {
		return nil, terminal.Misuse(err)
	}
	return api, nil
}

// patientAttempts are the attempts of a patient client: about a minute.
const patientAttempts = 20

// PatientClient returns a client like Client does, which repeats calls for about a minute and reports each pause.
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

// Hinted adds advice to the error of a call.
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
	if !errors.As(err, &refused) || refused.Code == "" {
		return terminal.Hinted(err, "is a capper service running at "+r.URL+"? use --url for another address")
	}
	return err
}

// HintedAdmin adds advice to the error of a call that needs the scope admin.
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
