package console

import (
	"errors"
	"log/slog"
	"net/http"
	"time"

	"capper/internal/console/frame"
	"capper/internal/server/gate"
)

// Path is the URL path below which the console serves its pages.
const Path = frame.Path

// Config holds the dependencies and settings of a console.
type Config struct {
	// API is the handler that serves all API calls. The pages call it within the process. Required.
	API http.Handler
	// Access returns the current API keys. Required.
	Access func() *gate.Control
	// SignIn returns the caller to whom an API key belongs. The key must have the scope read. Required.
	SignIn func(r *http.Request, key string) (gate.Caller, error)
	// Recent holds the counts of the last day, and Policies holds the earlier policies. If a field is nil, the console
	// does not show its data.
	Recent   *Series
	Policies *Policies
	// UserLink is the address of a user's page in another system, with {id} in place of the user id. With "", the
	// console shows no such link.
	UserLink string
	// SecureCookies restricts the cookies of the console to TLS connections, for services behind a proxy that
	// terminates TLS.
	SecureCookies bool
	// Logger receives the errors that pages do not show. A nil Logger discards log lines.
	Logger *slog.Logger
	// Clock must be the same clock as in the API. A nil Clock means time.Now.
	Clock func() time.Time
}

// New returns the HTTP handler of the console, for Path and all paths below it.
func New(cfg Config) (http.Handler, error) {
	if cfg.API == nil || cfg.Access == nil || cfg.SignIn == nil {
		return nil, errors.New("console: Config.API, Config.Access and Config.SignIn are required")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.Recent == nil {
		cfg.Recent = NewSeries(cfg.Clock())
	}
	if cfg.Policies == nil {
		cfg.Policies = &Policies{}
	}
	return frame.New(frame.Config{
		API: cfg.API, Access: cfg.Access, SignIn: cfg.SignIn, Logger: cfg.Logger, Clock: cfg.Clock,
		Pages: all(cfg), SecureCookies: cfg.SecureCookies,
	})
}

// The function all returns all pages of the console, in the order of the navigation.
func all(cfg Config) []frame.Page {
	return []frame.Page{
		overviewPage(),
		needsStore(messagesPage()), needsStore(messagePage()),
		pressurePage(),
		asksStore(userPage(cfg.UserLink)),
		segmentsPage(), changesPage(),
		limitsPage(cfg.Recent, cfg.Policies), whatIfPage(),
		asksStore(tryPage()),
		needsStore(pacersPage(cfg.Recent)),
	}
}
