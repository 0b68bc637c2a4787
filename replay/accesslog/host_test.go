package accesslog

import (
	"math/rand/v2"
	"net/netip"
	"testing"
)

// TestAddresses holds the two address parsers against Go's.
func TestAddresses(t *testing.T) {
	check := func(text string) {
		at, err := netip.ParseAddr(text)
		if want := err == nil && at.Zone() == ""; isAddress([]byte(text)) != want {
			t.Errorf("%q: %v, want %v", text, !want, want)
		}
	}
	for _, text := range []string{
		"", ":", "::", ":::", "::1", "1::", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8", "1::2::3", "1:2:3:4:5:6:7:8:9",
		"::ffff:192.0.2.1", "1:2:3:4:5:6:192.0.2.1", "1:2:3:4:5:6:7:192.0.2.1", "::192.0.2.256", "12345::", "g::", "1:", ":1", "fe80::1%eth0",
		"192.0.2.1", "192.0.2", "192.0.2.1.", "192.0.2.01", "0.0.0.0", "255.255.255.256", "1.2.3.4.5", "a.b.c.d", "1..2.3",
	} {
		check(text)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50_000 {
		b := []byte("2001:db8::1:192.0.2.1"[rng.IntN(10):])
		for range 1 + rng.IntN(4) {
			b[rng.IntN(len(b))] = "0123af::..%g"[rng.IntN(12)]
		}
		check(string(b[:rng.IntN(len(b)+1)]))
	}
}
