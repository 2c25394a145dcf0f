package topology

import (
	"context"

	"capper/internal/capping/redisstore/fault"
)

// belief is that the signs of partitions have been looked at on the node, since its server started and since
// it holds them.
type belief struct {
	node *Node
	run  *string
}

// Believe is the belief with which commands for the partitions are sent to the node, or why there is none: the
// server has started, or has become their master, and nobody has looked at their signs since. They are looked at
// now. Partitions that the node is asked for only while it takes them over are none of these.
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

// Judge is why the replies of the pipeline may not be believed, or nil: the server may have started
// anew before it.
func (b belief) Judge() error {
	if b.node == nil || b.node.process.Load() == b.run {
		return nil
	}
	b.node.doubt()
	return errUnseen{}
}

// forgetLooks forgets the looks at the node, which holds no partition.
func (n *Node) forgetLooks() {
	for p := range n.top.looked {
		if looked := n.top.looked[p].Load(); looked != nil && looked.node == n {
			n.top.looked[p].CompareAndSwap(looked, nil)
		}
	}
}

// noteProcess keeps which run of the server a new connection is to. Where it is hidden, every
// connection may be to another.
func (n *Node) noteProcess(run string) {
	for {
		known := n.process.Load()
		if known != nil && run != "" && *known == run || n.process.CompareAndSwap(known, &run) {
			return
		}
	}
}

// doubt has the signs of the node looked at, unless that is under way.
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

// errUnseen is that nobody has looked at the signs of a server since it started.
type errUnseen struct{}

func (errUnseen) Error() string {
	return "the server has started, and its sentinel keys have not been checked yet"
}

// Remedy is to try again: a look takes milliseconds.
func (errUnseen) Remedy() fault.Remedy { return fault.Remedy{Kind: fault.Down, Unknown: true} }
