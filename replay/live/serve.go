package live

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Path is where the figures are.
const Path = "/metrics"

// CheckAddress refuses an invalid address, and, unless remote is set, one that other machines can reach.
func CheckAddress(address string, remote bool) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil || port == "" {
		return fmt.Errorf("%q is not an address: give HOST:PORT, such as 127.0.0.1:9464", address)
	}
	if n, err := net.LookupPort("tcp", port); err != nil || n == 0 {
		return fmt.Errorf("%q: %q is not a port: give a number from 1 to 65535", address, port)
	}
	if !remote && !isLoopback(host) {
		return fmt.Errorf("%q can be reached by other machines: give one of this machine only, such as 127.0.0.1:%s, or allow it with --metrics-remote", address, port)
	}
	return nil
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// Listen takes the address. An error says what to do.
func Listen(address string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s is in use by another program: stop that one, or choose another port", address)
	case err != nil:
		return nil, fmt.Errorf("%s cannot be listened on (%w): choose an address of this machine, and a port from 1024 on", address, err)
	}
	return listener, nil
}

// Serve answers scrapes until it is stopped.
func (m *Metrics) Serve(listener net.Listener) (stop func()) { return serve(m.registry, listener) }

// serve answers scrapes until it is stopped. On loopback it answers no page of another host that a browser here was led
// to (DNS rebinding).
func serve(registry *prometheus.Registry, listener net.Listener) (stop func()) {
	figures := promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
	host, _, _ := net.SplitHostPort(listener.Addr().String())
	onlyHere := isLoopback(host)
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Path, func(w http.ResponseWriter, r *http.Request) {
		if onlyHere && !isLoopback(hostOf(r.Host)) {
			http.Error(w, "ask for this address by its number", http.StatusForbidden)
			return
		}
		figures.ServeHTTP(w, r)
	})
	server := &http.Server{
		Handler: mux, ReadTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	}
	go func() { _ = server.Serve(listener) }()
	return func() { _ = server.Close() }
}

func hostOf(hostPort string) string {
	if host, _, err := net.SplitHostPort(hostPort); err == nil {
		return host
	}
	return strings.Trim(hostPort, "[]")
}
