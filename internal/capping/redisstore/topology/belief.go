package topology

import (
	"context"

	"capper/internal/capping/redisstore/fault"
)

// belief says on which node, and in which run of its server, the sentinel keys of some partitions were checked. The
// sentinel keys were checked after the node had taken over the partitions.
type belief struct {
	node *Node
	run  *string
}

// Believe returns the belief (the latest check of sentinel keys) that allows a command for the given partitions to run
// on the node. Believe returns an error if the server has restarted or has become the partitions' master since the last
// check of their sentinel keys. If Believe returns an error for that reason, it also starts a check of the sentinel
// keys. Partitions whose hash slot the node is still importing need no check of their sentinel keys.
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

// Judge returns the reason to reject the replies of a pipeline, or nil to accept them. Judge rejects the replies if the
// server may have restarted after the check of its sentinel keys and before the pipeline ran.
func (b belief) Judge() error {
	if b.node == nil || b.node.process.Load() == b.run {
		return nil
	}
	b.node.doubt()
	return errUnseen{}
}

// forgetLooks discards the results of earlier checks of sentinel keys on a node that no longer holds partitions.
func (n *Node) forgetLooks() {
	for p := range n.top.looked {
		if looked := n.top.looked[p].Load(); looked != nil && looked.node == n {
			n.top.looked[p].CompareAndSwap(looked, nil)
		}
	}
}

// noteProcess stores the run id of the server (new at each start), which a new connection has read. If a server hides
// its run id, every new connection counts as a restart of the server.
func (n *Node) noteProcess(run string) {
	for {
		known := n.process.Load()
		if known != nil && run != "" && *known == run || n.process.CompareAndSwap(known, &run) {
			return
		}
	}
}

// doubt starts a check of the node's sentinel keys, unless one is already running.
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

// errUnseen reports that a server has restarted and that its sentinel keys have not been checked since then.
type errUnseen struct{}

func (errUnseen) Error() string {
	return "the server has started, and its sentinel keys have not been checked yet"
}

// Remedy returns a remedy with a retry, because a check of the sentinel keys takes milliseconds.
func (errUnseen) Remedy() fault.Remedy { return fault.Remedy{Kind: fault.Down, Unknown: true} }
