package run

import (
	"strings"
	"testing"

	"plimsoll/replay/record"
)

func TestOnlyThisMachineNeedsNoConsentToLogins(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1:80": true, "127.9.9.9:80": true, "[::1]:443": true, "[::ffff:127.0.0.1]:80": true,
		"10.0.0.5:80": false, "[2001:db8::1]:80": false, "0.0.0.0:80": false, "localhost": false, "": false,
	} {
		if isLoopback(address) != want {
			t.Errorf("%q: %v", address, !want)
		}
	}
}

func TestWhatIsSaidOfMembers(t *testing.T) {
	for _, c := range []struct {
		why     string
		members *record.Members
		says    string // "": nothing
	}{
		{"all are guests", nil, ""},
		{"one in a hundred", &record.Members{Clients: 3, Accounts: 3, Requests: 100, SentToLogin: 1}, ""},
		{"more", &record.Members{Clients: 3, Accounts: 3, Requests: 100, SentToLogin: 2}, "2 of 100 requests of members were sent to the login"},
		{"cookies of another host", &record.Members{Clients: 3, Accounts: 3}, "no request went out with a member's cookies"},
		{"an instance without members", &record.Members{}, ""},
	} {
		if got := MembersWarning(c.members); (got == "") != (c.says == "") || !strings.Contains(got, c.says) {
			t.Errorf("%s: %q", c.why, got)
		}
	}
}
