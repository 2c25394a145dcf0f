package testkit

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"
)

var namespaces atomic.Int64

// Namespace returns a unique Redis key prefix. No other test that uses the shared cluster gets the same key prefix, not
// even in another process. The key prefix begins with "fc:", because the documentation's example users of Redis may
// access only keys with this prefix.
func Namespace() string {
	return fmt.Sprintf("fc:t%d-%d-%d", os.Getpid(), time.Now().UnixMilli(), namespaces.Add(1))
}
