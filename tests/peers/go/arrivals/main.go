// Command arrivals is a server that writes down, in nanoseconds, when each request arrived.
//
// It prints its address, answers until it is told to stop (SIGTERM, SIGINT), then writes the instants to --out:
// little-endian int64, nanoseconds since the first arrival, in the order of arrival. So that the punctuality
// of load generators can be judged from outside, by one clock, in the same way for all.
package main

import (
	"encoding/binary"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"time"

	"plimsoll/tests/peers/internal/tinyhttp"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "address to listen on")
	out := flag.String("out", "", "file for the instants")
	most := flag.Int("max", 1_000_000, "how many arrivals to write down at most")
	flag.Parse()
	if err := run(*listen, *out, *most); err != nil {
		fmt.Fprintln(os.Stderr, "arrivals:", err)
		os.Exit(1)
	}
}

func run(listen, out string, most int) error {
	// No collection while arrivals are timed: the memory is set aside and touched beforehand.
	instants := make([]int64, most)
	for i := range instants {
		instants[i] = -1
	}
	debug.SetGCPercent(-1)

	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	go func() { <-stop; listener.Close() }()
	fmt.Println(listener.Addr())

	base := time.Now()
	var count atomic.Int64
	_ = tinyhttp.Serve(listener, func() {
		if i := count.Add(1) - 1; i < int64(most) {
			instants[i] = time.Since(base).Nanoseconds()
		}
	})
	return write(out, instants[:min(count.Load(), int64(most))])
}

func write(path string, instants []int64) error {
	data := make([]byte, 0, 8*len(instants))
	for _, ns := range instants {
		data = binary.LittleEndian.AppendUint64(data, uint64(ns-instants[0]))
	}
	return os.WriteFile(path, data, 0o644)
}
