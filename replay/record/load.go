package record

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
)

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
