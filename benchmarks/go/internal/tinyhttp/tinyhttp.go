// Package tinyhttp answers every HTTP/1.1 request with the same two bytes, with as little of its own time as
// possible: what is measured here is the clients.
package tinyhttp

import (
	"bufio"
	"net"
)

const response = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok"

// Serve accepts connections until the listener is closed. It calls arrived once for each request, after its
// last header line was read and before it is answered; arrived may take its time. Request bodies are not
// understood: the clients send none.
func Serve(listener net.Listener, arrived func()) error {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		go answer(conn, arrived)
	}
}

func answer(conn net.Conn, arrived func()) {
	defer conn.Close()
	reader := bufio.NewReaderSize(conn, 4096)
	for {
		if err := readHead(reader); err != nil {
			return
		}
		arrived()
		if _, err := conn.Write([]byte(response)); err != nil {
			return
		}
	}
}

// readHead reads up to and with the empty line that ends a request without a body.
func readHead(reader *bufio.Reader) error {
	for {
		line, err := reader.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) <= len("\r\n") {
			return nil
		}
	}
}
