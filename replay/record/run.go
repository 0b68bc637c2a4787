// run.json: what was run, on what, by what, and the digest of the load.

package record

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
)

// Format is the version of the run directory's format.
const Format = 2

// Status is the state of a run.
type Status string

const (
	Running     Status = "running"
	Complete    Status = "complete"
	Interrupted Status = "interrupted"
	Failed      Status = "failed"
)

// Loop is what sets the pace of a run.
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
	Clients                *Clients `json:"clients,omitempty"` // nil: nobody counted them
	LogStart               Instant  `json:"log_start"`
	Program                Program  `json:"program"`
	Host                   Host     `json:"host"`
	Process                *Process `json:"process,omitempty"`
	Sender                 *Sender  `json:"sender,omitempty"` // nil: the run has not ended
	Load                   *Load    `json:"load,omitempty"`
	LogPauses              *Pauses  `json:"log_pauses,omitempty"`
	Shard                  *Shard   `json:"shard,omitempty"`
	Limits                 []string `json:"limits,omitempty"` // that the run is to keep, as they were given

	Settings map[string]any `json:"scenario_settings,omitempty"`
	Software *Software      `json:"server_software,omitempty"` // nil: no answer said any
}

// Sender is what sent the load.
type Sender struct {
	BesideServer bool `json:"beside_server"` // on the machine of the target
	Cores        int  `json:"cores"`         // that it might use
	Threads      int  `json:"threads"`       // that sent, at the end
	Nice         int  `json:"nice"`          // of them

	RanMSPerS        *float64 `json:"ran_ms_per_s,omitempty"`         // that it had a processor, where it is beside the target; nil: not seen
	OthersWaitMSPerS *float64 `json:"others_wait_ms_per_s,omitempty"` // that all others there waited for one; nil: not seen
	CoresBusy        *float64 `json:"cores_busy,omitempty"`           // all of the machine, a share of their time
}

// Software is what the servers called themselves in their answers, which may be anything.
type Software struct {
	Server    []string `json:"server"`
	PoweredBy []string `json:"x_powered_by"`
}

// Target is what the load was sent to.
type Target struct {
	URL       string   `json:"url"`
	ConnectTo *string  `json:"connect_to"`
	Addresses []string `json:"addresses"`
}

// MarshalJSON makes null of an unknown target.
func (t Target) MarshalJSON() ([]byte, error) {
	if t.URL == "" {
		return []byte("null"), nil
	}
	type plain Target
	return json.Marshal(plain(t))
}

// Log is one log file and what was found in it.
type Log struct {
	Path    string  `json:"path"`
	Format  string  `json:"format"`
	Lines   uint64  `json:"lines"`
	Valid   uint64  `json:"valid"`
	Failed  uint64  `json:"failed"`
	Ignored uint64  `json:"ignored"`
	Strays  uint64  `json:"strays"` // requests whose time stamps were corrected
	First   Instant `json:"first"`
	Last    Instant `json:"last"`

	SetBacks uint64  `json:"set_backs,omitempty"` // of its clock, which were followed
	AheadS   float64 `json:"ahead_s,omitempty"`   // of the first log's clock; less than 0: behind
}

// Clients are those of the logs that a run sends requests of.
type Clients struct {
	Counted      int     `json:"counted"`       // addresses with their user agents
	LargestShare float64 `json:"largest_share"` // of the requests, 0 to 1
	Proxies      int     `json:"proxies"`       // addresses that stand for many visitors
	ProxiesShare float64 `json:"proxies_share"`
	SpreadOver   *int    `json:"spread_over"` // clients that send the requests of proxies; null: those of the log
}

// Pauses are those of the log that were shortened.
type Pauses struct {
	Shortened uint64  `json:"shortened"`
	CutS      float64 `json:"cut_s"` // in all, in the log's time
}

// Program is the program that wrote the run directory.
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

// Shard says which share of a run this is, where several instances replay one log (docs/run-format.md).
type Shard struct {
	Index    int         `json:"index"`    // from 0
	Of       int         `json:"of"`       // instances
	Segment  string      `json:"segment"`  // as k6 writes it: 1/4:1/2
	Sequence []string    `json:"sequence"` // the bounds of all segments
	Planned  []uint64    `json:"planned"`  // requests that the schedule has for each instance; null until the schedule has ended
	StartAt  Instant     `json:"start_at"` // the start that all instances share; null: each started on its own
	Clock    *ClockState `json:"clock"`    // null: the system does not say
}

// ClockState is the kernel's judgement of its wall clock.
type ClockState struct {
	Synchronised bool    `json:"synchronised"`
	MaxErrorMS   float64 `json:"max_error_ms"` // the kernel's bound; it means something only where the clock is synchronised
}

// Load is all that shapes the load of a run: two runs of one load have one digest.
type Load struct {
	Digest   string         `json:"digest"`
	Settings map[string]any `json:"settings"`
}

// timeoutKey is the setting that every program gives: the time limit of a request in seconds, nil where it has none of
// its own.
const timeoutKey = "timeout_s"

// NewLoad returns the load of these settings. Their values are numbers, texts, booleans, nil, and lists and maps of
// these; what is secret comes as its own digest.
func NewLoad(settings map[string]any) (*Load, error) {
	text, err := canonicalJSON(settings)
	if err != nil {
		return nil, fmt.Errorf("the settings of the load: %w", err)
	}
	return &Load{Digest: Digest(text), Settings: settings}, nil
}

// Digest returns the SHA-256 of a text in hexadecimal.
func Digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// canonicalJSON writes a value with sorted keys, without spaces, and with <, > and & as they are.
func canonicalJSON(value any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// Timeout returns the time limit of a request; 0 if unknown.
func (l *Load) Timeout() time.Duration {
	if l == nil {
		return 0
	}
	seconds, _ := l.Settings[timeoutKey].(float64)
	return time.Duration(seconds * float64(time.Second))
}
