// Package live shows runs to Prometheus while they last. A replay feeds it with what is written to the run directory,
// block by block, and so it costs those who send nothing; of other runs it reads the directories as they grow. Figures are
// up to a second old.
package live

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"plimsoll/replay/engine/target"
	"plimsoll/replay/record"
)

// Bounds of what a site or a log can make of labels.
const (
	mostStatuses = 32 // further ones are "other"
	longestLabel = 120
	otherLabel   = "other"
)

// boundsS are the classic buckets: as `plimsoll export --to prometheus` has them.
var boundsS = []float64{0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100}

// nativeFactor is how far apart the bounds of the native buckets are at most: 2^(1/8), 9 %.
const nativeFactor = 1.1

// never is what a failure counts at where a run has no time-out: above all buckets.
const never = (1<<32 - 1) * time.Microsecond

// series are the time series that runs of a kind share.
type series struct {
	response, lag prometheus.Histogram
	requests      *prometheus.CounterVec
	failed        prometheus.Counter
	warmup        prometheus.Counter
	bytes         prometheus.Counter
	connections   prometheus.Counter
	statuses      map[uint16]string
}

func newSeries(registry prometheus.Registerer) *series {
	s := &series{
		response: histogram("plimsoll_response_seconds",
			"Response time, from due to the last byte, without the warm-up. A request that failed counts at its time-out, or longer."),
		lag: histogram("plimsoll_lag_seconds",
			"How late the generator itself sent, of requests that did not wait for a connection, without the warm-up."),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plimsoll_requests_total",
			Help: "Requests done, without the warm-up, by route and status. The status is the kind of the error where no whole response came.",
		}, []string{"route", "status"}),
		failed:      counter("plimsoll_failed_requests_total", "Requests without a whole response, or with a wrong answer, without the warm-up."),
		warmup:      counter("plimsoll_warmup_requests_total", "Requests of the warm-up."),
		bytes:       counter("plimsoll_received_bytes_total", "Bytes of bodies that were received."),
		connections: counter("plimsoll_connections_opened_total", "Connections that were opened for requests that are done."),
		statuses:    map[uint16]string{},
	}
	registry.MustRegister(s.response, s.lag, s.requests, s.failed, s.warmup, s.bytes, s.connections)
	return s
}

func histogram(name, help string) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: boundsS,
		NativeHistogramBucketFactor: nativeFactor, NativeHistogramMaxBucketNumber: 160, NativeHistogramMinResetDuration: time.Hour,
	})
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

// status returns the label of how a request ended.
func (s *series) status(r *record.Record) string {
	if r.Error != record.None {
		return r.Error.String()
	}
	text, known := s.statuses[r.Status]
	if !known {
		text = otherLabel
		if len(s.statuses) < mostStatuses {
			text = strconv.Itoa(int(r.Status))
			s.statuses[r.Status] = text
		}
	}
	return text
}

// figures are the series as one run adds to them. Only one goroutine at a time may observe.
type figures struct {
	*series
	timeout  time.Duration
	names    func() []string
	counters map[routeStatus]prometheus.Counter
}

type routeStatus struct {
	route  uint16
	status string
}

// newFigures returns those of a run whose requests have a time-out; 0: unknown. names are those of its routes, by
// number.
func newFigures(s *series, timeout time.Duration, names func() []string) *figures {
	if timeout == 0 {
		timeout = never
	}
	return &figures{series: s, timeout: timeout, names: names, counters: map[routeStatus]prometheus.Counter{}}
}

// Observe counts records.
func (f *figures) Observe(records []record.Record) {
	for i := range records {
		f.observe(&records[i])
	}
}

func (f *figures) observe(r *record.Record) {
	f.bytes.Add(float64(max(r.Bytes, 0)))
	if r.Flags&record.Reused == 0 && r.Status != 0 {
		f.connections.Inc()
	}
	if r.Flags&record.Warmup != 0 {
		f.warmup.Inc()
		return
	}
	response := time.Duration(r.ResponseUS()) * time.Microsecond
	if r.Failed() {
		f.failed.Inc()
		response = max(response, f.timeout)
	}
	f.response.Observe(response.Seconds())
	if r.Flags&record.Queued == 0 {
		f.lag.Observe((time.Duration(r.LagUS) * time.Microsecond).Seconds())
	}
	f.count(r)
}

func (f *figures) count(r *record.Record) {
	key := routeStatus{r.Route, f.status(r)}
	one := f.counters[key]
	if one == nil {
		one = f.requests.WithLabelValues(f.route(r.Route), key.status)
		f.counters[key] = one
	}
	one.Inc()
}

func (f *figures) route(number uint16) string {
	if names := f.names(); int(number) < len(names) {
		return label(names[number])
	}
	return otherLabel
}

// Metrics are the figures of one run, which this program sends.
type Metrics struct {
	*figures
	registry *prometheus.Registry
}

// New returns the figures of the run in a directory, whose requests have a time-out. names are those of its routes, by
// number; open is how many connections are open.
func New(directory, target string, timeout time.Duration, names func() []string, open *atomic.Int64) *Metrics {
	registry := prometheus.NewRegistry()
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: infoName, Help: "The run that is under way: its directory and its target."},
		[]string{"run", "target"})
	info.WithLabelValues(label(directory), label(target)).Set(1)
	registry.MustRegister(info, prometheus.NewGaugeFunc(
		prometheus.GaugeOpts{Name: "plimsoll_connections", Help: "Connections that are open, or being opened."},
		func() float64 { return float64(open.Load()) }))
	return &Metrics{newFigures(newSeries(registry), timeout, names), registry}
}

const infoName = "plimsoll_run_info"

// label returns a text from a log or a command line as a label's value: valid UTF-8, without control characters, short.
// The exposition escapes what else could end it.
func label(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == utf8.RuneError || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	for len(text) > longestLabel {
		_, size := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-size]
	}
	return text
}

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
	if !remote && !target.IsLoopback(host) {
		return fmt.Errorf("%q can be reached by other machines: give one of this machine only, such as 127.0.0.1:%s, or allow it with --metrics-remote", address, port)
	}
	return nil
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
	onlyHere := target.IsLoopback(listener.Addr().String())
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Path, func(w http.ResponseWriter, r *http.Request) {
		if onlyHere && !target.IsLoopback(r.Host) {
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
