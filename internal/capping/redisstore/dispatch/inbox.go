package dispatch

import "sync"

// inbox takes commands from lanes without ever making them wait.
type inbox struct {
	mu       sync.Mutex
	commands []*Command
	signal   chan struct{} // of capacity 1: there are commands
}

func (b *inbox) put(commands []*Command) {
	b.mu.Lock()
	b.commands = append(b.commands, commands...)
	b.mu.Unlock()
	select {
	case b.signal <- struct{}{}:
	default:
	}
}

// drain moves what is there to into.
func (b *inbox) drain(into []*Command) []*Command {
	b.mu.Lock()
	defer b.mu.Unlock()
	into = append(into, b.commands...)
	clear(b.commands)
	b.commands = b.commands[:0]
	return into
}
