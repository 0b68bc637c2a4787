package run

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"plimsoll/replay/engine/target"
	"plimsoll/replay/traffic"
)

// target returns the target of --target, once it answers; without one it starts the embedded origin.
func (c *Command) target(ctx context.Context, setup *Setup, s Streams, l *traffic.Logs) (*target.Target, func(), error) {
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
		return nil, nil, UsageError{err}
	}
	return to, stop, nil
}

// checkTarget refuses what cannot be a target, before any log is read.
func (c *Command) checkTarget() error {
	if c.Target == "" && !c.given["target"] {
		return nil
	}
	return target.Validate(c.Target, c.ConnectTo)
}

// startOrigin runs `replay origin` as a separate process, so that its work is not the generator's, and waits until it
// listens. It ends with its standard input, and so with this process, however this process ends.
func (c *Command) startOrigin(ctx context.Context, s Streams, l *traffic.Logs) (base string, stop func(), err error) {
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
		defer time.AfterFunc(grace, func() { _ = cmd.Process.Kill() }).Stop() // it may wait for a disk
		_ = cmd.Wait()
	}
	defer context.AfterFunc(ctx, func() { _ = leash.Close() })()
	address, err := listening(ready)
	if err != nil {
		stop()
		return "", nil, UsageError{errors.New("the embedded origin did not start, for the reason above: give --target to replay against your own server")}
	}
	return "http://" + address, stop, nil
}

// originArgs returns the command line of the embedded origin.
func (c *Command) originArgs(root string, l *traffic.Logs) []string {
	args := []string{"origin", "--listen", "127.0.0.1:0", "--root", root, "--exit-with-stdin"}
	if c.Quiet {
		args = append(args, "--quiet")
	}
	args = append(args, c.LogFlags.Args()...)
	for _, path := range l.Paths {
		args = append(args, "--log", path)
	}
	return args
}

// listening reads the origin's first line, and returns the address on which it listens.
func listening(r io.Reader) (string, error) {
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
