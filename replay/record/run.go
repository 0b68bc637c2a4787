package record

import (
	"encoding/json"
	"time"
)

// Format is the version of the run directory's format.
const Format = 1

// Status says how a run stands.
type Status string

const (
	Running     Status = "running"
	Complete    Status = "complete"
	Interrupted Status = "interrupted"
	Failed      Status = "failed"
)

// Loop says what sets the pace of a run.
type Loop string

const (
	Open   Loop = "open"   // the log or a rate
	Closed Loop = "closed" // the server
)

// Run is run.json: what was run, on what, by what, and how it ended.
type Run struct {
	Format                 int      `json:"format"`
	Scenario               string   `json:"scenario"`
	Backend                *string  `json:"backend"`
	Repeat                 *int     `json:"repeat"`
	Status                 Status   `json:"status"`
	GeneratorLimited       bool     `json:"generator_limited"`
	GeneratorLimitedReason *string  `json:"generator_limited_reason"`
	Reason                 *string  `json:"reason"`
	StartedAt              Instant  `json:"started_at"`
	EndedAt                Instant  `json:"ended_at"`
	Target                 Target   `json:"target"`
	Command                []string `json:"command"`
	Seed                   int64    `json:"seed"`
	Loop                   Loop     `json:"loop"`
	Speed                  string   `json:"speed"`
	WarmupS                float64  `json:"warmup_s"`
	Logs                   []Log    `json:"logs"`
	LogStart               Instant  `json:"log_start"`
	Program                Program  `json:"program"`
	Host                   Host     `json:"host"`
	Shard                  *Shard   `json:"shard,omitempty"`
}

// Target is what the load was sent to.
type Target struct {
	URL       string   `json:"url"`
	ConnectTo *string  `json:"connect_to"`
	Addresses []string `json:"addresses"`
}

// Log is one log file and what was found in it.
type Log struct {
	Path    string  `json:"path"`
	Format  string  `json:"format"`
	Lines   uint64  `json:"lines"`
	Valid   uint64  `json:"valid"`
	Failed  uint64  `json:"failed"`
	Ignored uint64  `json:"ignored"`
	First   Instant `json:"first"`
	Last    Instant `json:"last"`
}

// Program is who wrote the run directory.
type Program struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Go      string `json:"go"`
}

// Instant is a wall clock time with microseconds in UTC; the zero one is null.
type Instant struct{ time.Time }

const instantLayout = "2006-01-02T15:04:05.000000Z07:00"

func (i Instant) MarshalJSON() ([]byte, error) {
	if i.IsZero() {
		return []byte("null"), nil
	}
	return json.Marshal(i.UTC().Format(instantLayout))
}

func (i *Instant) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		i.Time = time.Time{}
		return nil
	}
	return i.Time.UnmarshalJSON(b)
}

// withDefaults fills what every run has, so that lists are [] and not null in JSON.
func (r Run) withDefaults() Run {
	r.Format, r.Status = Format, Running
	if r.Loop == "" {
		r.Loop = Open
	}
	if r.Command == nil {
		r.Command = []string{}
	}
	if r.Logs == nil {
		r.Logs = []Log{}
	}
	if r.Target.Addresses == nil {
		r.Target.Addresses = []string{}
	}
	return r
}
