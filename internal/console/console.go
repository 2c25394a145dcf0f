package console

import (
	"errors"
	"log/slog"
	"net/http"
	"time"

	"capper/internal/console/frame"
	"capper/internal/server/gate"
)

// Path is the URL path of the console.
const Path = frame.Path

// Config holds the dependencies and settings of a console.
type Config struct {
	// API answers every call of the pages within the process. Required.
	API http.Handler
	// Access returns the current API keys. Required.
	Access func() *gate.Control
	// SignIn returns the caller for a key, which must have the scope read. Required.
	SignIn func(r *http.Request, key string) (gate.Caller, error)
	// Recent holds the counts of the last day, and Policies the earlier policies. Nil: the console does not show
	// them.
	Recent   *Series
	Policies *Policies
	// UserLink is the template of the address of a user in another system, where {id} stands for the id. "": none.
	UserLink string
	// SecureCookies: browsers send the console's cookies over TLS only, even if this service does not speak TLS itself.
	SecureCookies bool
	// Logger receives the errors that visitors do not see. Nil: log lines are discarded.
	Logger *slog.Logger
	// Clock is the clock of the API. Nil: time.Now.
	Clock func() time.Time
}

// New returns the handler of the console, to be served at Path and below it.
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

// all returns all pages. The pages of the navigation come in their order.
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
