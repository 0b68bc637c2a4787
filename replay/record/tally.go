package record

import "time"

// tally folds records into everything that the summary says about them. It is pure: no clock, no files.
type tally struct {
	sent, warmup, ok, errors      uint64
	statusMismatch, bytesMismatch uint64
	answers                       answers
	queued                        uint64
	clientQueued, clientTimeouts  uint64
	members, sentToLogin          uint64
	firstStartNS, lastDoneNS      int64 // of the measured records
	endNS                         int64 // of all records
	response, service             times
	clientWait                    histogram // due → start of those that waited for their own client's connections
	unqueued                      *times    // response times without that; nil: as response
	ttfb, lag, late               histogram
	routes                        []aggregate
	silence                       silence
	timeout                       time.Duration // of a request; 0: unknown
	limits                        []counted
}

// aggregate is what The Grinder's table says of one route.
type aggregate struct {
	test   moments // service time of successful requests
	errors uint64
	bytes  uint64
	ttfb   moments // of successful requests with a first byte
}

func (t *tally) add(r *Record) {
	t.sent++
	t.endNS = max(t.endNS, r.DoneNS())
	t.silence.add(r)
	if r.Flags&Warmup != 0 {
		t.warmup++
		return
	}
	start := r.DueNS + int64(r.LagUS)*1000
	if t.response.number() == 0 || start < t.firstStartNS {
		t.firstStartNS = start
	}
	t.lastDoneNS = max(t.lastDoneNS, r.DoneNS())
	for i := range t.limits {
		if t.limits[i].breaks(r) {
			t.limits[i].broken++
		}
	}
	unqueuedUS := r.ResponseUS()
	if r.Flags&ClientQueued != 0 {
		t.clientQueued++
		if r.neverSent() {
			t.clientTimeouts++
		}
		t.clientWait.add(uint64(r.LagUS))
		unqueuedUS = uint64(r.TotalUS)
		if t.unqueued == nil {
			t.unqueued = t.response.clone()
		}
	}
	timeoutUS := uint64(t.timeout.Microseconds())
	t.response.addOf(r, r.ResponseUS(), timeoutUS)
	t.service.addOf(r, uint64(r.TotalUS), timeoutUS)
	if t.unqueued != nil && !r.neverSent() {
		t.unqueued.addOf(r, unqueuedUS, timeoutUS)
	}
	if r.Flags&Queued != 0 {
		t.queued++
		t.late.add(uint64(r.LateUS))
	} else {
		t.lag.add(uint64(r.LagUS))
		t.late.add(uint64(r.LagUS))
	}
	if r.TTFBUS > 0 && !r.Failed() {
		t.ttfb.add(uint64(r.TTFBUS))
	}
	if r.Flags&Member != 0 {
		t.members++
	}
	if r.Flags&SentToLogin != 0 {
		t.sentToLogin++
	}
	t.judge(r)
	t.answers.add(r)
	t.route(r.Route).add(r)
}

// judge compares the response with the log, where the log knows; sizes only where the statuses agree.
func (t *tally) judge(r *Record) {
	if r.Error != None {
		t.errors++
		return
	}
	t.ok++
	switch {
	case r.Flags&SentToLogin != 0: // whatever the log has
		t.statusMismatch++
	case r.LoggedStatus == 0:
	case r.Status != r.LoggedStatus:
		t.statusMismatch++
	case r.LoggedBytes >= 0 && r.Bytes != r.LoggedBytes:
		t.bytesMismatch++
	}
}

func (t *tally) route(i uint16) *aggregate {
	if int(i) >= len(t.routes) {
		t.routes = append(t.routes, make([]aggregate, int(i)+1-len(t.routes))...)
	}
	return &t.routes[i]
}

func (a *aggregate) add(r *Record) {
	a.bytes += uint64(max(r.Bytes, 0))
	if r.Error != None {
		a.errors++
		return
	}
	a.test.add(uint64(r.TotalUS))
	if r.TTFBUS > 0 {
		a.ttfb.add(uint64(r.TTFBUS))
	}
}

func (a *aggregate) merge(o *aggregate) {
	a.test.merge(&o.test)
	a.ttfb.merge(&o.ttfb)
	a.errors += o.errors
	a.bytes += o.bytes
}

// elapsedS returns first start → last done of the measured records, in seconds.
func (t *tally) elapsedS() float64 { return float64(t.lastDoneNS-t.firstStartNS) / 1e9 }
