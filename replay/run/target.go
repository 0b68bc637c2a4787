package run

// The target: what was given, or the embedded origin; and whether it may be changed.

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"plimsoll/replay/cli"
	"plimsoll/replay/engine/target"
	"plimsoll/replay/traffic"
)

// target returns the target of --target, once it answers; without one it starts the embedded origin.
func (c *Settings) target(ctx context.Context, setup *Setup, s cli.Streams, l *traffic.Logs) (*target.Target, func(), error) {
	base, stop := c.Target, func() {}
	if base == "" {
		var err error
		if base, stop, err = c.startOrigin(ctx, s, l); err != nil {
			return nil, nil, err
		}
	}
	to, err := target.New(ctx, base, c.ConnectTo, c.Insecure)
	if err == nil {
		to.Resume, to.Sources = c.TLSResume, setup.sources
		err = to.Check(ctx, min(c.Timeout, 10*time.Second))
	}
	if err != nil {
		stop()
		return nil, nil, cli.Usage(err)
	}
	return to, stop, nil
}

// startOrigin runs `replay origin` as a separate process, so that its work is not the generator's, and waits until it
// listens. It ends with its standard input, and so with this process, however this process ends.
func (c *Settings) startOrigin(ctx context.Context, s cli.Streams, l *traffic.Logs) (base string, stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	root := c.Root
	if root == "" {
		root = filepath.Join(c.Out, "origin")
	}
	cmd := exec.Command(self, c.originArgs(root, l)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the replay alone
	cmd.Stderr = s.Err
	leash, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	ready, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, fmt.Errorf("cannot start the embedded origin: %w", err)
	}
	stop = func() {
		_ = leash.Close()
		defer time.AfterFunc(cli.Grace, func() { _ = cmd.Process.Kill() }).Stop() // it may wait for a disk
		_ = cmd.Wait()
	}
	defer context.AfterFunc(ctx, func() { _ = leash.Close() })()
	address, err := readAddress(ready)
	if err != nil {
		stop()
		return "", nil, cli.Usage(errors.New("the embedded origin did not start, for the reason above: give --target to replay against your own server"))
	}
	return "http://" + address, stop, nil
}

// originArgs returns the command line of the embedded origin.
func (c *Settings) originArgs(root string, l *traffic.Logs) []string {
	args := []string{"origin", "--listen", "127.0.0.1:0", "--root", root, "--exit-with-stdin"}
	args = append(args, c.ShowFlags.Args()...)
	args = append(args, c.LogFlags.Args()...)
	for _, path := range l.Paths {
		args = append(args, "--log", path)
	}
	return args
}

// readAddress reads the origin's first line, and returns the address on which it listens.
func readAddress(r io.Reader) (string, error) {
	line, err := bufio.NewReader(r).ReadBytes('\n')
	if err != nil {
		return "", err
	}
	var said struct {
		Listening string `json:"listening"`
	}
	if err := json.Unmarshal(line, &said); err != nil {
		return "", err
	}
	return said.Listening, nil
}

// reading are the methods that change nothing (RFC 9110, 9.2.1).
var reading = []string{"GET", "HEAD", "OPTIONS", "TRACE"}

// mayWrite refuses to change a site that is not on this machine, unless that is allowed.
func (r *Replay) mayWrite() error {
	method := firstChanging(r.setup.plan.Methods)
	if method == "" || r.command.AllowWrites || target.IsLoopback(r.target.Addresses[0]) {
		return nil
	}
	return cli.Usage(fmt.Errorf("--methods: %s may change a site, and %s is not on this machine: give --allow-writes if it is a clone that may be changed",
		method, r.target.URL))
}

// firstChanging returns the first method that may change a site; "" if none does.
func firstChanging(methods map[string]bool) string {
	for _, method := range slices.Sorted(maps.Keys(methods)) {
		if !slices.Contains(reading, method) {
			return method
		}
	}
	return ""
}
