// The machine that generated the load, its process and its processor time.

package record

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Host is the machine that generated the load. What cannot be read is empty or 0.
type Host struct {
	Hostname    string `json:"hostname"`
	Kernel      string `json:"kernel"`
	CPU         string `json:"cpu"`
	CPUs        int    `json:"cpus"`
	MemoryBytes uint64 `json:"memory_bytes"`
}

// ThisHost reads the facts of this machine.
func ThisHost() Host {
	h := Host{CPUs: runtime.NumCPU()}
	h.Hostname, _ = os.Hostname()
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		h.Kernel = unix.ByteSliceToString(name.Release[:])
	}
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		h.CPU = procField(b, "model name")
	}
	if b, err := os.ReadFile("/proc/meminfo"); err == nil {
		kib, _, _ := strings.Cut(procField(b, "MemTotal"), " ")
		n, _ := strconv.ParseUint(kib, 10, 64)
		h.MemoryBytes = n * 1024
	}
	return h
}

// Process names the process that writes a run, also after its number was given to another one.
type Process struct {
	PID       int    `json:"pid"`
	Start     uint64 `json:"start"`     // clock ticks since the boot
	Boot      string `json:"boot"`      // the kernel's name of it
	Namespace uint64 `json:"namespace"` // that the number is of
}

// ThisProcess names this process; nil where the system does not tell.
func ThisProcess() *Process {
	p := &Process{PID: os.Getpid()}
	stat, err := os.ReadFile("/proc/self/stat")
	boot, bootErr := os.ReadFile("/proc/sys/kernel/random/boot_id")
	var namespace unix.Stat_t
	if errors.Join(err, bootErr, unix.Stat("/proc/self/ns/pid", &namespace)) != nil {
		return nil
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // from the third on
	if len(fields) < 20 {
		return nil
	}
	p.Start, err = strconv.ParseUint(fields[19], 10, 64)
	p.Boot, p.Namespace = strings.TrimSpace(string(boot)), namespace.Ino
	if err != nil {
		return nil
	}
	return p
}

// AccessLog is the program of a run that is not a load test: what an access log says was served.
const AccessLog = "accesslog"

// ThisProgram names the program that writes, and the Go that built it.
func ThisProgram(name, version string) Program {
	return Program{Name: name, Version: version, Go: runtime.Version()}
}

// procField returns the value of the first "name : value" line.
func procField(text []byte, name string) string {
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		key, value, ok := strings.Cut(lines.Text(), ":")
		if ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

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
