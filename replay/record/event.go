package record

import (
	"bytes"
	"encoding/json"
	"slices"
)

// Event is one line of events.jsonl: what happened, and when since the start of the run.
type Event struct {
	TNS   int64
	Name  string
	Phase string         // usually "start" or "stop"; left out where empty
	More  map[string]any // further keys, which belong to the event
}

// MarshalJSON puts t_ns, event and phase first, so that the lines are easy to read, then the rest by name.
func (e Event) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	put := func(key string, value any) error {
		text, err := json.Marshal(value)
		if err != nil {
			return err
		}
		name, _ := json.Marshal(key)
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(text)
		return nil
	}
	if err := put("t_ns", e.TNS); err != nil {
		return nil, err
	}
	if err := put("event", e.Name); err != nil {
		return nil, err
	}
	if e.Phase != "" {
		if err := put("phase", e.Phase); err != nil {
			return nil, err
		}
	}
	keys := make([]string, 0, len(e.More))
	for key := range e.More {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		if err := put(key, e.More[key]); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}
