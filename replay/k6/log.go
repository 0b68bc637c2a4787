package k6

import (
	"sync"

	"plimsoll/replay/run"
)

// openLog is a log that a script has opened: one for all virtual users of the instance.
type openLog struct {
	command *run.Command
	setup   *run.Setup
	minute  bool // it starts at a whole minute
	once    sync.Once
}

// handles guards the logs that are open.
type handles struct{ mu sync.Mutex }

// open checks the options, unless another virtual user has done so: all of them run the same script.
func (r *rootModule) open(given *options, absolute func(string) string) (*openLog, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, ok := r.logs[given.key]; ok {
		return known, nil
	}
	command, setup, err := given.command(absolute)
	if err != nil {
		return nil, err
	}
	log := &openLog{command: command, setup: setup, minute: given.startAt == "minute"}
	r.logs[given.key] = log
	return log, nil
}
