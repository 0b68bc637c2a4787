package traffic

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"plimsoll/replay/accesslog"
	"plimsoll/replay/engine/wire"
	"plimsoll/replay/route"
)

func rats(texts ...string) []*big.Rat {
	var out []*big.Rat
	for _, text := range texts {
		r, _ := new(big.Rat).SetString(text)
		out = append(out, r)
	}
	return out
}

func TestSharesThatCannotBe(t *testing.T) {
	for _, c := range []struct {
		says   string
		bounds []*big.Rat
		index  int
		want   string
	}{
		{"what begins after 0 leaves clients to nobody", rats("1/4", "1"), 0, "from 0 to 1"},
		{"what ends before 1 does too", rats("0", "1/2"), 0, "from 0 to 1"},
		{"bounds ascend", rats("0", "1/2", "1/4", "1"), 0, "ascend"},
		{"there is no empty share", rats("0", "1/2", "1/2", "1"), 1, "ascend"},
		{"of two shares there is no third", rats("0", "1/2", "1"), 2, "no share 2"},
		{"one bound makes no share", rats("0"), 0, "no share"},
	} {
		if _, err := NewShare(c.bounds, c.index); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.says, err, c.want)
		}
	}
}

func TestEveryClientIsInExactlyOneShareAndSharesAreEven(t *testing.T) {
	bounds := rats("0", "1/7", "1/3", "5/8", "1")
	var shares []Share
	for i := range 4 {
		share, err := NewShare(bounds, i)
		if err != nil {
			t.Fatal(err)
		}
		shares = append(shares, share)
	}
	random := rand.New(rand.NewPCG(1, 2))
	const clients = 200_000
	counts := make([]int, 4)
	for i := range clients {
		// clients as they come: hashes of near addresses, and any numbers at all
		client := numberClient(fmt.Appendf(nil, "10.0.%d.%d", i>>8, i&255), []byte("Mozilla/5.0"))
		if i%2 == 1 {
			client = random.Uint32()
		}
		owners := 0
		for index, share := range shares {
			if share.isMine(client) {
				owners++
				counts[index]++
				if share.Of(client) != index {
					t.Fatalf("client %d is of share %d, and of %d", client, index, share.Of(client))
				}
			}
		}
		if owners != 1 {
			t.Fatalf("client %d is in %d shares", client, owners)
		}
	}
	for i, want := range []float64{1. / 7, 1./3 - 1./7, 5./8 - 1./3, 3. / 8} {
		if got := float64(counts[i]) / clients; got < want*0.97 || got > want*1.03 {
			t.Errorf("share %d has %.3f of the clients, want %.3f", i, got, want)
		}
	}
}

// counter counts skips.
type counter map[string]uint64

func (c counter) Skip(reason string)            { c[reason]++ }
func (c counter) SkipN(reason string, n uint64) { c[reason] += n }

func accessLog(t testing.TB, lines int) *Logs {
	t.Helper()
	var text strings.Builder
	for i := range lines {
		method := "GET"
		if i%10 == 3 {
			method = "POST"
		}
		fmt.Fprintf(&text, "10.0.0.%d - - [22/Nov/2026:10:%02d:%02d +0000] \"%s /page/%d HTTP/1.1\" 200 12 \"-\" \"agent\"\n", i*i%97, i/60%60, i%60, method, i)
	}
	path := filepath.Join(t.TempDir(), "access.log")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	logs, err := Open(context.Background(), []string{path}, nil, Reading{Spec: accesslog.Spec{Log: "COMBINED"}})
	if err != nil {
		t.Fatal(err)
	}
	return logs
}

func TestTheUnionOfTheSharesIsTheLogExactlyOnce(t *testing.T) {
	logs := accessLog(t, 3000)
	plan := Plan{Speed: 10, Seed: 1, Loops: 2, Limit: 4000, Methods: map[string]bool{"GET": true}}
	type one struct {
		target string
		due    int64
	}
	attempts := func(plan Plan) ([]one, counter, *Traffic) {
		counts := counter{}
		traffic := New(plan, logs, counts, route.New(nil))
		var out []one
		for s := range traffic.Paced() {
			out = append(out, one{s.Value.Target, s.AtNS})
		}
		return out, counts, traffic
	}
	whole, skipped, all := attempts(plan)
	if len(whole) != 4000 || all.Planned()[0] != 4000 {
		t.Fatalf("the whole log has %d requests, planned %v", len(whole), all.Planned())
	}
	var union []one
	together := counter{}
	for i := range 3 {
		plan.Share, _ = NewShare(rats("0", "1/5", "1/2", "1"), i)
		part, counts, traffic := attempts(plan)
		union = append(union, part...)
		for reason, n := range counts {
			together.SkipN(reason, n)
		}
		planned := traffic.Planned()
		if len(planned) != 3 || planned[i] != uint64(len(part)) || planned[0]+planned[1]+planned[2] != 4000 {
			t.Errorf("instance %d sent %d requests, and planned %v", i, len(part), planned)
		}
	}
	order := func(a, b one) int {
		if a.due != b.due {
			return int(a.due - b.due)
		}
		return strings.Compare(a.target, b.target)
	}
	slices.SortFunc(whole, order)
	slices.SortFunc(union, order)
	if !slices.Equal(whole, union) {
		t.Errorf("the union of the shares is not the log: %d requests, want %d", len(union), len(whole))
	}
	if together[wire.SkipMethod] != skipped[wire.SkipMethod] {
		t.Errorf("together %d requests were skipped, want %d", together[wire.SkipMethod], skipped[wire.SkipMethod])
	}
}

func TestWhatEachShareHasIsUnknownBeforeTheEnd(t *testing.T) {
	traffic := New(Plan{Speed: 1, Loops: 1, Methods: map[string]bool{"GET": true}}, accessLog(t, 10), counter{}, route.New(nil))
	for range traffic.Paced() {
		break
	}
	if planned := traffic.Planned(); planned != nil {
		t.Errorf("planned %v before the schedule has ended", planned)
	}
}

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
