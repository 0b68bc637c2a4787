package record

import (
	"encoding/hex"
	"errors"
	"os"
)

// Close writes what is left, summary.json and the end of run.json. When recording failed before, the status is
// Failed and the error is returned, whatever the caller says; the summary counts all requests even so. A run that is
// said to be complete has failed where its target died. The summary says how it ended. Later calls return what the
// first one did.
func (d *Dir) Close(status Status, reason string) (Summary, error) {
	d.mu.Lock()
	if d.closed {
		defer d.mu.Unlock()
		return d.summary, d.closeErr
	}
	d.closed = true
	d.mu.Unlock()

	d.EventNow("run", "stop")
	close(d.stop)
	d.idle.Wait()
	d.flushOnce()
	if d.flush.hdr != nil {
		d.write(&d.flush.hdr.out, d.flush.hdr.end(d.started))
	}
	if err := d.flush.closeFiles(); err != nil {
		d.fail(err)
	}

	d.mu.Lock()
	defer d.mu.Unlock()
	d.tallyMu.Lock()
	defer d.tallyMu.Unlock()
	d.summary = summarize(&d.tally, d.unrecorded, d.names())
	d.summary.Records = hex.EncodeToString(d.flush.sum.Sum(nil))
	d.closeErr = errors.Join(d.Err(), d.finish(ending(status, reason, d.tally.silence.verdict(d.tally.endNS))))
	return d.summary, d.closeErr
}

// finish writes the two files that say how the run ended. The summary first: whoever finds a run that is
// complete finds its summary.
func (d *Dir) finish(status Status, reason string) error {
	if err := d.Err(); err != nil {
		status, reason = Failed, err.Error()
	}
	if errors.Is(d.Err(), ErrGone) { // what is in its place is somebody else's
		d.summary.Status, d.summary.Reason = status, reason
		return nil
	}
	os.Remove(d.file(reserveName))
	if d.summary.GeneratorLimited { // late, by the records
		d.summary.GeneratorLimitedReason += ProcessorTimeNow("").stolenSince(d.processor)
	}
	if d.limited == "" && d.judge != nil {
		d.limited = d.judge(d.summary.Requests)
	}
	if d.limited != "" {
		d.summary.GeneratorLimited, d.summary.GeneratorLimitedReason = true, d.limited
	}
	d.summary.Status = status
	d.summary.Limits = d.tally.verdicts(&d.summary)
	summaryErr := replaceJSON(d.file("summary.json"), d.summary)
	if summaryErr != nil && status == Complete {
		status, reason = Failed, summaryErr.Error()
	}
	d.summary.Status, d.summary.Reason = status, reason
	d.run.Status, d.run.Reason = status, textOrNull(reason)
	if d.run.EndedAt.IsZero() { // else it is the end of a run that was
		d.run.EndedAt = Instant{d.now()}
	}
	d.run.GeneratorLimited = d.summary.GeneratorLimited
	d.run.GeneratorLimitedReason = textOrNull(d.summary.GeneratorLimitedReason)
	return errors.Join(summaryErr, replaceJSON(d.file("run.json"), d.run))
}

func textOrNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
