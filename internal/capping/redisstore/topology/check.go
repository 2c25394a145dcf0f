package topology

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// The method Check examines the settings of every master and replica, and the rights of the store's Redis user. For a
// setting that would break a promise of the store (for example, that recorded sends survive a crash), Check returns an
// error. For a setting that only costs memory or cannot be read, Check returns a warning.
func (t *Topology) Check(ctx context.Context) ([]string, error) {
	var f Findings
	if t.config.ReplicaAcks.None() {
		f.Warn(noAcks)
	}
	if n := t.Unserved(); n > 0 {
		f.Warn("%d of %d partitions are on slots that no node serves: their users are unavailable", n, len(t.routes))
	}
	reached := t.checkMasters(ctx, &f)
	t.watchful = true
	if len(reached) == 0 {
		return nil, hint(fmt.Errorf("no Redis master could be checked: %s", strings.Join(f.All(), "; ")),
			t.announcedHint())
	}
	for i, later := range t.checkSuccessors(ctx, reached) {
		reached[i].addFindings(&later)
		f.Add(later)
	}
	t.publishWarnings()
	return f.All(), errors.Join(f.Refusals...)
}

// checkMasters examines the settings and rights of every master, and returns the masters that replied.
func (t *Topology) checkMasters(ctx context.Context, f *Findings) (reached []*Node) {
	for _, n := range t.Masters() {
		var own Findings
		if err := n.check(ctx, &own); err != nil {
			f.Miss("node %s: not checked: %v", n.addr, err)
			continue
		}
		n.noteFindings(&own)
		f.Add(own)
		reached = append(reached, n)
	}
	return reached
}

// announcedHint returns a hint for the operator of a cluster that announces addresses of nodes that this machine cannot
// reach.
func (t *Topology) announcedHint() string {
	if !t.cluster {
		return ""
	}
	return "capper cannot reach the addresses that the cluster announces: open the network to every node, or set " +
		"cluster-announce-ip and cluster-announce-port (or cluster-announce-hostname) on the nodes to addresses " +
		"that capper can reach"
}

func (n *Node) check(ctx context.Context, f *Findings) error {
	usable, err := n.inspect(ctx, f)
	if err != nil || !usable {
		return err
	}
	return n.checkReplicas(ctx, f)
}

// The method "inspect" examines the rights of the store's Redis user on a master, and then the settings of the master.
// If the user lacks rights, "inspect" does not read the settings, because the user may lack the right to read them.
func (n *Node) inspect(ctx context.Context, f *Findings) (usable bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*n.top.attempt())
	defer cancel()
	found, err := n.top.rules.Survey(ctx, n.client, n.top.trial("node "+n.addr, n))
	if err != nil {
		return false, err
	}
	f.Add(found.Judged())
	return found.Lacking == nil, nil
}

// The method "trial" returns the description of a test of the Redis user's rights, with a test key. If the node holds
// partitions, the test key belongs to a partition of the node.
func (t *Topology) trial(who string, n *Node) Trial {
	trial := Trial{Who: who, Key: t.config.Partitions[0].trialKey(), Cluster: t.cluster}
	for p := range t.config.Partitions {
		if n != nil && t.Route(p) == n {
			trial.Key, trial.Held = t.config.Partitions[p].trialKey(), true
			break
		}
	}
	return trial
}

func (n *Node) checkReplicas(ctx context.Context, f *Findings) error {
	acks := n.top.config.ReplicaAcks
	if acks.None() {
		return nil
	}
	found, err := n.replicas(ctx)
	if err != nil {
		return err
	}
	alive, all := found.alive, found.all
	want := max(1, acks.fixed())
	switch {
	case found.most < want:
		loss := ""
		if all == 0 {
			loss = " and accept that sends are lost with a master"
		}
		f.Refuse("node %s has %d replicas, but replica_acks: %s needs %d: add replicas, or set replica_acks: %d%s",
			n.addr, all, acks, want, all, loss)
	case all < want:
		f.Warn("node %s has %d replicas, but replica_acks: %s needs %d: its users are unavailable until a "+
			"replica joins it", n.addr, all, acks, want)
	case n.top.cluster && n.heirless.Load():
		f.Warn("node %s: no replica may become a master (cluster-replica-no-failover yes): if the node is lost, its "+
			"users are unavailable until it returns", n.addr)
	case alive < want:
		f.Warn("node %s: %d of %d replicas work, but replica_acks: %s needs %d: its users are unavailable until then",
			n.addr, alive, all, acks, want)
	case acks != Healthy && all > want:
		f.Warn("node %s has %d replicas, but replica_acks: %s waits for %d: a send is lost if a replica without it "+
			"is promoted; healthy waits for all working replicas",
			n.addr, all, acks, want)
	}
	return nil
}

// vetEvery is the interval between two examinations of a master, because an operator may change settings and rights at
// any time. After an examination with findings, the next examination follows after vetFoundSoon, so that the status
// shows a repair within seconds.
const (
	vetEvery     = 30 * time.Second
	vetFoundSoon = 3 * time.Second
)

// vetDue reports whether a new examination of the master's settings and rights is due.
func (n *Node) vetDue() bool {
	every := vetEvery
	if n.breach != "" || len(n.warned) > 0 {
		every = vetFoundSoon
	}
	return n.top.watchful && time.Since(time.UnixMilli(n.vetted.Load())) > every
}

// The method "vet" examines the settings of a master and its replicas, and the rights of the store's Redis user, while
// the store runs. The store examines a new master immediately, and every master at regular intervals. The method "vet"
// only warns operators about findings, because a refusal would make the master's users unavailable. The method "vet"
// ignores a replica that does not answer, because lookAtReplicas reports missing replicas.
func (n *Node) vet(ctx context.Context) {
	var f, copies Findings
	usable, err := n.inspect(ctx, &f)
	if err == nil && usable {
		err = n.checkReplicas(ctx, &copies) // lookAtReplicas reports missing replicas
		f.Warnings = append(f.Warnings, copies.Warnings...)
	}
	if err != nil {
		return // the next refresh tries again
	}
	f.Add(n.top.checkSuccessors(ctx, []*Node{n})[0])
	if len(n.missed) == 0 || len(f.Missed) > 0 {
		f.Missed = n.missed
	}
	known, broken := n.warned, n.breach
	n.noteFindings(&f)
	n.logFindings(known, broken)
}

// logFindings logs the new findings of the last examination of a master. The method logFindings also logs when the
// settings no longer break a promise.
func (n *Node) logFindings(known []string, broken string) {
	log := n.top.config.Logger
	for _, warning := range n.warned {
		if !slices.Contains(known, warning) {
			log.Warn("Redis master", "warning", warning)
		}
	}
	switch {
	case n.breach == broken:
	case n.breach != "":
		log.Error("Redis master may lose records", "error", n.breach)
	default:
		log.Info("Redis master is safe again", "node", n.addr, "was", broken)
	}
}

// noteFindings replaces the stored findings of the node by the findings of a new examination.
func (n *Node) noteFindings(f *Findings) {
	n.vetted.Store(time.Now().UnixMilli())
	n.nameless.Store(false) // the right to run ROLE may have been granted again
	n.warned, n.missed, n.breach = nil, nil, ""
	n.addFindings(f)
}

// addFindings adds findings to the stored findings of the node's latest examination.
func (n *Node) addFindings(f *Findings) {
	n.warned = append(n.warned, f.Warnings...)
	n.missed = append(n.missed, f.Missed...)
	if err := errors.Join(f.Refusals...); err != nil {
		n.breach = strings.ReplaceAll(err.Error(), "\n", "; ")
	}
}

// publishWarnings builds the list of warnings that the method Warnings returns.
func (t *Topology) publishWarnings() {
	var warnings []string
	for _, n := range t.Masters() {
		warnings = append(append(warnings, n.warned...), n.missed...)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.warnings = warnings
}

// Warnings returns the findings of the latest examinations that break no promise: settings that cost memory, risks for
// users, and values that could not be read.
func (t *Topology) Warnings() []string {
	certificates := t.certificateWarnings()
	t.mu.Lock()
	defer t.mu.Unlock()
	var warnings []string
	if t.config.ReplicaAcks.None() {
		warnings = append(warnings, noAcks)
	}
	for _, addr := range slices.Sorted(maps.Keys(t.silent)) {
		if n := t.nodes[addr]; n == nil || n.trips.Time() == 0 {
			warnings = append(warnings, t.silent[addr])
		}
	}
	warnings = append(warnings, t.warnings...)
	for _, addr := range slices.Sorted(maps.Keys(certificates)) {
		warnings = append(warnings, certificates[addr])
	}
	return warnings
}

const noAcks = "replica_acks is 0: an allowed send is lost if its master is lost, and may then be sent again"
