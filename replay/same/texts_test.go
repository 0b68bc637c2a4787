package same

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

const page = `<html><head><title>Shop</title></head><body>
<script>var cfg = {"nonce":"%s","ajax":"/wp-admin/admin-ajax.php"};</script>
<p>%s</p><p>Visitors: %s. It is %s.</p>
<!-- generated in %s s -->%s
</body></html>`

func texts(each ...string) [][]byte {
	var out [][]byte
	for _, text := range each {
		out = append(out, []byte(text))
	}
	return out
}

func filled(nonce, text, visitors, at, took, more string) string {
	return fmt.Sprintf(page, nonce, text, visitors, at, took, more)
}

func TestTexts(t *testing.T) {
	a1 := filled("a1b2c3", "Old shoes", "1,105", "20:31:05", "0.12", "")
	a2 := filled("99ffee", "Old shoes", "1,106", "20:31:06", "0.093", "")
	b1 := filled("c0ffee", "Old shoes", "2,231", "20:31:05", "1.2", "")
	b2 := filled("deface", "Old shoes", "2,232", "20:31:06", "0.7", "")
	with := func(text, old, new string) string { return strings.ReplaceAll(text, old, new) }
	rows := []struct {
		why                 string
		baseline, candidate [][]byte
		want                outcome
		at                  string // with which the difference begins on the candidate
	}{
		{"the same bytes", texts("a b c", "a b c"), texts("a b c", "a b c"), alike, ""},
		{"nonces, counters, times of day and durations vary by themselves", texts(a1, a2), texts(b1, b2), alike, ""},
		{"they vary on the baseline only: a cache before the candidate", texts(a1, a2), texts(b1, b1), alike, ""},
		{"they vary on the candidate only", texts(a1, a1), texts(b1, b2), alike, ""},
		{
			"a word of the text is another one", texts(a1, a2),
			texts(with(b1, "Old", "New"), with(b2, "Old", "New")), differs, "New shoes",
		},
		{
			"a word is missing", texts(a1, a2),
			texts(with(b1, "Old shoes", "shoes"), with(b2, "Old shoes", "shoes")), differs, "shoes",
		},
		{
			"a text was added right beside a counter", texts(a1, a2),
			texts(with(b1, "2,231", "2,231 and a ghost"), with(b2, "2,232", "2,232 and a ghost")), differs, "2,231 and a ghost",
		},
		{
			"a text was added where nothing varies", texts(a1, a2),
			texts(b1+"<b>hacked</b>", b2+"<b>hacked</b>"), differs, "><b>hacked",
		},
		{"the candidate's page is cut off", texts(a1, a2), texts(b1[:len(b1)-30], b2[:len(b2)-30]), differs, ""},
		{
			"an advertisement comes and goes on either side", texts(a1, with(a2, "</body>", "<i>Buy!</i></body>")),
			texts(with(b1, "</body>", "<i>Buy!</i></body>"), b2), alike, "",
		},
		{
			"a nonce in base64, whose signs may be equal by chance",
			texts(`<i x="ab+cd/ef=="> one two three four`, `<i x="gh+ij/kl+m="> one two three four`),
			texts(`<i x="zz/y+x"> one two three four`, `<i x="a+b/c=="> one two three four`), alike, "",
		},
		{
			"pages that turn up on both sides, in another order", texts("red one", "blue two"), texts("blue two", "green three"),
			alike, "",
		},
		{"nothing stays", texts("abc def", "ghi jkl"), texts("mno pqr", "stu vwx"), unknown, ""},
		{"one number and nothing else", texts("105", "106"), texts("17", "18"), unknown, ""},
		{"an empty page in place of one", texts(a1, a2), texts("", ""), differs, ""},
		{"a page in place of an empty one", texts("", ""), texts("a", "a"), differs, "a"},
	}
	for _, row := range rows {
		got, found := compareTexts(row.baseline, row.candidate)
		if got != row.want {
			t.Errorf("%s: %d, want %d", row.why, got, row.want)
			continue
		}
		if row.at != "" && !bytes.HasPrefix(found.b.text[found.atB:], []byte(row.at)) {
			t.Errorf("%s: the difference is at %q", row.why, found.b.text[found.atB:])
		}
	}
}

// Long pages are cut at what they have once: so one number among thousands of lines that are alike stays one.
func TestLongTexts(t *testing.T) {
	long := func(every, seed int, planted string) []byte {
		var out bytes.Buffer
		for i := range 8_000 {
			switch {
			case i == 5_001:
				out.WriteString(planted)
			case i%every == 0:
				fmt.Fprintf(&out, "<li id=%d>item %d token%d</li>\n", i, i, (i+1)*seed)
			default:
				out.WriteString("<li class=\"a\">the quick brown fox</li>\n")
			}
		}
		return out.Bytes()
	}
	for _, every := range []int{3, 50, 3000} {
		a := [][]byte{long(every, 3, ""), long(every, 5, "")}
		if got, _ := compareTexts(a, [][]byte{long(every, 7, ""), long(every, 11, "")}); got != alike {
			t.Errorf("one line in %d varies: %d", every, got)
		}
		if got, _ := compareTexts(a, [][]byte{long(every, 7, "<li>ghost</li>\n"), long(every, 11, "<li>ghost</li>\n")}); got != differs {
			t.Errorf("one line in %d varies, and one was planted: %d", every, got)
		}
	}
}

// Whatever two sequences are, the stretches between their hunks are equal, and nothing is left out.
func checkHunks(t *testing.T, a, b []int32) {
	t.Helper()
	i, j := 0, 0
	for _, h := range append(hunks(a, b), hunk{len(a), len(a), len(b), len(b)}) {
		if h.A0-i != h.B0-j || h.A0 < i || h.A1 < h.A0 || h.B1 < h.B0 {
			t.Fatalf("hunk %v after %d and %d of %v and %v", h, i, j, a, b)
		}
		for ; i < h.A0; i, j = i+1, j+1 {
			if a[i] != b[j] {
				t.Fatalf("%d and %d are no equals of %v and %v", i, j, a, b)
			}
		}
		i, j = h.A1, h.B1
	}
	if i != len(a) || j != len(b) {
		t.Fatalf("they end at %d and %d of %v and %v", i, j, a, b)
	}
}

func TestHunksOfAnything(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	draw := func(n, of int) []int32 {
		out := make([]int32, n)
		for i := range out {
			out[i] = int32(random.IntN(of))
		}
		return out
	}
	for range 300 {
		of := 1 + random.IntN(40)
		checkHunks(t, draw(random.IntN(60), of), draw(random.IntN(60), of))
	}
	// Beyond the exact table: cut at anchors, and, without any, one hunk.
	checkHunks(t, draw(3000, 5000), draw(3000, 5000))
	checkHunks(t, draw(3000, 3), draw(3000, 3))
	a := draw(200_000, 50_000)
	b := append(append(append([]int32{}, a[:70_000]...), draw(5, 9)...), a[70_003:]...)
	checkHunks(t, a, b)
	if found := hunks(a, b); len(found) > 5 {
		t.Errorf("one change of three tokens has become %d hunks", len(found))
	}
}

func TestTokensAreTheText(t *testing.T) {
	rows := []struct{ why, text, want string }{
		{"words and signs", `<p class="a_b">`, `<|p| |class|=|"|a_b|"|>`},
		{"a time of day is one token", "at 20:31:05.", "at| |20:31:05|."},
		{"so is a date", "2026-11-23T20:31", "2026-11-23T20:31"},
		{"and a number with commas", "1,105, 2", "1,105|,| |2"},
		{"other alphabets are words", "größer æ", "größer| |æ"},
		{"white space is one token", "a \r\n\tb", "a| \r\n\t|b"},
	}
	for _, row := range rows {
		d := lexicon{}.read([]byte(row.text))
		var got []string
		for i := range d.ids {
			got = append(got, string(d.token(i)))
		}
		if strings.Join(got, "|") != row.want {
			t.Errorf("%s: %q", row.why, got)
		}
	}
}

// FuzzTexts holds that sides with the same answers are alike, that no side is alike with a planted text whose words it
// never had, and that order within a side is of no matter to that.
func FuzzTexts(f *testing.F) {
	f.Add([]byte("one two 3"), []byte("one two 4"), uint16(3))
	f.Add([]byte("<p>a+b/c==</p>"), []byte("<p>x/y+z</p>"), uint16(0))
	f.Add([]byte{0xff, 0, '\n'}, []byte(""), uint16(9))
	f.Fuzz(func(t *testing.T, one, other []byte, at uint16) {
		checkHunks(t, lexicon{}.read(one).ids, lexicon{}.read(other).ids)
		if got, _ := compareTexts([][]byte{one, other}, [][]byte{other, one}); got != alike {
			t.Fatalf("the same answers in another order: %d", got)
		}
		place := int(at) % (len(one) + 1)
		planted := bytes.Join([][]byte{one[:place], one[place:]}, []byte(" planted, and never seen "))
		if got, _ := compareTexts([][]byte{one, one}, [][]byte{planted, planted}); got != differs {
			t.Fatalf("a planted text where nothing varies: %d", got)
		}
		_, found := compareTexts([][]byte{one, other}, [][]byte{planted, planted})
		if found != nil && (found.atA > len(one) || found.atB > len(planted)) {
			t.Fatalf("a difference beyond the end: %d, %d", found.atA, found.atB)
		}
	})
}
