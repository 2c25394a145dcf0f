package live

import "sync"

// Lists holds the live changes of all sets in memory. It is safe for concurrent use.
type Lists struct{ mu sync.RWMutex }
