package topology

import (
	"context"
	"fmt"
	"net"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// slotCount is how many slots a cluster has.
const slotCount = 16384

// slotRange is who serves the slots from start to end, the master first.
type slotRange struct {
	start, end int
	members    []member
}

// member is a node as CLUSTER SLOTS describes it. An address without a host is
// of the host that was asked.
type member struct{ addr, id string }

// slotsCommand asks for CLUSTER SLOTS. The library's own command takes an
// unknown host, which is a null, for the end of the reply.
func slotsCommand(ctx context.Context, pipe redis.Pipeliner) *redis.SliceCmd {
	cmd := redis.NewSliceCmd(ctx, "cluster", "slots")
	_ = pipe.Process(ctx, cmd)
	return cmd
}

// parseSlots reads the reply of CLUSTER SLOTS.
func parseSlots(reply []any) ([]slotRange, error) {
	ranges := make([]slotRange, len(reply))
	for i, described := range reply {
		fields, _ := described.([]any)
		if len(fields) < 2 {
			return nil, fmt.Errorf("cluster slots: range %d is %v", i, described)
		}
		start, ok := fields[0].(int64)
		end, ok2 := fields[1].(int64)
		if !ok || !ok2 || start < 0 || end < start || end >= slotCount {
			return nil, fmt.Errorf("cluster slots: range %d is from %v to %v", i, fields[0], fields[1])
		}
		ranges[i] = slotRange{start: int(start), end: int(end)}
		for _, node := range fields[2:] {
			m, err := parseMember(node)
			if err != nil {
				return nil, err
			}
			ranges[i].members = append(ranges[i].members, m)
		}
	}
	return ranges, nil
}

// parseMember reads host, port, id (since Redis 4) and other addresses (since
// Redis 7) of a node. Servers behind one endpoint know no host: it is null or
// empty; where a node's name was not announced it is "?", and its address is
// among the others.
func parseMember(described any) (member, error) {
	fields, _ := described.([]any)
	if len(fields) < 2 {
		return member{}, fmt.Errorf("cluster slots: node %v", described)
	}
	host, _ := fields[0].(string)
	port, ok := fields[1].(int64)
	if !ok || port < 1 || port > 65535 {
		return member{}, fmt.Errorf("cluster slots: node %v: port %v", host, fields[1])
	}
	var m member
	if len(fields) > 2 {
		m.id, _ = fields[2].(string)
	}
	if host == unknownHost {
		host = ""
		if len(fields) > 3 {
			host = otherAddress(fields[3], "ip")
		}
	}
	m.addr = net.JoinHostPort(host, strconv.FormatInt(port, 10))
	return m, nil
}

// unknownHost stands for a host that the server does not know.
const unknownHost = "?"

// otherAddress is the value of the name in a list of names and values.
func otherAddress(list any, name string) string {
	pairs, _ := list.([]any)
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i] == name {
			value, _ := pairs[i+1].(string)
			return value
		}
	}
	return ""
}
