package topology

import (
	"context"

	"capper/internal/capping/redisstore/fault"
)

// A belief says on which node some partitions' sentinel keys (marker keys that reveal lost data) were checked, and in
// which run of the node's server. The sentinel keys were checked after the node had taken over the partitions of these
// keys.
type belief struct {
	node *Node
	run  *string
}

// Believe returns a belief (a past check of sentinel keys), which allows that a command for the given partitions runs
// on the node. If the server has restarted or has become the partitions' master since the last check of their sentinel
// keys, Believe returns an error. Before Believe returns an error, it starts a new check of the partitions' sentinel
// keys (marker keys that reveal lost data). If the node is still importing a partition's hash slot, the partition's
// sentinel key need not be checked.
func (n *Node) Believe(partitions []int) (belief, error) {
	if n.top.look.Load() == nil || len(partitions) == 0 {
		return belief{}, nil
	}
	b := belief{n, n.process.Load()}
	for _, p := range partitions {
		if looked := n.top.looked[p].Load(); looked == nil || *looked != b {
			n.doubt()
			return belief{}, errUnseen{}
		}
	}
	return b, nil
}

// Judge returns the reason why the store must not trust the replies of a pipeline, or nil if it may. The replies cannot
// be trusted if the server may have restarted after the check of its sentinel keys and before the pipeline ran.
func (b belief) Judge() error {
	if b.node == nil || b.node.process.Load() == b.run {
		return nil
	}
	b.node.doubt()
	return errUnseen{}
}

// forgetLooks is for a node that no longer holds partitions: it discards the results of earlier checks of sentinel keys
// (marker keys that reveal lost data) on this node.
func (n *Node) forgetLooks() {
	for p := range n.top.looked {
		if looked := n.top.looked[p].Load(); looked != nil && looked.node == n {
			n.top.looked[p].CompareAndSwap(looked, nil)
		}
	}
}

// noteProcess stores the run id of the server (a new number at each start), which a new connection has read. If the
// server hides its run id, the store treats every new connection as a restart of the server.
func (n *Node) noteProcess(run string) {
	for {
		known := n.process.Load()
		if known != nil && run != "" && *known == run || n.process.CompareAndSwap(known, &run) {
			return
		}
	}
}

// doubt starts a check of the sentinel keys (marker keys that reveal lost data) on the node, unless such a check is
// already running.
func (n *Node) doubt() {
	look := n.top.look.Load()
	if look == nil || !n.doubted.CompareAndSwap(false, true) {
		return
	}
	n.top.beside(func() {
		defer n.doubted.Store(false)
		ctx, cancel := context.WithTimeout(n.top.living, n.top.config.LongestAttempt())
		defer cancel()
		if partitions := n.partitions(); len(partitions) > 0 {
			n.lookAtSigns(ctx, partitions, look)
		}
	})
}

// errUnseen reports that a server has restarted, and that nobody has checked its sentinel keys (marker keys that reveal
// lost data) since then.
type errUnseen struct{}

func (errUnseen) Error() string {
	return "the server has started, and its sentinel keys have not been checked yet"
}

// Remedy tells the caller to retry, because a check of the sentinel keys (marker keys that reveal lost data) takes only
// milliseconds.
func (errUnseen) Remedy() fault.Remedy { return fault.Remedy{Kind: fault.Down, Unknown: true} }
