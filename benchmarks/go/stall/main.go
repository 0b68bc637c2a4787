// Command stall is a server that answers at once, but now and then not at all for a while: from --first after
// the first request, and every --every after that, all requests wait until --stall has passed.
//
// It prints its address, answers until it is told to stop (SIGTERM, SIGINT), then writes to --out when each
// request arrived and when it was answered: pairs of little-endian int64, nanoseconds since its start. Timers
// fire late on a busy machine; so it is known what the stalls really were.
package main

import (
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"plimsoll/benchmarks/internal/instants"
	"plimsoll/benchmarks/internal/tinyhttp"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "address to listen on")
	first := flag.Duration("first", 5*time.Second, "when the first stall begins, after the first request")
	every := flag.Duration("every", 10*time.Second, "from the start of one stall to the start of the next")
	stall := flag.Duration("stall", 500*time.Millisecond, "how long a stall lasts")
	out := flag.String("out", "", "file for the instants")
	most := flag.Int("max", 1_000_000, "how many requests to write down at most")
	flag.Parse()
	pattern := func(since time.Duration) time.Duration { return wait(since, *first, *every, *stall) }
	if err := run(*listen, *out, *most, pattern); err != nil {
		fmt.Fprintln(os.Stderr, "stall:", err)
		os.Exit(1)
	}
}

func run(listen, out string, most int, wait func(since time.Duration) time.Duration) error {
	book := instants.Open(most, 2)
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	go func() { <-stop; listener.Close() }()
	fmt.Println(listener.Addr())

	var begin time.Time
	var once sync.Once
	_ = tinyhttp.Serve(listener, func() {
		row := book.Row()
		book.Note(row, 0)
		once.Do(func() { begin = time.Now() })
		time.Sleep(wait(time.Since(begin)))
		book.Note(row, 1)
	})
	return book.Write(out)
}

// wait is how long a request that arrives at the given time since the first one is kept waiting.
func wait(since, first, every, stall time.Duration) time.Duration {
	if since < first {
		return 0
	}
	into := (since - first) % every
	return max(0, stall-into)
}
