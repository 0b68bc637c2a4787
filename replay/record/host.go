package record

import (
	"bufio"
	"bytes"
	"errors"
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
