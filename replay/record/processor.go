package record

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// processorTime is what /proc/stat says of all processors together since the machine started, in ticks. The zero value
// stands for what cannot be read.
type processorTime struct {
	all, stolen uint64 // stolen: the hypervisor ran somebody else although this machine had work (proc(5))
}

func processorTimeNow() processorTime {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return processorTime{}
	}
	return parseProcessorTime(text)
}

// parseProcessorTime reads the line "cpu  user nice system idle iowait irq softirq steal guest guest_nice". The guests'
// time is contained in user and nice.
func parseProcessorTime(stat []byte) processorTime {
	line, _, _ := bytes.Cut(stat, []byte{'\n'})
	fields := bytes.Fields(line)
	const steal = 8
	if len(fields) <= steal || string(fields[0]) != "cpu" {
		return processorTime{}
	}
	var t processorTime
	for i, field := range fields[1 : steal+1] {
		ticks, err := strconv.ParseUint(string(field), 10, 64)
		if err != nil {
			return processorTime{}
		}
		t.all += ticks
		if i == steal-1 {
			t.stolen = ticks
		}
	}
	return t
}

// muchStolen is the share of processor time from which a virtual machine's lateness may well not be its own.
const muchStolen = 0.01

// stolenSince says how much the hypervisor took between two readings; nothing where it was little, or is not known.
func (t processorTime) stolenSince(start processorTime) string {
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
