package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"plimsoll/replay/cli"
)

const originLog = `192.0.2.1 - - [20/Nov/2026:10:00:00 +0000] "GET /a.png HTTP/1.1" 200 5000 "-" "browser"
192.0.2.1 - - [20/Nov/2026:10:00:01 +0000] "GET /gone HTTP/1.1" 404 564 "-" "browser"
192.0.2.1 - - [20/Nov/2026:10:00:01 +0000] "GET /quoted?a=\x22b\x22 HTTP/1.1" 301 7 "-" "browser"
192.0.2.1 - - [20/Nov/2026:10:00:02 +0000] "HEAD /a.png HTTP/1.1" 200 0 "-" "browser"
`

func writeOriginLog(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "access.log")
	if err := os.WriteFile(path, []byte(originLog), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOriginServesALogUntilItsParentGoes(t *testing.T) {
	in, leash := io.Pipe()
	out, stdout := io.Pipe()
	var stderr bytes.Buffer
	code := make(chan int, 1)
	args := []string{"origin", "--log", writeOriginLog(t), "--root", filepath.Join(t.TempDir(), "files"), "--format", "COMBINED", "--exit-with-stdin"}
	go func() {
		code <- runMain(args, cli.Streams{In: in, Out: stdout, Err: &stderr, Name: "replay"})
		stdout.Close()
	}()
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	var ready struct {
		Listening string
		Files     int
		Targets   int
	}
	if err := json.Unmarshal(line, &ready); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	if ready.Files != 1 || ready.Targets != 3 {
		t.Errorf("it says %s", line)
	}
	for _, c := range []struct {
		why, target string
		status      int
		length      int64
	}{
		{"a file of the logged size", "/a.png", 200, 5000},
		{"a logged failure", "/gone", 404, 564},
		{"what the log does not have", "/else", 404, -1},
	} {
		response, err := http.Get("http://" + ready.Listening + c.target)
		if err != nil {
			t.Fatal(err)
		}
		n, _ := io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if response.StatusCode != c.status || c.length >= 0 && n != c.length {
			t.Errorf("%s: %d with %d bytes, want %d with %d", c.why, response.StatusCode, n, c.status, c.length)
		}
	}
	checkRawTarget(t, ready.Listening)
	leash.Close()
	if got := <-code; got != cli.ExitYes || stderr.Len() > 0 {
		t.Errorf("it ended with %d: %s", got, stderr.String())
	}
}

// checkRawTarget asks for a target with quotation marks in it, which the log has escaped.
func checkRawTarget(t *testing.T, address string) {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, "GET /quoted?a=\"b\" HTTP/1.1\r\nHost: x\r\n\r\n")
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != 301 || response.ContentLength != 7 {
		t.Errorf("a target that the log escapes: %s with %d bytes", response.Status, response.ContentLength)
	}
}

func TestOriginRefusesInOneSentence(t *testing.T) {
	log := writeOriginLog(t)
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "thesis.tex"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		why  string
		args []string
		says string
	}{
		{"no log", []string{"--root", t.TempDir()}, "--log"},
		{"a log that is not there", []string{"--log", filepath.Join(foreign, "nowhere"), "--root", t.TempDir()}, "nowhere"},
		{"a folder of somebody else's", []string{"--log", log, "--root", foreign}, "choose an empty one with --root"},
		{"standard input for two things", []string{"--log", "-", "--root", t.TempDir(), "--exit-with-stdin"}, "both need standard input"},
		{"an address that is none", []string{"--log", log, "--root", t.TempDir(), "--listen", "nonsense"}, "choose another --listen"},
		{"a size that is none", []string{"--log", log, "--root", t.TempDir(), "--max-bytes", "lots"}, "such as 10G"},
	} {
		var out, stderr bytes.Buffer
		code := runMain(append([]string{"origin"}, c.args...), cli.Streams{In: strings.NewReader(""), Out: &out, Err: &stderr, Name: "replay"})
		if code != cli.ExitUsage || !strings.Contains(stderr.String(), c.says) || out.Len() > 0 {
			t.Errorf("%s: exit code %d, %q on stdout, %q on stderr", c.why, code, out.String(), stderr.String())
		}
		if lines := strings.Count(strings.TrimSpace(stderr.String()), "\n"); lines > 0 {
			t.Errorf("%s: %d lines: %s", c.why, lines+1, stderr.String())
		}
	}
}

// A mistake is one, also where the input that the origin is to end with has ended before it is found: of so many logs.
func TestOriginRefusesWithoutItsParentToo(t *testing.T) {
	args := []string{"origin", "--root", t.TempDir(), "--exit-with-stdin"}
	for i := range 2000 {
		args = append(args, "--log", fmt.Sprint("/none/", i))
	}
	var out, stderr bytes.Buffer
	if code := runMain(args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &stderr, Name: "replay"}); code != cli.ExitUsage {
		t.Errorf("exit code %d: %.200s", code, stderr.String())
	}
}

func TestOriginSaysWhatItCannotServe(t *testing.T) {
	in, leash := io.Pipe()
	out, stdout := io.Pipe()
	var stderr bytes.Buffer
	done := make(chan int, 1)
	args := []string{"origin", "--log", writeOriginLog(t), "--root", filepath.Join(t.TempDir(), "files"), "--max-bytes", "1K", "--max-targets", "2", "--exit-with-stdin"}
	go func() { done <- runMain(args, cli.Streams{In: in, Out: stdout, Err: &stderr, Name: "replay"}) }()
	if _, err := bufio.NewReader(out).ReadBytes('\n'); err != nil {
		t.Fatal(err)
	}
	leash.Close()
	<-done
	for _, says := range []string{"1 files beyond --max-bytes", "1 requests for targets beyond --max-targets"} {
		if !strings.Contains(stderr.String(), says) {
			t.Errorf("it says %q, want it to say %q", stderr.String(), says)
		}
	}
}
