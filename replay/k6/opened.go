package k6

import (
	"sync"

	"plimsoll/replay/run"
)

// opened is a log that a script has opened: one for all virtual users of the instance.
type opened struct {
	command *run.Command
	asked   *run.Asked
	minute  bool // it starts at a whole minute
	once    sync.Once
}

// handles guards the logs that are open.
type handles struct{ mu sync.Mutex }

// open checks the options, unless another virtual user has done so: all of them run the same script.
func (r *rootModule) open(given *options, absolute func(string) string) (*opened, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, ok := r.opened[given.key]; ok {
		return known, nil
	}
	command, asked, err := given.command(absolute)
	if err != nil {
		return nil, err
	}
	log := &opened{command: command, asked: asked, minute: given.startAt == "minute"}
	r.opened[given.key] = log
	return log, nil
}
