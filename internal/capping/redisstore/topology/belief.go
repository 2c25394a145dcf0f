package topology

import (
	"context"

	"capper/internal/capping/redisstore/fault"
)

// A belief identifies a past check of partitions' sentinel keys (marker keys that reveal lost data) by the node and the
// run of the node's server.
type belief struct {
	node *Node
	run  *string
}

// Believe returns a belief (past check of sentinel keys, which reveal lost data) that allows a command for the given
// partitions on the node. If the server has restarted or has become the partitions' master since the last check,
// Believe starts a new check and returns an error.
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

// Judge returns the reason to reject the replies of a pipeline, or nil to accept them. If the server has restarted
// after the check of its sentinel keys (marker keys that reveal lost data) and before the pipeline ran, the store must
// reject the replies.
func (b belief) Judge() error {
	if b.node == nil || b.node.process.Load() == b.run {
		return nil
	}
	b.node.doubt()
	return errUnseen{}
}

// forgetLooks discards the results of earlier checks of sentinel keys (marker keys that reveal lost data) on a node
// that no longer holds partitions.
func (n *Node) forgetLooks() {
	for p := range n.top.looked {
		if looked := n.top.looked[p].Load(); looked != nil && looked.node == n {
			n.top.looked[p].CompareAndSwap(looked, nil)
		}
	}
}

// noteProcess stores the run id of the server (a new random text at each start) from a new connection. If the server
// hides its run id, the store treats every new connection as a restart of the server.
func (n *Node) noteProcess(run string) {
	for {
		known := n.process.Load()
		if known != nil && run != "" && *known == run || n.process.CompareAndSwap(known, &run) {
			return
		}
	}
}

// If no check of the sentinel keys (marker keys that reveal lost data) on the node is running, the method "doubt"
// starts one.
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

// errUnseen reports that the store has not checked the sentinel keys (marker keys that reveal lost data) of a server
// since the server restarted.
type errUnseen struct{}

func (errUnseen) Error() string {
	return "the server has started, and its sentinel keys have not been checked yet"
}

// The method Remedy tells the caller to retry, because a check of the sentinel keys (marker keys that reveal lost data)
// takes only milliseconds.
func (errUnseen) Remedy() fault.Remedy { return fault.Remedy{Kind: fault.Down, Unknown: true} }
