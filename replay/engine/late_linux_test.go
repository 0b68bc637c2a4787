package engine_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"plimsoll/replay/engine"
	"plimsoll/replay/engine/exchange"
	"plimsoll/replay/engine/target"
	"plimsoll/replay/engine/wire"
	"plimsoll/replay/record"
)

const (
	generatorEnv = "PLIMSOLL_ENGINE_GENERATOR" // "DIR DRIVER URL": the test binary replays against URL into DIR
	perSecond    = 1000
	clients      = 5
	duration     = 2 * time.Second
	stall        = time.Second
)

// A generator that does not get the processor is late by itself: what then waits for a connection, behind all that came
// due meanwhile, is not the server's doing, whatever drives its requests.
func TestAStallOfTheGeneratorIsItsOwn(t *testing.T) {
	for _, d := range http1and2 {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			stallOne(t, d)
		})
	}
}

// stallOne stops a generator for a while.
func stallOne(t *testing.T, d driver) {
	dir := filepath.Join(t.TempDir(), "run")
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), generatorEnv+"="+dir+" "+d.name+" "+server{script: fine}.start(t, d))
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Process.Kill() }()
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	time.Sleep(stall / 2)
	for _, signal := range []os.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
		if err := child.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		time.Sleep(stall)
	}
	if err := child.Wait(); err != nil {
		t.Fatal(err)
	}
	checkLimited(t, dir)
}

// checkLimited holds the run directory of the stopped generator against what it went through.
func checkLimited(t *testing.T, dir string) {
	var run struct {
		Limited bool    `json:"generator_limited"`
		Reason  *string `json:"generator_limited_reason"`
	}
	var summary struct {
		Requests struct{ Sent, Errors int }
		Late     map[string]any `json:"late_ms"`
	}
	for name, into := range map[string]any{"run.json": &run, "summary.json": &summary} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			err = json.Unmarshal(text, into)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if want := int(duration.Seconds() * perSecond); summary.Requests.Sent != want || summary.Requests.Errors != 0 {
		t.Errorf("%+v, want %d sent without errors", summary.Requests, want)
	}
	if !run.Limited || run.Reason == nil {
		t.Error("a generator that was stopped is not said to be the limit")
	}
	// Half of all requests came due during the stop. Those at its begin were late by all of it.
	for figure, least := range map[string]time.Duration{"p90": stall / 2, "p99.9": stall * 9 / 10, "max": stall * 9 / 10} {
		if late, _ := summary.Late[figure].(float64); late < float64(least.Milliseconds()) {
			t.Errorf("late_ms has %s %v after a stop of %v", figure, summary.Late[figure], stall)
		}
	}
}

// generate is the other process: it says when it begins.
func generate(dir string, d driver, url string) error {
	to, err := target.New(context.Background(), url, "", true)
	if err != nil {
		return err
	}
	none, _ := wire.ParseHeaders(nil)
	into, err := record.Create(dir, record.Run{Scenario: "replay"}, record.Options{})
	if err != nil {
		return err
	}
	e := engine.New(to, none, engine.Options{Goroutines: d == goroutines}, into, context.Background())
	fmt.Println("begins")
	e.Open(context.Background(), evenly(d))
	_, err = into.Close(record.Complete, "")
	return err
}

// evenly are requests of a few clients at even distances.
func evenly(d driver) engine.Schedule {
	return func(yield func(engine.Entry) bool) {
		for i := range int64(duration.Seconds() * perSecond) {
			logged := &exchange.LoggedRequest{Client: uint32(i % clients), LoggedBytes: -1, Line: uint64(i) + 1}
			logged.Method, logged.Target, logged.Proto = "GET", "/", d.proto
			if !yield(engine.Entry{AtNS: i * int64(time.Second) / perSecond, Value: logged}) {
				return
			}
		}
	}
}

func init() {
	asGenerator = func() bool {
		what := strings.Fields(os.Getenv(generatorEnv))
		if len(what) != 3 {
			return false
		}
		i := slices.IndexFunc(http1and2, func(d driver) bool { return d.name == what[1] })
		if err := generate(what[0], http1and2[i], what[2]); err != nil {
			panic(err)
		}
		return true
	}
}
