// Package live shows a run to Prometheus while it lasts. It is fed with what is written to the run directory, block by
// block, and so costs those who send nothing: figures are up to a second old.
package live

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

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

// Metrics are the figures of one run. Only one goroutine at a time may observe.
type Metrics struct {
	registry      *prometheus.Registry
	timeout       time.Duration
	names         func() []string
	response, lag prometheus.Histogram
	requests      *prometheus.CounterVec
	failed        prometheus.Counter
	warmup        prometheus.Counter
	bytes         prometheus.Counter
	connections   prometheus.Counter
	statuses      map[uint16]string
	counters      map[routeStatus]prometheus.Counter
}

type routeStatus struct {
	route  uint16
	status string
}

// New returns the figures of the run in a directory, whose requests have a time-out. names are those of its routes, by
// number.
func New(directory, target string, timeout time.Duration, names func() []string) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(), timeout: timeout, names: names,
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
		counters:    map[routeStatus]prometheus.Counter{},
	}
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "plimsoll_run_info", Help: "The run that is under way: its directory and its target."},
		[]string{"run", "target"})
	info.WithLabelValues(label(directory), label(target)).Set(1)
	m.registry.MustRegister(info, m.response, m.lag, m.requests, m.failed, m.warmup, m.bytes, m.connections)
	return m
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

// Observe counts records.
func (m *Metrics) Observe(records []record.Record) {
	for i := range records {
		m.observe(&records[i])
	}
}

func (m *Metrics) observe(r *record.Record) {
	m.bytes.Add(float64(max(r.Bytes, 0)))
	if r.Flags&record.Reused == 0 && r.Status != 0 {
		m.connections.Inc()
	}
	if r.Flags&record.Warmup != 0 {
		m.warmup.Inc()
		return
	}
	response := time.Duration(r.ResponseUS()) * time.Microsecond
	if r.Failed() {
		m.failed.Inc()
		response = max(response, m.timeout)
	}
	m.response.Observe(response.Seconds())
	if r.Flags&record.Queued == 0 {
		m.lag.Observe((time.Duration(r.LagUS) * time.Microsecond).Seconds())
	}
	m.count(r)
}

func (m *Metrics) count(r *record.Record) {
	key := routeStatus{r.Route, m.status(r)}
	one := m.counters[key]
	if one == nil {
		one = m.requests.WithLabelValues(m.route(r.Route), key.status)
		m.counters[key] = one
	}
	one.Inc()
}

// status returns the label of how a request ended.
func (m *Metrics) status(r *record.Record) string {
	if r.Error != record.None {
		return r.Error.String()
	}
	text, known := m.statuses[r.Status]
	if !known {
		text = otherLabel
		if len(m.statuses) < mostStatuses {
			text = strconv.Itoa(int(r.Status))
			m.statuses[r.Status] = text
		}
	}
	return text
}

func (m *Metrics) route(number uint16) string {
	if names := m.names(); int(number) < len(names) {
		return label(names[number])
	}
	return otherLabel
}

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
