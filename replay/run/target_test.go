package run

import (
	"strings"
	"testing"

	"plimsoll/replay/cli"
	"plimsoll/replay/engine/target"
)

func TestOtherMachinesAreNotWrittenToWithoutLeave(t *testing.T) {
	for _, c := range []struct {
		why, methods, address string
		leave, refused        bool
	}{
		{"POST", "GET,POST", "192.0.2.1:80", false, true},
		{"a method that nobody knows", "GET,FROB", "192.0.2.1:80", false, true},
		{"with leave", "GET,POST", "192.0.2.1:80", true, false},
		{"this machine", "GET,POST", "127.0.0.1:80", false, false},
		{"methods that change nothing", "GET,HEAD,OPTIONS", "192.0.2.1:80", false, false},
	} {
		command := &Settings{Methods: strings.Split(c.methods, ","), AllowWrites: c.leave}
		setup := &Setup{}
		setup.plan.Methods = command.methods(&cli.Problems{})
		r := &Replay{command: command, setup: setup, target: &target.Target{Addresses: []string{c.address}}}
		err := r.mayWrite()
		if (err != nil) != c.refused || c.refused && !strings.Contains(err.Error(), "give --allow-writes if it is a clone") {
			t.Errorf("%s: %v", c.why, err)
		}
	}
}
