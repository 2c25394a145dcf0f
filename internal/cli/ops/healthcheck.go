package ops

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"capper/internal/config"
	"capper/internal/terminal"
)

// HealthcheckCommand is the command `capper healthcheck`.
type HealthcheckCommand struct {
	Config  string        `short:"c" env:"CAPPER_CONFIG" default:"capper.yaml" help:"Configuration file of the service, in which the command finds the service's address."`
	Ready   bool          `help:"Check /readyz (whether the service is ready for calls) instead of /healthz (whether the service needs a restart)."`
	Timeout time.Duration `default:"3s" help:"Maximum time to wait for the answer of the service."`
}

// The method Run requests the health of the service from each listener, and returns an error if a response reports a
// problem.
func (c *HealthcheckCommand) Run(ctx context.Context, on *terminal.Streams) error {
	listeners, err := config.Listeners(c.Config)
	if err != nil {
		return terminal.WithStatus(terminal.BadInput, err)
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	path := "/healthz"
	if c.Ready {
		path = "/readyz"
	}
	client := newClient()
	for _, base := range listeners {
		if err := ask(ctx, client, base+path); err != nil {
			return err
		}
		fmt.Fprintf(on.Out, "%s%s: ok\n", base, path)
	}
	return nil
}

// newClient returns an HTTP client for services on this machine. The client uses no proxy. The client accepts any
// certificate, because it sends no secret and reads only a status.
func newClient() *http.Client {
	return &http.Client{Transport: &http.Transport{
		Proxy: nil, DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
}

// If a response reports a problem, the command healthcheck prints at most maxReason bytes of the response.
const maxReason = 1 << 10

func ask(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusOK {
		return nil
	}
	reason, _ := io.ReadAll(io.LimitReader(response.Body, maxReason)) // a read error does not matter
	return fmt.Errorf("%s: %s: %s", url, response.Status, terminal.Escape(strings.TrimSpace(string(reason))))
}
