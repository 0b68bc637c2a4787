package traffic

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/big"
	"os"
	"strings"
	"testing"

	"plimsoll/replay/route"
)

var update = flag.Bool("update", false, "write testdata/shares.json anew")

// goldenClient is one client, and which of the instances between the bounds replays its requests.
type goldenClient struct {
	Address   []byte         `json:"address_base64"`
	UserAgent []byte         `json:"user_agent_base64"`
	Client    uint32         `json:"client"`
	Owners    map[string]int `json:"owners"` // by bounds, as --execution-segment-sequence has them
}

// TestSharesAreThoseOfTheTable holds the shares to a table that benchmarks/sharing is held to as well: runs of different
// versions can be compared only if the same clients are together. To write it anew: go test ./traffic -run OfTheTable
// -update.
func TestSharesAreThoseOfTheTable(t *testing.T) {
	const path = "testdata/shares.json"
	if *update {
		writeGolden(t, path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var clients []goldenClient
	if err := json.Unmarshal(text, &clients); err != nil {
		t.Fatal(err)
	}
	if len(clients) < 10 {
		t.Fatalf("%s has %d clients", path, len(clients))
	}
	for _, c := range clients {
		got := goldenOf(t, c.Address, c.UserAgent)
		if got.Client != c.Client {
			t.Errorf("client %q %q is %d, want %d", c.Address, c.UserAgent, got.Client, c.Client)
		}
		for bounds, owner := range got.Owners {
			if owner != c.Owners[bounds] {
				t.Errorf("client %q %q: instance %d of %s, want %d",
					c.Address, c.UserAgent, owner, bounds, c.Owners[bounds])
			}
		}
	}
}

func goldenOf(t *testing.T, address, agent []byte) goldenClient {
	t.Helper()
	sequences := []string{"0,1/2,1", "0,1/4,1/2,3/4,1", "0,1/7,1/3,5/8,1"}
	var many []string
	for i := range 65 {
		many = append(many, big.NewRat(int64(i), 64).RatString())
	}
	sequences = append(sequences, strings.Join(many, ","))
	out := goldenClient{Address: address, UserAgent: agent, Client: numberClient(address, agent), Owners: map[string]int{}}
	for _, sequence := range sequences {
		share, err := NewShare(rats(strings.Split(sequence, ",")...), 0)
		if err != nil {
			t.Fatal(err)
		}
		out.Owners[sequence] = share.Of(out.Client)
	}
	return out
}

func writeGolden(t *testing.T, path string) {
	t.Helper()
	clients := []goldenClient{
		goldenOf(t, []byte("192.0.2.1"), []byte("Mozilla/5.0 (X11; Linux x86_64)")),
		goldenOf(t, []byte("192.0.2.1"), []byte("curl/8.5.0")), // another client of the same address
		goldenOf(t, []byte("192.0.2.1"), []byte("-")),
		goldenOf(t, []byte("192.0.2.1"), []byte{}),
		goldenOf(t, []byte("2001:db8::1"), []byte("Mozilla/5.0")),
		goldenOf(t, []byte("host.example"), []byte("caf\xc3\xa9")),
		goldenOf(t, []byte("198.51.100.7"), []byte("\xff\xfe\x00\x80")), // no UTF-8
		goldenOf(t, []byte{}, []byte{}),
	}
	for i := range 32 {
		clients = append(clients, goldenOf(t, fmt.Appendf(nil, "203.0.113.%d", i), []byte("Mozilla/5.0")))
	}
	text, err := json.MarshalIndent(clients, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(bytes.TrimSpace(text), '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkOthersLines says what a line of another instance's client costs: it is read and put in order, and not sent.
func BenchmarkOthersLines(b *testing.B) {
	const lines = 100_000
	logs := accessLog(b, lines)
	share, err := NewShare(rats("0", "1/1000000", "1"), 0)
	if err != nil {
		b.Fatal(err)
	}
	plan := Plan{Speed: 1, Seed: 1, Loops: 1, Share: share, Methods: map[string]bool{"GET": true, "POST": true}}
	for b.Loop() {
		for range New(plan, logs, counter{}, route.New(nil)).Paced() {
			b.Fatal("a line was of this instance, whose share is next to nothing")
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/lines, "ns/line")
}
