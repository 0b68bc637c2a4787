package accesslog

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// harFile has what browsers write: other hosts, addresses that are none, bodies as text and as fields, what was cut off.
const harFile = "\ufeff" + ` {"log":{"version":"1.2","creator":{"name":"WebInspector"},"pages":[{"id":"page_1"}],"entries":[
{"startedDateTime":"2026-11-20T10:00:00+01:00","time":9,"request":{"method":"GET","url":"http://ocsp.example","httpVersion":"http/1.0","headers":[]},"response":{"status":200,"bodySize":0,"content":{"mimeType":"application/ocsp-response"}}},
{"startedDateTime":"2026-11-20T10:00:00+01:00","time":9,"request":{"method":"GET","url":"http://old.example","httpVersion":"http/1.0","headers":[]},"response":{"status":301,"bodySize":0}},
{"startedDateTime":"2026-11-20T10:00:00.250+01:00","time":120.5,"request":{"method":"GET","url":"https://Site.example/?p=1#top","httpVersion":"h2","headers":[{"name":"User-Agent","value":"Mozilla/5.0 \"x\""},{"name":"Cookie","value":"a=1; wordpress_logged_in_abc=anna%7C1"}],"bodySize":0},"response":{"status":200,"bodySize":5120}},
{"startedDateTime":"2026-11-20T10:00:00.300+01:00","time":-1,"request":{"method":"GET","url":"https://fonts.example/a.woff2","httpVersion":"h2","headers":[]},"response":{"status":200,"bodySize":1}},
{"startedDateTime":"2026-11-20T10:00:00.300+01:00","time":0,"request":{"method":"GET","url":"data:image/png;base64,AAAA","httpVersion":"","headers":[]},"response":{"status":200,"bodySize":1}},
{"startedDateTime":"2026-11-20T09:00:05Z","time":80,"request":{"method":"POST","url":"https://site.example/wp-comments-post.php","httpVersion":"http/1.1","headers":[{"name":"content-type","value":"application/x-www-form-urlencoded"}],"bodySize":9,"postData":{"mimeType":"application/x-www-form-urlencoded","text":"comment=é"}},"response":{"status":302,"bodySize":0}},
{"startedDateTime":"2026-11-20T09:00:06Z","time":80,"request":{"method":"POST","url":"https://site.example/reply","httpVersion":"http/1.1","headers":[],"bodySize":30,"postData":{"mimeType":"application/x-www-form-urlencoded","params":[{"name":"message","value":"a b&c"},{"name":"tags%5B%5D","value":"x"}]}},"response":{"status":0,"bodySize":-1}},
{"startedDateTime":"2026-11-20T09:00:07Z","time":80,"request":{"method":"POST","url":"https://site.example/upload","httpVersion":"http/1.1","headers":[],"bodySize":900000},"response":{"status":200,"bodySize":2}},
{"startedDateTime":"never","request":{"method":"GET","url":"https://site.example/"}}
]}}`

// gorFile1 has a request with its response behind the next one, one without, chunks, and what was cut off.
var gorFile1 = strings.Join([]string{
	"1 aa11 1760100936250000000 0\nGET /?p=1 HTTP/1.1\r\nHost: site.example\r\nUser-Agent: Mozilla/5.0\r\nX-Real-IP: 198.51.100.9\r\nCookie: xf_user=1%2Cabc\r\n\r\n",
	"1 aa12 1760100936500000000 0\nPOST /reply HTTP/1.1\r\nHost: site.example\r\nContent-Type: application/x-www-form-urlencoded\r\nX-Forwarded-For: 2001:db8::1, 10.0.0.1\r\nContent-Length: 12\r\n\r\nmessage=a\n\nb",
	"2 aa11 1760100936370000000 120000000\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc",
	"1 aa13 1760100937000000000\nPOST /chunks HTTP/1.1\r\nHost: site.example\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
	"1 aa14 1760100938000000000 0\nPOST /half HTTP/1.1\r\nHost: site.example\r\nContent-Length: 100\r\n\r\nhalf",
	"1 aa15 1760100939000000000 0\nno request\r\n\r\n",
	"3 aa11 1760100939000000000 5\nHTTP/1.1 500 Oops\r\n\r\n",
	"1 aa16 1760100939000000000 0\nGET /cut",
}, "\n🐵🙈🙉\n")

// onlyNegative returns 1 for a duration that is not known.
func onlyNegative(ns int64) int64 { return int64(uint64(ns) >> 63) }

// shown reads a log, and returns what of its requests matters here.
func shown(t *testing.T, path string) (lines []string, totals Totals) {
	t.Helper()
	source, err := Open([]string{path}, nil)
	if err != nil {
		t.Fatal(err)
	}
	format, err := source.FormatFor(Spec{})
	if err != nil {
		t.Fatal(err)
	}
	if format.Name() != "RECORDING" || !format.HasBodies() {
		t.Errorf("it is read as %s", format.Name())
	}
	err = source.Each(context.Background(), format, nil, func(r *Request) bool {
		lines = append(lines, fmt.Sprintf("%d %d %s %s %s %s %s %s %d %d %s %q %d", r.TimeNS/1e6, r.DurationNS/1e6-onlyNegative(r.DurationNS), r.Host, r.User, r.VHost,
			r.Method, r.Target, r.Protocol, r.Status, r.Bytes, r.BodyType, r.Body, r.BodyBytes))
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	if totals, err = source.Count(context.Background(), format, ReadOptions{MaxRejects: 10}); err != nil {
		t.Fatal(err)
	}
	return lines, totals
}

func written(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRecordingsAreReadAsLogs(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = io.WriteString(z, gorFile1)
	_ = z.Close()
	const form = "application/x-www-form-urlencoded"
	gor := []string{
		`1760100936370 120 198.51.100.9 member site.example GET /?p=1 HTTP/1.1 200 3  "" -1`,
		`1760100936500 -1 2001:db8::1  site.example POST /reply HTTP/1.1 0 -1 ` + form + ` "message=a\n\nb" 12`,
		`1760100937000 -1 0.0.0.0  site.example POST /chunks HTTP/1.1 0 -1 application/json "{}" 2`,
		`1760100938000 -1 0.0.0.0  site.example POST /half HTTP/1.1 0 -1  "half" 100`,
	}
	for _, c := range []struct {
		why, name, text string
		want            []string
		failed, ignored uint64
	}{
		{"an archive of a browser", "site.har", harFile, []string{
			`1795165200009 9 0.0.0.0  old.example GET / HTTP/1.0 301 0  "" -1`,
			`1795165200370 120 0.0.0.0 member Site.example GET /?p=1 HTTP/2 200 5120  "" -1`,
			`1795165205080 80 0.0.0.0  site.example POST /wp-comments-post.php HTTP/1.1 302 0 ` + form + ` "comment=é" 9`,
			`1795165206080 80 0.0.0.0  site.example POST /reply HTTP/1.1 0 -1 ` + form + ` "message=a+b%26c&tags%5B%5D=x" -1`,
			`1795165207080 80 0.0.0.0  site.example POST /upload HTTP/1.1 200 2  "" 900000`,
		}, 1, 3},
		{"a file of GoReplay", "requests_0.gor", gorFile1, gor, 2, 0},
		{"packed, and under any name", "requests", packed.String(), gor, 2, 0},
	} {
		got, totals := shown(t, written(t, c.name, c.text))
		if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
			t.Errorf("%s:\n%s\nwant\n%s", c.why, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
		if totals.Failed != c.failed || totals.Ignored != c.ignored {
			t.Errorf("%s: %d rejected, %d left out, want %d, %d", c.why, totals.Failed, totals.Ignored, c.failed, c.ignored)
		}
	}
}

// TestGoReplaysOwnFile reads what GoReplay 1.3.2 wrote of six requests by curl:
// goreplay --input-raw 127.0.0.1:PORT --input-raw-track-response --input-raw-realip-header X-Real-IP --output-file requests.gor
func TestGoReplaysOwnFile(t *testing.T) {
	got, totals := shown(t, "testdata/goreplay-1.3.gor")
	if len(got) != 6 || totals.Failed != 0 || totals.Bytes != 2*138 {
		t.Errorf("%+v\n%s", totals, strings.Join(got, "\n"))
	}
	const reply = ` 0 127.0.0.1  127.0.0.1:18099 POST /reply HTTP/1.1 302 0 application/x-www-form-urlencoded "comment=hi+1&email=a@b.c&_xfToken=x" 35`
	if !strings.HasSuffix(got[1], reply) || !strings.Contains(got[2], `\r\n\r\nhällo\r\n--`) {
		t.Errorf("%s\n%s", got[1], got[2])
	}
}

func TestRecordingsThatEndInTheMiddle(t *testing.T) {
	for _, c := range []struct {
		why, text, says string
		kind            error
	}{
		{"an archive", harFile[:len(harFile)-150], "is truncated: this HTTP Archive ends in the middle, after 7 requests", ErrTruncated},
		{"one without requests", `{"log":{"entries":{}}}`, "cannot be read: this HTTP Archive is damaged after request 0 (log.entries is missing)", ErrRecording},
		{"one with a mistake", `{"log":{"entries":[{"a":1}, nonsense]}}`, "cannot be read: this HTTP Archive is damaged after request 1", ErrRecording},
	} {
		source, err := Open([]string{written(t, "a.har", c.text)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		format, err := Compile(Spec{Log: "RECORDING"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = source.Count(context.Background(), format, ReadOptions{})
		if !errors.Is(err, c.kind) || !strings.Contains(fmt.Sprint(err), c.says) {
			t.Errorf("%s: %v", c.why, err)
		}
	}
}

func TestBodiesOfRejectedLinesAreNotShown(t *testing.T) {
	source, err := Open([]string{written(t, "a.log", sampleOf("RECORDING").lines[3]+"\n")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	format, _ := Compile(Spec{Log: "RECORDING"})
	var rejects []Reject
	_, err = source.Count(context.Background(), format, ReadOptions{MaxRejects: 5, OnReject: func(r Reject) { rejects = append(rejects, r) }})
	if err != nil || len(rejects) != 1 || strings.Contains(fmt.Sprintf("%s %v", rejects[0].Text, rejects[0].Mismatch), "hun") {
		t.Errorf("%v: %v", err, rejects)
	}
}

// fuzzRecording: whatever a file of this kind holds becomes lines that are whole, in bounds, and end.
func fuzzRecording(f *testing.F, seed string) {
	f.Add([]byte(seed))
	f.Fuzz(func(t *testing.T, text []byte) {
		opened, err := openReader("fuzz", bytes.NewReader(text))
		if err != nil {
			return
		}
		lines, err := io.ReadAll(opened.buffer)
		if err == nil && len(lines) > 0 && !bytes.Equal(lines, text) && lines[len(lines)-1] != '\n' {
			t.Fatalf("the last line has no end: %q", lines)
		}
		format, _ := Compile(Spec{Log: "RECORDING"})
		var r Request
		for line := range bytes.SplitSeq(lines, []byte("\n")) {
			if !Ignored(line) && format.Parse(line, &r) == nil && r.BodyBytes < -1 {
				t.Fatalf("%q has %d bytes", line, r.BodyBytes)
			}
		}
	})
}

func FuzzHAR(f *testing.F) { fuzzRecording(f, harFile) }
func FuzzGor(f *testing.F) { fuzzRecording(f, gorFile1) }
