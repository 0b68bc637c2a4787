package main

import (
	"fmt"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"plimsoll/replay/cli"
)

// Connections that the addresses have no ports for are refused or named before the run, whatever else is too little.
func TestThePortsOfAnAddress(t *testing.T) {
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		t.Skip("only Linux says how many ports an address has")
	}
	var first, last int
	if _, err := fmt.Sscan(string(text), &first, &last); err != nil {
		t.Fatal(err)
	}
	each := last - first + 1
	server := httptest.NewServer(nil)
	t.Cleanup(server.Close)
	log := writeLog(t, logLine(0, "GET /a HTTP/1.1", "UA"))
	number := func(n int) string { return fmt.Sprint(n) }
	const unsaid = "needs as many ports"
	rows := []struct {
		why  string
		args []string
		says []string // nil: nothing is said of ports
	}{
		{"one address has ports for so many users", []string{"--users", number(each)}, nil},
		{"and for no more", []string{"--users", number(each + 1)}, []string{
			fmt.Sprintf("--users %d needs as many ports, of which an address has %d to one server", each+1, each),
			"without --source-address there is one; give 3 addresses of this machine or more",
		}},
		{"two addresses have twice as many", []string{"--users", number(2 * each), "--source-address", "127.0.1.1,127.0.1.2"}, nil},
		{"and no more", []string{"--users", number(2*each + 1), "--source-address", "127.0.1.1,127.0.1.2"}, []string{
			"and --source-address gives 2; give 4 addresses",
		}},
		{"a prefix has those of all its addresses", []string{"--users", number(10 * each), "--source-address", "127.0.0.0/16"}, nil},
		{"a cap is no need", []string{"--max-connections", number(each + 1)}, nil},
		{"connections need ports like users", []string{"--speed", "max", "--connections", number(each + 1)}, []string{
			fmt.Sprintf("--connections %d needs as many ports", each+1),
		}},
	}
	for _, row := range rows {
		// An instant that is none keeps each row from being carried out: all that is wrong is said at once.
		args := append([]string{"run", log, "--target", server.URL, "--out", t.TempDir(), "--quiet", "--from", "never"}, row.args...)
		code, _, errOut := call(args...)
		if code != cli.ExitUsage || row.says == nil && strings.Contains(errOut, unsaid) {
			t.Errorf("%s: exit %d: %s", row.why, code, errOut)
		}
		for _, part := range row.says {
			if !strings.Contains(errOut, part) {
				t.Errorf("%s: %q does not say %q", row.why, errOut, part)
			}
		}
	}
}
