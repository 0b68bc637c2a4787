// Command arrivals is a server that writes down, in nanoseconds, when each request arrived.
//
// It prints its address, answers until it is told to stop (SIGTERM, SIGINT), then writes the instants to --out:
// little-endian int64, nanoseconds since its start, in the order of arrival. So that the punctuality
// of load generators can be judged from outside, by one clock, in the same way for all.
package main

import (
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"

	"plimsoll/benchmarks/internal/instants"
	"plimsoll/benchmarks/internal/tinyhttp"
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
	book := instants.Open(most, 1)
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	go func() { <-stop; listener.Close() }()
	fmt.Println(listener.Addr())

	_ = tinyhttp.Serve(listener, func() { book.Note(book.Row(), 0) })
	return book.Write(out)
}
