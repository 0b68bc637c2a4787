package live

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	eventsName  = "lab-events.jsonl" // of the lab, beside the run directories of an attempt
	bytesSuffix = " bytes"
	stale       = 4 * time.Second // older figures are not those of now
	mostEvents  = 8 << 20         // bytes that are read at a look
)

// saturation is what a saturator gets through, by the events that the lab notes beside a run.
type saturation struct {
	path  string
	at    int64
	send  *prometheus.GaugeVec
	shown string
}

func newSaturation(path string, send *prometheus.GaugeVec) *saturation {
	return &saturation{path: path, send: send}
}

// look shows the figure of the last second; none where the saturator does not work.
func (s *saturation) look(now time.Time) error {
	f, err := os.Open(s.path)
	if err != nil {
		s.hide()
		if errors.Is(err, fs.ErrNotExist) { // moved: the run is over
			return nil
		}
		return err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || now.Sub(info.ModTime()) > stale {
		s.hide()
		return err
	}
	lines := bufio.NewReader(io.NewSectionReader(f, s.at, mostEvents))
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil { // the last line may be half written: it comes at the next look
			break
		}
		s.at += int64(len(line))
		s.note(line)
	}
	return nil
}

func (s *saturation) note(line []byte) {
	var event struct {
		Event     string   `json:"event"`
		Phase     string   `json:"phase"`
		BytesPerS *float64 `json:"bytes_per_s"`
	}
	if json.Unmarshal(line, &event) != nil {
		return
	}
	switch name, ok := strings.CutSuffix(event.Event, bytesSuffix); {
	case event.Phase == "stop":
		s.hide()
	case ok && event.BytesPerS != nil:
		s.shown = label(name)
		s.send.WithLabelValues(s.shown).Set(*event.BytesPerS)
	}
}

func (s *saturation) hide() {
	if s.shown != "" {
		s.send.DeleteLabelValues(s.shown)
		s.shown = ""
	}
}
