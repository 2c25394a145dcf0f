package doctor

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"capper/internal/app"
	"capper/internal/capping/redisstore"
)

// surveyTime is the time limit for the requests to all Redis servers together.
const surveyTime = 25 * time.Second

// The type "servers" holds the data of one survey of all Redis servers, for all checks of Redis.
type servers struct {
	*Subject
	options redisstore.Config
	report  *redisstore.Report
	err     error
	once    sync.Once
}

func redisChecks(s *Subject) []check {
	all := &servers{Subject: s}
	var checks []check
	for _, c := range []struct {
		name  string
		judge func(*notes, *redisstore.Report)
	}{
		{"redis.reach", all.judgeReach}, {"redis.certificates", all.judgeCertificates},
		{"redis.rights", all.judgeRights}, {"redis.settings", all.judgeSettings},
		{"redis.store", all.judgeStore}, {"clocks.redis", all.judgeClocks}, {"redis.cluster", all.judgeCluster},
		{"redis.replicas", all.judgeReplicas},
		{"redis.spread", all.judgeSpread}, {"redis.memory", all.judgeMemory},
		{"redis.replication", all.judgeReplication}, {"redis.persistence", all.judgePersistence},
	} {
		checks = append(checks, check{Name: c.name, Within: surveyTime + 5*time.Second,
			Look: func(ctx context.Context, n *notes) {
				if report := all.survey(ctx, n, c.name); report != nil {
					c.judge(n, report)
				}
			}})
	}
	return checks
}

// The method survey collects data from all Redis servers at the first call, and returns the same data to each check. If
// the survey fails, the first check reports the error, and the other checks report that no server was checked. To check
// TLS certificates, the doctor also contacts Redis servers that do not respond to commands.
func (s *servers) survey(ctx context.Context, n *notes, check string) *redisstore.Report {
	first := check == "redis.reach"
	s.once.Do(func() {
		ctx, cancel := context.WithTimeout(ctx, surveyTime)
		defer cancel()
		if s.options, s.err = app.RedisOptions(s.Config.Store.Redis); s.err == nil {
			s.options.Clock = s.Clock
			s.report, s.err = redisstore.Survey(ctx, s.options)
		}
	})
	switch {
	case s.err != nil && first:
		n.Fail("", s.err.Error(), "correct store.redis", "the service does not start")
	case s.err != nil:
		n.Skip("", "no server was checked")
	case len(s.report.Nodes) == 0 && !first && check != "redis.certificates":
		n.Skip("", "no server answers")
		return nil
	}
	return s.report
}

// The function kind returns a text with the role and the address of a Redis node, such as "master 10.0.0.1:6379".
func kind(n *redisstore.Node) string {
	if n.Master == "" {
		return "master " + n.Addr
	}
	return "replica " + n.Addr
}

// The function "answering" returns the Redis nodes that responded: all nodes, or only masters if the argument
// mastersOnly is true.
func answering(r *redisstore.Report, mastersOnly bool) (nodes []*redisstore.Node) {
	for _, n := range r.Nodes {
		if n.Facts != nil && (!mastersOnly || n.Master == "") {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// If the median round-trip time to a Redis server is above the constant "far", the doctor reports a warning, because
// calls become noticeably slower.
const far = 20 * time.Millisecond

func (s *servers) judgeReach(n *notes, r *redisstore.Report) {
	for _, addr := range slices.Sorted(maps.Keys(r.Silent)) {
		if len(r.Nodes) == 0 {
			n.Fail(addr, r.Silent[addr].Error(), cmp.Or(r.Hint, advice(r.Silent[addr])),
				"the service does not start, so no user is decided")
			continue
		}
		n.Warn(addr, r.Silent[addr].Error(), "start the server, or remove it from store.redis.addrs",
			"a start finds the other servers only by the remaining addresses")
	}
	for _, node := range r.Nodes {
		switch {
		case node.Err != nil && node.Master == "":
			n.Fail(kind(node), node.Err.Error(), "check that the server runs and that this machine can reach it: "+
				"every instance connects to every master", "its users are unavailable")
		case node.Err != nil:
			n.Warn(kind(node), node.Err.Error(), "check that the server runs and that this machine can reach it",
				"the server may become the master one day, and the sends of its shard have one replica less")
		case len(node.Trips) > 0 && node.Trips[len(node.Trips)/2] > far:
			n.Warn(kind(node), "answers in "+trips(node), "run the service closer to its Redis",
				"each call needs at least two round trips, and calls that take longer than clock_skew are rejected")
		default:
			n.OK(kind(node), "%s answers in %s", node.Version(), trips(node))
		}
	}
}

// The function "advice" returns advice for an error of a connection to Redis.
func advice(err error) string {
	if redisstore.IsAuth(err) {
		return "the password is read from $" + app.RedisPassword + " or store.redis.password_file, and the user name " +
			"from " +
			"store.redis.username"
	}
	return "see store.redis.addrs and tls"
}

func trips(n *redisstore.Node) string {
	if len(n.Trips) == 0 {
		return "an unknown time"
	}
	return fmt.Sprintf("%s (worst of %d: %s)", rounded(n.Trips[len(n.Trips)/2]), len(n.Trips),
		rounded(n.Trips[len(n.Trips)-1]))
}

func (s *servers) judgeRights(n *notes, r *redisstore.Report) {
	for _, node := range answering(r, false) {
		if node.Lacking != nil {
			n.Fail(kind(node), node.Lacking.Error(), "add the line of deploy/redis.acl to the ACL of every server, "+
				"including replicas", "the service does not start, and users of a node that rejects commands are "+
				"unavailable")
			continue
		}
		lacks := slices.IndexFunc(node.Warnings, isOfRole)
		if lacks < 0 {
			n.OK(kind(node), "the user may run every command")
			continue
		}
		text := strings.TrimLeft(strings.TrimPrefix(node.Warnings[lacks], "node "+node.Addr), ": ")
		seen, why, _ := strings.Cut(text, ": ")
		n.Warn(kind(node), seen, "add +role to the user's rights (deploy/redis.acl)",
			strings.TrimSuffix(why, ": add +role to the user's rights (deploy/redis.acl)"))
	}
}

// isOfRole reports whether a warning says that the permission for the Redis command ROLE is missing. The store works
// without the permission for ROLE, but not without the permissions for its other Redis commands.
func isOfRole(warning string) bool {
	return strings.Contains(warning, "may not run role") || strings.Contains(warning, "does not know role")
}

// isCopying reports whether the append-only file of a node is off because the node copies the data of its master.
func isCopying(node *redisstore.Node) bool {
	switch f := node.Facts; {
	case node.Master == "" || node.Settings["appendonly"] == "no":
		return false
	case node.Settings["appendonly"] == "yes":
		return true
	default:
		return f["loading"] == "1" || f["master_sync_in_progress"] == "1"
	}
}

// judgeSettings adds findings for Redis settings about which the service, at its start, reports an error or a warning.
func (s *servers) judgeSettings(n *notes, r *redisstore.Report) {
	for _, node := range answering(r, false) {
		for _, refusal := range node.Refusals {
			if strings.Contains(refusal.Error(), "appendonly is no") && isCopying(node) {
				n.Skip(kind(node), "copies the data of its master, with its append-only file off until then: check "+
					"again later")
				continue
			}
			seen, change := split(node, refusal.Error())
			n.Fail(kind(node), seen, change, "the service does not start, because this server would lose allowed "+
				"sends")
		}
		for _, warning := range node.Warnings {
			if isOfRole(warning) {
				continue // the check redis.rights reports this error
			}
			seen, change := split(node, warning)
			n.Warn(kind(node), seen, change, "the service logs the same warning at its start")
		}
		if len(node.Refusals)+len(node.Warnings) == 0 && node.Lacking == nil {
			n.OK(kind(node), "all settings are as the service requires")
		}
	}
}

// The function split splits an error or warning of the service's start into the observation and the advice.
func split(node *redisstore.Node, text string) (seen, change string) {
	text = strings.TrimLeft(strings.TrimPrefix(text, "node "+node.Addr), ": ")
	if i := strings.LastIndex(text, ": "); i > 0 && strings.Contains(text[i:], "set") || i > 0 &&
		strings.Contains(text[i:], "make sure") {
		return text[:i], text[i+2:]
	}
	return text, "see docs/redis.md, Settings of the servers"
}

func (s *servers) judgeStore(n *notes, r *redisstore.Report) {
	switch {
	case r.MadeErr != nil:
		n.Skip("", "cannot determine whether the store exists: %v", r.MadeErr)
	case !r.Made && s.options.MustExist:
		n.Fail("", "the store does not exist, and the setting 'create' is false",
			"check that these are the right servers; use create: true only for the first start",
			"the service does not start, because an empty store would "+
				"allow every user again")
	case !r.Made:
		n.OK("", "the store does not exist yet: the first start creates it")
	case !s.options.MustExist:
		n.Warn("", "the store exists, and create is true", "create: false",
			"a restart after a loss creates the store again from the remaining data, and users may receive messages "+
				"as if they had received none")
	default:
		n.OK("", "the store exists, and a start with an empty store is rejected")
	}
	for _, b := range r.Broken {
		n.Fail("node "+b.Node, fmt.Sprintf("%s, since %s", b.What, b.Since.UTC().Format(time.RFC3339)),
			"see docs/operating.md#a-server-dropped-logs, then run capper store accept --reason …",
			fmt.Sprintf("the server may have lost recorded sends: the users of %d partitions are unavailable until "+
				"an operator accepts the loss", b.Partitions))
	}
}

// judgeClocks compares the clock of each Redis server with the clock of this machine.
func (s *servers) judgeClocks(n *notes, r *redisstore.Report) {
	skew := s.options.ClockSkew
	for _, node := range answering(r, false) {
		if len(node.Trips) == 0 {
			n.Skip(kind(node), "server did not report its time")
			continue
		}
		judgeClock(n, kind(node), node.Off, node.Sure, skew)
	}
}

func judgeClock(n *notes, of string, off, sure, skew time.Duration) {
	seen := fmt.Sprintf("clock differs from this machine's by %s, measured to %s; clock_skew is %s",
		rounded(off), rounded(sure),
		skew)
	least := off.Abs() - sure
	bound := skew
	if skew == 0 {
		bound = time.Second
	}
	switch {
	case least > bound && skew == 0:
		n.Warn(of, seen, "synchronise the clocks with NTP, and set clock_skew: 250ms",
			"clock_skew 0 disables the protection: windows are wrong by this difference")
	case least > bound:
		n.Fail(of, seen, "synchronise the clocks of both machines with NTP",
			"every call is rejected, because a wrong clock "+
				"would let users exceed their limits")
	case off.Abs()+sure > bound/2 && sure < bound/2:
		n.Warn(of, seen, "synchronise the clocks of both machines with NTP",
			"the difference is more than half of clock_skew")
	case sure >= bound/2:
		n.Warn(of, seen, "run the service closer to its Redis, or raise clock_skew",
			"responses take so long that calls are rejected as too late")
	default:
		n.OK(of, "%s", seen)
	}
}

// judgeCertificates adds findings for errors in the certificate chain of each Redis server.
func (s *servers) judgeCertificates(n *notes, r *redisstore.Report) {
	if s.options.TLS == nil {
		if s.Config.Store.Redis.TLS.Enabled || !onlyHere(s.options.Addrs) {
			n.Warn("", "connections to Redis have no TLS", "set store.redis.tls: {enabled: true}, if the servers "+
				"support TLS", "the password and user ids can be read on the network")
			return
		}
		n.Skip("", "no TLS is needed, because the servers are on this machine")
		return
	}
	for _, node := range r.Nodes {
		s.judgeChain(n, node)
	}
	for _, addr := range slices.Sorted(maps.Keys(r.Silent)) {
		if !slices.ContainsFunc(r.Nodes, func(known *redisstore.Node) bool { return known.Addr == addr }) {
			s.judgeChain(n, redisstore.Chain(addr, s.options.TLS))
		}
	}
}

func (s *servers) judgeChain(n *notes, node *redisstore.Node) {
	if len(node.Certificates) > 0 {
		judgeCertificate(n, kind(node), node.Certificates[0], s.now())
	}
	switch {
	case node.Away != nil:
		n.Skip(kind(node), "server accepts no connection, see redis.reach")
	case node.Distrust != nil && !isExpiry(node.Distrust):
		n.Fail(kind(node), node.Distrust.Error(),
			cmp.Or(node.DistrustHint(), "check that this port of the server uses TLS"),
			"the service rejects the server, because its identity is not proved")
	}
}
