package record

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// ProcessorTime is what /proc/stat says of all processors together since the machine started, in ticks. The zero value
// stands for what cannot be read.
type ProcessorTime struct {
	all    uint64
	idle   uint64 // also while the disk was waited for
	stolen uint64 // the hypervisor ran somebody else although this machine had work (proc(5))
}

// ProcessorTimeNow reads /proc/stat, below another root where one is given.
func ProcessorTimeNow(root string) ProcessorTime {
	text, err := os.ReadFile(root + "/proc/stat")
	if err != nil {
		return ProcessorTime{}
	}
	return parseProcessorTime(text)
}

// BusySince returns the share of their time that all processors were at work between two readings, 0 to 1; nil where
// that is not known.
func (t ProcessorTime) BusySince(start ProcessorTime) *float64 {
	if start.all == 0 || t.all <= start.all || t.idle < start.idle {
		return nil
	}
	busy := 1 - float64(t.idle-start.idle)/float64(t.all-start.all)
	return &busy
}

// parseProcessorTime reads the line "cpu  user nice system idle iowait irq softirq steal guest guest_nice". The guests'
// time is contained in user and nice.
func parseProcessorTime(stat []byte) ProcessorTime {
	line, _, _ := bytes.Cut(stat, []byte{'\n'})
	fields := bytes.Fields(line)
	const idle, wait, steal = 4, 5, 8
	if len(fields) <= steal || string(fields[0]) != "cpu" {
		return ProcessorTime{}
	}
	var t ProcessorTime
	for i, field := range fields[1 : steal+1] {
		ticks, err := strconv.ParseUint(string(field), 10, 64)
		if err != nil {
			return ProcessorTime{}
		}
		t.all += ticks
		switch i + 1 {
		case idle, wait:
			t.idle += ticks
		case steal:
			t.stolen = ticks
		}
	}
	return t
}

// muchStolen is the share of processor time from which a virtual machine's lateness may well not be its own.
const muchStolen = 0.01

// stolenSince says how much the hypervisor took between two readings; nothing where it was little, or is not known.
func (t ProcessorTime) stolenSince(start ProcessorTime) string {
	if start.all == 0 || t.all <= start.all || t.stolen < start.stolen {
		return ""
	}
	share := float64(t.stolen-start.stolen) / float64(t.all-start.all)
	if share < muchStolen {
		return ""
	}
	return fmt.Sprintf("; meanwhile the hypervisor gave %.2g %% of this machine's processor time to others (steal): "+
		"measure from a host that shares its processors with nobody", share*100)
}
