package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Config holds the settings of a Client. If a field of Config is zero, the default in the field's comment applies.
type Config struct {
	URL  string       // base URL of the service, such as http://127.0.0.1:8080. Required
	Key  string       // API key, id.secret; "": none
	HTTP *http.Client // nil: a client with one connection per parallel call, and no time-out except the context's

	// The function Header sets headers before each attempt of a request: trace headers, or an X-Request-Id from the
	// context. An X-Request-Id has 1 to 128 visible ASCII characters; if it is invalid, the service creates an id. A
	// Pacer passes its own context, because one request serves many callers. Header must be safe for concurrent use. If
	// Header is nil, the client adds no headers.
	Header func(context.Context, http.Header)

	// Waiting is called before each pause between two attempts of a call, with the reason of the pause. Waiting must be
	// safe for concurrent use. If Waiting is nil, the client reports no waits.
	Waiting func(reason error, pause time.Duration)

	// LeaveUnavailable makes Filter return unavailable users without a retry.
	LeaveUnavailable bool

	Attempts   int           // maximum attempts of a call; default 5. Waits for a rate limit (429) are no attempts
	MinBackoff time.Duration // pause before the second attempt, then doubled; half is random; default 100 ms
	MaxBackoff time.Duration // maximum pause; default 5 s

	BatchIDs    int // users of a batch of ids, in FilterAll and ReleaseAll; default 10,000
	BatchBitmap int // users of a batch as a bitmap or in packed form; default 250,000
	Parallel    int // maximum batches at one time; default 4
}

// Client calls a capper service. A Client is safe for concurrent use.
type Client struct {
	cfg  Config
	base *url.URL
}

// New returns a client without calling the service.
func New(cfg Config) (*Client, error) {
	base, err := url.Parse(cfg.URL)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return nil, fmt.Errorf("capper URL %q must begin with http:// or https:// and name a host", cfg.URL)
	}
	for _, field := range []struct {
		value *int
		name  string
		zero  int
	}{
		{&cfg.Attempts, "Attempts", 5},
		{&cfg.BatchIDs, "BatchIDs", 10_000},
		{&cfg.BatchBitmap, "BatchBitmap", 250_000},
		{&cfg.Parallel, "Parallel", 4},
	} {
		if *field.value < 0 {
			return nil, fmt.Errorf("client.Config.%s must not be negative, got %d", field.name, *field.value)
		}
		if *field.value == 0 {
			*field.value = field.zero
		}
	}
	if cfg.MinBackoff <= 0 {
		cfg.MinBackoff = 100 * time.Millisecond
	}
	if cfg.MaxBackoff <= 0 {
		cfg.MaxBackoff = 5 * time.Second
	}
	if cfg.HTTP == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxIdleConnsPerHost = max(cfg.Parallel, 2)
		cfg.HTTP = &http.Client{Transport: transport}
	}
	return &Client{cfg: cfg, base: base}, nil
}

// The method "call" sends a request with retries, and decodes the response body into the argument "out". If the
// argument "out" is nil, the response must have no body.
func (c *Client) call(ctx context.Context, method, path string, body, out any) error {
	return c.callWhile(ctx, Passing, method, path, body, out)
}

// callWhile works like the method call(), but retries only after errors for which the argument "passing" (a function)
// returns true.
func (c *Client) callWhile(ctx context.Context, passing func(error) bool, method, path string, body, out any) error {
	var encoded []byte
	if body != nil {
		var err error
		if encoded, err = json.Marshal(body); err != nil {
			return fmt.Errorf("encode request: %w", err)
		}
	}
	for attempt := 1; ; {
		err := c.once(ctx, method, path, encoded, out)
		if err == nil || ctx.Err() != nil || !passing(err) {
			return err
		}
		limited := HasCode(err, CodeRateLimited)
		if !limited && attempt == c.cfg.Attempts {
			return err
		}
		if waited := c.wait(ctx, attempt, err); waited != nil {
			return errors.Join(waited, err)
		}
		if !limited {
			attempt++
		}
	}
}

func (c *Client) once(ctx context.Context, method, path string, body []byte, out any) error {
	response, err := c.send(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("read the response to %s %s: %w", method, path, err)
	}
	if response.StatusCode/100 != 2 {
		return errorOf(response, answer)
	}
	switch out := out.(type) {
	case nil:
		return nil
	case *file:
		*out = file{answer, response.Header}
		return nil
	}
	if err := decode(answer, out); err != nil {
		return fmt.Errorf("decode the response to %s %s: %w", method, path, err)
	}
	return nil
}

// The method "send" makes one HTTP request. The caller of send() must close the body of the HTTP response.
func (c *Client) send(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	path, query, _ := strings.Cut(path, "?")
	at := c.base.JoinPath(path)
	at.RawQuery = query
	request, err := http.NewRequestWithContext(ctx, method, at.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if c.cfg.Header != nil {
		c.cfg.Header(ctx, request.Header)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if c.cfg.Key != "" {
		request.Header.Set("Authorization", "Bearer "+c.cfg.Key)
	}
	return c.cfg.HTTP.Do(request)
}

// The type "file" receives a response body as raw bytes, with the response headers.
type file struct {
	content []byte
	header  http.Header
}

// The method "wait" pauses after a failed attempt, and returns an error if ctx ends during the pause.
func (c *Client) wait(ctx context.Context, attempt int, cause error) error {
	pause := min(c.cfg.MinBackoff<<min(attempt-1, 20), c.cfg.MaxBackoff)
	pause = pause/2 + rand.N(pause/2+1)
	var e *Error
	if errors.As(cause, &e) {
		pause = max(pause, e.RetryAfter)
	}
	if c.cfg.Waiting != nil {
		c.cfg.Waiting(cause, pause)
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
