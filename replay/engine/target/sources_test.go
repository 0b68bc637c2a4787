package target

import "testing"

func TestSources(t *testing.T) {
	rows := []struct {
		why    string
		texts  []string
		client uint32
		want   string
	}{
		{"none", nil, 7, "invalid IP"},
		{"one address is everybody's", []string{"10.0.0.5"}, 7, "10.0.0.5"},
		{"two addresses take turns", []string{"10.0.0.5", "10.0.0.6"}, 7, "10.0.0.6"},
		{"a prefix without the network's own addresses", []string{"10.0.0.0/30"}, 0, "10.0.0.1"},
		{"its last", []string{"10.0.0.0/30"}, 1, "10.0.0.2"},
		{"and round again", []string{"10.0.0.0/30"}, 2, "10.0.0.1"},
		{"a prefix written with an address in it", []string{"10.0.0.7/30"}, 0, "10.0.0.5"},
		{"a carry", []string{"127.0.0.0/16"}, 255, "127.0.1.0"},
		{"a pair has no network's own", []string{"10.0.0.4/31"}, 1, "10.0.0.5"},
		{"of a wide prefix, the first 65,534", []string{"10.0.0.0/8"}, 65534, "10.0.0.1"},
		{"IPv6", []string{"fd00::/64"}, 1, "fd00::2"},
	}
	for _, row := range rows {
		s, err := ParseSources(row.texts)
		if got := s.Of(row.client).String(); err != nil || got != row.want {
			t.Errorf("%s: %s, %v; want %s", row.why, got, err, row.want)
		}
	}
	if _, err := ParseSources([]string{"10.0.0.300", "10.0.0.1", "x/9"}); err == nil {
		t.Error("two of three are wrong, and nobody says so")
	}
}
