package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"capper/client/api"
	"capper/internal/capping"
	"capper/internal/server/gate"
	"capper/internal/server/wire"
	"capper/internal/trace"
)

// The struct call holds an HTTP request and data that the server derived from the request, such as the caller and the
// parameters.
type call struct {
	w   http.ResponseWriter
	r   *http.Request
	ctx context.Context // r.Context() plus the request id and the trace span
	// The field asked is the time at which the call arrived, see capping.Caller.
	asked capping.Instant
	id    string // path parameter: id of a user or message, or name of a pacer, segment or set
	// parameters holds the query parameters by name.
	parameters map[string]string
	gate.Caller
	span   trace.Span
	holder string // client to whom the budgets charge the call; without API keys the caller's address
	body   watchedBody
}

// The method message returns the message with the given id, in the namespace of the caller's API key.
func (c *call) message(id string) capping.Message {
	return capping.Message{Namespace: c.Namespace, ID: id}
}

// A handler is a function that writes the response to a call, or returns the error for the response. A handler begins
// to write the response only when the handler can no longer return an error.
type handler func(c *call) error

// A router finds the handler of a request. Only router uses the package echo.
type router struct {
	s    *Server
	echo *echo.Echo
}

func newRouter(s *Server) *router {
	r := &router{s: s, echo: echo.New()}
	r.echo.HTTPErrorHandler = r.answerUnrouted
	return r
}

func (r *router) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.echo.ServeHTTP(w, withWholeName(req))
}

// The method handle adds a route from a method and a path to the handler h, for clients whose API key has the scope.
// The argument "parameters" lists the query parameters that the new route accepts.
func (r *router) handle(method, path string, scope gate.Scope, h handler, parameters ...string) {
	r.route(method, path, func(*http.Request) []gate.Scope { return []gate.Scope{scope} }, h, parameters...)
}

// handleEither adds a route like handle(), for clients whose API key has the scope "read" or the scope "lists".
func (r *router) handleEither(method, path string, h handler, parameters ...string) {
	either := []gate.Scope{gate.ScopeRead, gate.ScopeLists}
	r.route(method, path, func(*http.Request) []gate.Scope { return either }, h, parameters...)
}

// handleAny adds a route like handle(), for clients whose API key has any scope.
func (r *router) handleAny(method, path string, h handler, parameters ...string) {
	r.route(method, path, func(*http.Request) []gate.Scope { return gate.Scopes() }, h, parameters...)
}

// handleLocal adds a route like handle(), but callers on this machine need no API key.
func (r *router) handleLocal(method, path string, scope gate.Scope, h handler) {
	r.route(method, path, func(req *http.Request) []gate.Scope {
		if arrivedLocally(req) {
			return []gate.Scope{gate.ScopeNone}
		}
		return []gate.Scope{scope}
	}, h)
}

// arrivedLocally reports whether the request reached a loopback address and names a local host. If a page of another
// website makes a browser send a request, the request names the host of that website, so it is not local.
func arrivedLocally(req *http.Request) bool {
	addr, ok := req.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && addr.IP.IsLoopback() && gate.LocalHost(req.Host)
}

func (r *router) route(method, path string, scopes func(*http.Request) []gate.Scope, h handler,
	parameters ...string) {
	route := template(path)
	r.s.metrics.ExpectRoute(route)
	whole := named(path)
	r.echo.Add(method, path, func(c echo.Context) error {
		id := strings.Join(c.ParamValues(), "/")
		if whole {
			_, id, _ = wholeName(c.Request().Method, c.Request().URL.Path)
		}
		r.serve(route, &call{w: c.Response(), r: c.Request(), id: id}, func(call *call) (err error) {
			if call.Caller, err = r.s.access.Load().CallerOf(call.r, scopes(call.r)...); err != nil {
				return err
			}
			trace.SetText(call.span, "capper.client", call.Client)
			call.holder = holderOf(call)
			if !whole && strings.Contains(call.id, "/") { // the last parameter gets the rest of the path
				return noSuchPath(call)
			}
			if strings.HasPrefix(path, "/v1/") {
				if call.parameters, err = wire.DecodeParameters(call.r.URL.RawQuery, parameters); err != nil {
					return err
				}
			}
			return h(call)
		})
		return nil
	})
}

// These constants are the beginnings of URL paths, for calls about one user, one segment or set, the changes of one
// set, and one message.
const (
	usersPath    = "/v1/users/"
	segmentsPath = "/v1/segments/"
	setsPath     = "/v1/sets/"
	messagesPath = "/v1/messages/"
)

// The function "named" reports whether the URL path belongs to a route whose path parameter, such as a set name, may
// contain slashes.
func named(path string) bool {
	return slices.ContainsFunc([]string{segmentsPath, setsPath, messagesPath}, func(begin string) bool {
		return strings.HasPrefix(path, begin)
	})
}

// wholeName splits a path such as /v1/segments/tz/Asia/Singapore/bitmap into the name, here "tz/Asia/Singapore", and
// the text before and after the name. If the path belongs to a call without a name that may contain slashes,
// wholeName returns "".
func wholeName(method, path string) (before, name, behind string) {
	if rest, ok := strings.CutPrefix(path, messagesPath); ok {
		if method != http.MethodPost {
			return messagesPath, rest, ""
		}
		name, ok := strings.CutSuffix(rest, releasePath)
		if !ok {
			return messagesPath, "", rest
		}
		return messagesPath, name, releasePath
	}
	if rest, ok := strings.CutPrefix(path, setsPath); ok {
		name, ok := strings.CutSuffix(rest, membersPath)
		if !ok {
			return "", "", ""
		}
		return setsPath, name, membersPath
	}
	rest, ok := strings.CutPrefix(path, segmentsPath)
	last := strings.LastIndexByte(rest, '/')
	if !ok || last < 0 || rest[last:] != "/bitmap" && rest[last:] != membersPath {
		return "", "", ""
	}
	return segmentsPath, rest[:last], rest[last:]
}

// membersPath is the end of the URL path of calls about the members of a set or segment.
const membersPath = "/members"

// releasePath is the end of the URL path of calls that release a message.
const releasePath = "/release"

// withWholeName returns a copy of the request in whose path the slashes of the name (such as a set name) are escaped.
func withWholeName(req *http.Request) *http.Request {
	before, name, behind := wholeName(req.Method, req.URL.Path)
	if name == "" {
		return req
	}
	routed, to := *req, *req.URL
	to.RawPath = before + url.PathEscape(name) + behind
	routed.URL = &to
	return &routed
}

// The function template converts a path of the router to the notation of the API's description: it writes {name} for
// :name.
func template(path string) string { return pathParameters.Replace(path) }

var pathParameters = strings.NewReplacer(":id", "{id}", ":name", "{name}", ":set", "{set}",
	":generation", "{generation}")

// holderOf returns the client to whom the budgets charge the call. If no API keys are configured, holderOf returns the
// caller's network address.
func holderOf(c *call) string {
	if c.Client != gate.OpenClient {
		return c.Client
	}
	return gate.AddressOf(c.r.RemoteAddr)
}

// The method serve processes a call, measures the duration of the call and logs failures.
func (r *router) serve(route string, c *call, h handler) {
	start := time.Now()
	status := http.StatusOK
	r.begin(route, c, start)
	if r.s.stopping.Load() {
		c.w.Header().Set("Connection", "close") // with HTTP/2, the connection ends when all its calls have ended
	}
	c.watchBody()
	err := gate.Acceptable(c.r, r.s.hosts)
	if err == nil {
		err = protect(h, c)
	}
	if err != nil {
		f := wire.FailureOf(err)
		status = f.Code.Status()
		unread := r.s.refuse(c, trace.RequestID(c.ctx), f)
		defer c.discard(unread) // after the call is counted, because the time of the call does not include it
		r.report(route, c, f)
		spanRefused(c.span, f)
	} else if response, ok := c.w.(*echo.Response); ok {
		status = response.Status
	}
	took := time.Since(start)
	r.s.metrics.CountRequest(route, status, took)
	endSpan(c.span, status, start.Add(took))
	if r.s.log.Enabled(c.ctx, slog.LevelDebug) {
		r.s.log.DebugContext(c.ctx, "call answered", "method", c.r.Method, "route", route, "status", status, "client",
			c.Client, "took", took.String())
	}
}

// The method begin writes the request id to the response header and to the context, and starts a trace span when the
// call is traced.
func (r *router) begin(route string, c *call, at time.Time) {
	c.asked = capping.InstantOf(r.s.clock())
	id := trace.IDOf(c.r.Header, at)
	c.w.Header()[trace.IDHeader] = []string{id}
	c.ctx, c.span = beginSpan(r.s.tracer, c.r, route, id, at)
}

// The function protect calls the handler h, and converts a panic of the handler to an error.
func protect(h handler, c *call) (err error) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if failed, ok := p.(error); ok && errors.Is(failed, http.ErrAbortHandler) {
			panic(p)
		}
		err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
	}()
	return h(c)
}

// The method report logs failures of the service. If the caller caused an error, the server does not log the error.
func (r *router) report(route string, c *call, f *wire.Failure) {
	r.s.auditRefusal(c, f)
	switch {
	case f.Code == api.CodeInternal:
		r.s.log.ErrorContext(c.ctx, "call failed", "route", route, "error", f.Cause)
	case f.Code == api.CodeUnavailable && f.Cause != nil:
		r.s.log.WarnContext(c.ctx, "call not answered", "route", route, "error", f.Cause)
	}
}

// answerUnrouted writes the response to a request that no route matched.
func (r *router) answerUnrouted(err error, c echo.Context) {
	r.serve("other", &call{w: c.Response(), r: c.Request()}, func(call *call) error {
		var he *echo.HTTPError
		if errors.As(err, &he) && he.Code == http.StatusMethodNotAllowed {
			return wire.NewFailure(api.CodeMethodNotAllowed, "%s %s: this path supports only the methods %s",
				call.r.Method, wire.Clip([]byte(call.r.URL.Path)), call.w.Header().Get("Allow"))
		}
		if errors.As(err, &he) && he.Code == http.StatusNotFound {
			return noSuchPath(call)
		}
		return err
	})
}

func noSuchPath(c *call) error {
	return wire.NewFailure(api.CodeNotFound, "%s: the path does not exist", wire.Clip([]byte(c.r.URL.Path)))
}

// routeProfiles adds the routes below /debug/pprof.
func (r *router) routeProfiles() {
	plain := func(h http.HandlerFunc) handler {
		return func(c *call) error {
			h(c.w, c.r)
			return nil
		}
	}
	r.handleLocal(http.MethodGet, "/debug/pprof/", gate.ScopeAdmin, plain(pprof.Index))
	r.handleLocal(http.MethodGet, "/debug/pprof/cmdline", gate.ScopeAdmin, plain(pprof.Cmdline))
	r.handleLocal(http.MethodGet, "/debug/pprof/profile", gate.ScopeAdmin, plain(pprof.Profile))
	r.handleLocal(http.MethodGet, "/debug/pprof/symbol", gate.ScopeAdmin, plain(pprof.Symbol))
	r.handleLocal(http.MethodGet, "/debug/pprof/trace", gate.ScopeAdmin, plain(pprof.Trace))
	r.handleLocal(http.MethodGet, "/debug/pprof/:id", gate.ScopeAdmin, func(c *call) error {
		pprof.Handler(c.id).ServeHTTP(c.w, c.r)
		return nil
	})
}

// The method Beside returns a handler that passes requests at the given path and below to the handler "pages", and all
// other requests to the handler "calls". The returned handler redirects a browser at "/" to the pages. Requests for
// pages and requests for the API share the metrics, the check of host names and the shutdown. The handler "pages"
// writes its responses itself, including error responses.
func (s *Server) Beside(calls http.Handler, path string, pages http.Handler) http.Handler {
	s.metrics.ExpectRoute(path)
	r := newRouter(s)
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		root := req.URL.Path == "/" && (req.Method == http.MethodGet || req.Method == http.MethodHead)
		if !root && req.URL.Path != path && !strings.HasPrefix(req.URL.Path, path+"/") {
			calls.ServeHTTP(w, req)
			return
		}
		r.serve(path, &call{w: echo.NewResponse(w, r.echo), r: req}, func(c *call) error {
			if root {
				http.Redirect(c.w, c.r, path+"/", http.StatusFound)
				return nil
			}
			c.r.Header[trace.IDHeader] = []string{trace.RequestID(c.ctx)} // for API calls of the pages
			pages.ServeHTTP(c.w, c.r.WithContext(c.ctx))
			return nil
		})
	})
}
