package run

import (
	"strings"
	"testing"

	"plimsoll/replay/record"
)

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
