package tinyhttp

import (
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
)

func TestEveryRequestIsCountedAndAnswered(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	var count atomic.Int64
	go func() { _ = Serve(listener, func() { count.Add(1) }) }()

	for range 3 {
		response, err := http.Get("http://" + listener.Addr().String() + "/any?thing=1")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || string(body) != "ok" || response.StatusCode != 200 {
			t.Fatalf("status %d, body %q, error %v", response.StatusCode, body, err)
		}
	}
	if got := count.Load(); got != 3 {
		t.Fatalf("%d requests were counted, 3 were sent", got)
	}
}
