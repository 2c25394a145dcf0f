package main

import (
	"errors"
	"os"

	"capper/client"
	"capper/internal/console"
)

// remote is how commands reach a running service.
type remote struct {
	URL  string `default:"http://127.0.0.1:8080" env:"CAPPER_URL" help:"The service."`
	JSON bool   `help:"Answer as JSON, for machines."`
}

// statusSays is what to do about users whom the store cannot answer for: where its
// records are gone, no repetition helps.
const statusSays = "capper status says why"

// keyVariable is the environment variable of the API key, id.secret. The key
// is a secret, so there is no flag for it.
const keyVariable = "CAPPER_API_KEY"

func key() string { return os.Getenv(keyVariable) }

func (r *remote) client() (*client.Client, error) {
	api, err := client.New(client.Config{URL: r.URL, Key: key()})
	if err != nil {
		return nil, console.Misuse(err)
	}
	return api, nil
}

// hinted adds what to do about an error of a call.
func (r *remote) hinted(err error) error {
	switch {
	case err == nil:
		return nil
	case client.HasCode(err, client.CodeUnauthorized):
		return console.Hinted(err, "set "+keyVariable+" to id.secret")
	case client.HasCode(err, client.CodeUnavailable):
		return console.Hinted(err, statusSays)
	}
	var refused *client.Error
	if !errors.As(err, &refused) || refused.Code == "" {
		return console.Hinted(err, "is a capper serving at "+r.URL+"? --url names another")
	}
	return err
}
