package engine_test

import (
	"testing"
	"time"
)

// What goes wrong before HTTP begins, and after it ends.
func TestHandshakes(t *testing.T) {
	rows := []struct {
		says  string
		greet play
		want  string
	}{
		{"another protocol", play{send("220 mail.example ESMTP\r\n"), silence}, "0 0 tls_failed"},
		{"HTTP without TLS", play{readSome(1), send(whole), silence}, "0 0 tls_failed"},
		{"closed in the middle", play{readSome(1), hangUp}, "0 0 tls_failed"},
		{"reset in the middle", play{readSome(1), reset}, "0 0 tls_failed"},
		{"noise", play{readSome(1), send("\x16\x03\x03" + noise(2, 999)), silence}, "0 0 tls_failed"},
		{"no answer", play{silence}, "0 0 timeout"},
		{"an answer that drips", play{send("\x16\x03\x03\x3f\xff"), again("\x02", 20*time.Millisecond)}, "0 0 timeout"},
	}
	for _, row := range rows {
		onEach(t, row.says, []driver{overTLS, overHTTP2}, func(t *testing.T, r *ride) {
			r.opts.Timeout = timeout
			r.run(t, server{bare: true, greet: row.greet}.start(t, r.driver), gets(1))
			r.expect(t, row.want)
		})
	}
	onEach(t, "no answer until the second interrupt", []driver{overTLS, overHTTP2}, func(t *testing.T, r *ride) {
		r.opts.Timeout = time.Minute
		s := server{bare: true, greet: play{silence}, marked: func() {
			r.stop()
			r.later(50*time.Millisecond, r.abort)
		}}
		r.run(t, s.start(t, r.driver), gets(1))
		r.expect(t, "0 0 aborted")
	})
}

// Not all servers say that TLS ends before they close; as in browsers, that alone is no error.
func TestCutOffUnderTLS(t *testing.T) {
	rows := []reply{
		{says: "a body until the connection ends", play: play{send(old + "abc"), cutOff}, want: "200 3"},
		{says: "a body with a length", play: play{send(lines("HTTP/1.1 200 OK", "Content-Length: 2", "Connection: close", "", "ok")), cutOff}, want: "200 2"},
		{says: "half a body", play: play{answer(200, 9), body("half", false), cutOff}, want: "200 4 closed_early"},
		{says: "without a word", play: play{cutOff}, want: "0 0 closed_early"},
	}
	for _, row := range rows {
		onEach(t, row.says, []driver{overTLS}, row.answered)
	}
}
