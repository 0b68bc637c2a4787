package record

// Shard says which share of a run this is, where several instances replay one log (docs/run-format.md).
type Shard struct {
	Index    int      `json:"index"`    // from 0
	Of       int      `json:"of"`       // instances
	Segment  string   `json:"segment"`  // as k6 writes it: 1/4:1/2
	Sequence []string `json:"sequence"` // the bounds of all segments
	Planned  []uint64 `json:"planned"`  // requests that the schedule has for each instance; null until it was gone through
	StartAt  Instant  `json:"start_at"` // the instant that all share; null: each started when it was told to
	Clock    *Clock   `json:"clock"`    // null: the system does not say
}

// Clock is what the kernel says of its own wall clock.
type Clock struct {
	Synchronised bool    `json:"synchronised"`
	MaxErrorMS   float64 `json:"max_error_ms"` // the kernel's bound; it means something only where the clock is synchronised
}
