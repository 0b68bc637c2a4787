// Command stall is a server that answers at once, but now and then not at all for a while: from --first after
// the first request, and every --every after that, all requests wait until --stall has passed.
//
// It prints its address and answers until it is told to stop (SIGTERM, SIGINT).
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

	"plimsoll/tests/peers/internal/tinyhttp"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "address to listen on")
	first := flag.Duration("first", 5*time.Second, "when the first stall begins, after the first request")
	every := flag.Duration("every", 10*time.Second, "from the start of one stall to the start of the next")
	stall := flag.Duration("stall", 500*time.Millisecond, "how long a stall lasts")
	flag.Parse()
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		fmt.Fprintln(os.Stderr, "stall:", err)
		os.Exit(1)
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	go func() { <-stop; listener.Close() }()
	fmt.Println(listener.Addr())

	var begin time.Time
	var once sync.Once
	_ = tinyhttp.Serve(listener, func() {
		once.Do(func() { begin = time.Now() })
		time.Sleep(wait(time.Since(begin), *first, *every, *stall))
	})
}

// wait is how long a request that arrives at the given time since the first one is kept waiting.
func wait(since, first, every, stall time.Duration) time.Duration {
	if since < first {
		return 0
	}
	into := (since - first) % every
	return max(0, stall-into)
}
