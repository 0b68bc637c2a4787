package same

// Texts, token by token: what varies by itself, and where two of them differ.

import (
	"slices"
	"strings"
)

// mask is what varies by itself in a text: which tokens another answer of the same side had otherwise or not at all,
// and where it had more.
type mask struct {
	of     *document
	varies []bool // the token was another one, or none
	goes   []bool // the token was not there at all
	grows  []bool // before this token, or at the end, there was more
}

// learn adds what another answer of the same side has otherwise.
func (m *mask) learn(other *document) {
	end := -1 // of the last hunk
	for _, h := range hunks(m.of.ids, other.ids) {
		if end >= 0 && m.isJoint(end, h.A0) {
			for i := end; i < h.A0; i++ {
				m.varies[i] = true
			}
		}
		for i := h.A0; i < h.A1; i++ {
			m.varies[i] = true
			m.goes[i] = m.goes[i] || h.B0 == h.B1
		}
		m.grows[h.A0] = m.grows[h.A0] || h.A0 == h.A1
		end = h.A1
	}
}

// longestJoint is how many bytes may stay as they were by chance inside of what varies: the sign between two parts of a
// token in base64, say.
const longestJoint = 2

// isJoint reports whether what lies between two hunks is equal by chance: one or two signs that are neither words nor
// white space, and begin and end no element.
func (m *mask) isJoint(from, to int) bool {
	if to-from > longestJoint {
		return false
	}
	for i := from; i < to; i++ {
		switch c := m.of.token(i)[0]; {
		case isWord(c), isSpace(c), c == '<', c == '>', c == '"', c == '\'':
			return false
		}
	}
	return true
}

// isWhole reports whether over half of the words vary: then what stays says nothing.
func (m *mask) isWhole() bool {
	words, varying := 0, 0
	for i, varies := range m.varies {
		if isWord(m.of.token(i)[0]) {
			words++
			if varies {
				varying++
			}
		}
	}
	return 2*varying > words
}

// touches reports whether a token beside a place varies.
func (m *mask) touches(place int) bool {
	return place > 0 && m.varies[place-1] || place < len(m.varies) && m.varies[place]
}

func all(of []bool) bool {
	for _, each := range of {
		if !each {
			return false
		}
	}
	return true
}

// explains reports whether a difference between two sides is one of what varies by itself on either of them. What one
// side alone has is explained only if it comes and goes there, or comes beside what varies.
func explains(a, b *mask, h hunk) bool {
	inA, inB := a.varies[h.A0:h.A1], b.varies[h.B0:h.B1]
	switch {
	case len(inA) == 0:
		return a.grows[h.A0] || all(b.goes[h.B0:h.B1]) || all(inB) && a.touches(h.A0)
	case len(inB) == 0:
		return b.grows[h.B0] || all(a.goes[h.A0:h.A1]) || all(inA) && b.touches(h.B0)
	case all(inA) && all(inB):
		return true
	}
	return len(inA) == len(inB) && (all(inA) || all(inB))
}

// outcome is what a comparison comes to.
type outcome int

const (
	alike outcome = iota
	differs
	unknown // it varies by itself so much that nothing can be said
)

// difference is where two texts differ first, as places in the first text of either side.
type difference struct {
	a, b     *document
	atA, atB int
}

// compareTexts compares the texts of two sides, each of which was asked for several times. What differs between the
// texts of one side varies by itself, and is left out on both.
func compareTexts(baseline, candidate [][]byte) (outcome, *difference) {
	for _, one := range baseline {
		for _, other := range candidate {
			if string(one) == string(other) {
				return alike, nil
			}
		}
	}
	words := lexicon{}
	a, b := learnMask(words, baseline), learnMask(words, candidate)
	if a.isWhole() || b.isWhole() {
		return unknown, nil
	}
	for _, h := range hunks(a.of.ids, b.of.ids) {
		if !explains(a, b, h) {
			return differs, &difference{a.of, b.of, a.of.start(h.A0), b.of.start(h.B0)}
		}
	}
	return alike, nil
}

func learnMask(words lexicon, texts [][]byte) *mask {
	first := words.read(texts[0])
	n := len(first.ids)
	m := &mask{of: first, varies: make([]bool, n), goes: make([]bool, n), grows: make([]bool, n+1)}
	for _, text := range texts[1:] {
		if string(text) != string(texts[0]) {
			m.learn(words.read(text))
		}
	}
	return m
}

// Texts are compared token by token: a word, a number with its separators, a run of white space, or one other byte.

// lexicon numbers the tokens of one page's answers, so that they are compared as numbers.
type lexicon map[string]int32

func (l lexicon) number(token []byte) int32 {
	if n, ok := l[string(token)]; ok {
		return n
	}
	n := int32(len(l))
	l[string(token)] = n
	return n
}

// document is a text as tokens: their numbers in the page's lexicon, and where each begins in the text.
type document struct {
	text   []byte
	ids    []int32
	starts []int32
}

// read cuts a text into tokens. It takes any bytes.
func (l lexicon) read(text []byte) *document {
	d := &document{text: text}
	for at := 0; at < len(text); {
		end := tokenEnd(text, at)
		d.ids = append(d.ids, l.number(text[at:end]))
		d.starts = append(d.starts, int32(at))
		at = end
	}
	return d
}

// token returns the bytes of a token; after the last one, none.
func (d *document) token(i int) []byte {
	switch {
	case i < 0 || i >= len(d.ids):
		return nil
	case i == len(d.ids)-1:
		return d.text[d.starts[i]:]
	}
	return d.text[d.starts[i]:d.starts[i+1]]
}

// start returns where a token begins; after the last one, the text's end.
func (d *document) start(i int) int {
	if i >= len(d.starts) {
		return len(d.text)
	}
	return int(d.starts[i])
}

// tokenEnd returns where the token at a place ends. Between digits, separators belong to the number: so 1,105 and
// 20:31:05 and 2026-11-23 are one token each, of which no digit stays while the others move on.
func tokenEnd(text []byte, at int) int {
	first := text[at]
	end := at + 1
	switch {
	case isSpace(first):
		for end < len(text) && isSpace(text[end]) {
			end++
		}
	case isWord(first):
		for end < len(text) {
			c := text[end]
			joins := strings.IndexByte(".,:-/", c) >= 0 && isDigit(text[end-1]) && end+1 < len(text) && isDigit(text[end+1])
			if !isWord(c) && !joins {
				break
			}
			end++
		}
	}
	return end
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// isWord reports whether a byte is part of a word; so are those of all characters beyond ASCII.
func isWord(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= 0x80
}

// hunk is a stretch in which two sequences differ: a[A0:A1] stands where b[B0:B1] does; one of them may be empty.
type hunk struct{ A0, A1, B0, B1 int }

const (
	// exactCells bounds the table of an exact longest common subsequence.
	exactCells = 1 << 18
	// deepest bounds how often a stretch is cut at what it has once.
	deepest = 24
)

// hunks returns where two sequences differ, in order. It cuts both at what each has exactly once, tokens or a few of
// them in a row, in the longest order common to both (patience diff, Bram Cohen), until a stretch is small enough for
// an exact answer. So time and memory stay near to linear for any input; a long stretch without such places counts as
// differing as a whole.
func hunks(a, b []int32) []hunk {
	d := differ{a: a, b: b}
	d.compare(0, len(a), 0, len(b), 0)
	d.equal(len(a), len(b), 0) // the end
	return d.found
}

// differ collects the hunks between the stretches that are equal, which come in order.
type differ struct {
	a, b       []int32
	aEnd, bEnd int // of the last equal stretch
	found      []hunk
}

// occurrence is how often something is in either stretch, and where it was last.
type occurrence struct{ inA, inB, atA, atB int32 }

// equal notes that a[i:i+n] and b[j:j+n] are equal.
func (d *differ) equal(i, j, n int) {
	if i > d.aEnd || j > d.bEnd {
		d.found = append(d.found, hunk{d.aEnd, i, d.bEnd, j})
	}
	d.aEnd, d.bEnd = i+n, j+n
}

func (d *differ) compare(a0, a1, b0, b1, depth int) {
	n := 0
	for a0+n < a1 && b0+n < b1 && d.a[a0+n] == d.b[b0+n] {
		n++
	}
	if n > 0 {
		d.equal(a0, b0, n)
		a0, b0 = a0+n, b0+n
	}
	tail := 0
	for a1 > a0 && b1 > b0 && d.a[a1-1] == d.b[b1-1] {
		a1, b1, tail = a1-1, b1-1, tail+1
	}
	switch {
	case a0 == a1 || b0 == b1:
	case (a1-a0)*(b1-b0) <= exactCells:
		d.exact(a0, a1, b0, b1)
	case depth < deepest:
		d.between(a0, a1, b0, b1, depth+1)
	}
	if tail > 0 {
		d.equal(a1, b1, tail)
	}
}

// grams are how many tokens in a row are looked at to find a stretch that either text has once: first single ones.
var grams = [...]int{1, 4, 16}

// between cuts two stretches at their anchors, and compares what lies between these.
func (d *differ) between(a0, a1, b0, b1, depth int) {
	var anchors [][2]int
	for _, length := range grams {
		if anchors = d.anchors(a0, a1, b0, b1, length); len(anchors) > 0 {
			break
		}
	}
	if len(anchors) == 0 {
		return
	}
	for _, at := range anchors {
		d.compare(a0, at[0], b0, at[1], depth)
		d.equal(at[0], at[1], 1)
		a0, b0 = at[0]+1, at[1]+1
	}
	d.compare(a0, a1, b0, b1, depth)
}

// anchors returns where something begins that both stretches have exactly once, so many tokens in a row, as places in a
// and b, in the longest sequence that rises in both. Without any, nothing of the stretches is matched.
func (d *differ) anchors(a0, a1, b0, b1, length int) [][2]int {
	found := make(map[uint64]occurrence, a1-a0)
	for i := a0; i+length <= a1; i++ {
		key := gram(d.a[i : i+length])
		o := found[key]
		o.inA, o.atA = o.inA+1, int32(i)
		found[key] = o
	}
	for j := b0; j+length <= b1; j++ {
		key := gram(d.b[j : j+length])
		if o, ok := found[key]; ok {
			o.inB, o.atB = o.inB+1, int32(j)
			found[key] = o
		}
	}
	var places [][2]int
	for i := a0; i+length <= a1; i++ {
		o := found[gram(d.a[i:i+length])]
		if o.inA == 1 && o.inB == 1 && d.a[i] == d.b[o.atB] { // two grams may have one number
			places = append(places, [2]int{i, int(o.atB)})
		}
	}
	return rising(places)
}

// gram returns a number for some tokens in a row (FNV-1a, over tokens in place of bytes).
func gram(tokens []int32) uint64 {
	h := uint64(14695981039346656037)
	for _, token := range tokens {
		h = (h ^ uint64(uint32(token))) * 1099511628211
	}
	return h
}

// rising returns the longest subsequence of places, sorted by their first number, that rises in the second.
func rising(places [][2]int) [][2]int {
	var tops []int // by length, the place that ends a sequence lowest
	before := make([]int, len(places))
	for i, place := range places {
		at, _ := slices.BinarySearchFunc(tops, place[1], func(top, value int) int { return places[top][1] - value })
		before[i] = -1
		if at > 0 {
			before[i] = tops[at-1]
		}
		if at == len(tops) {
			tops = append(tops, i)
		} else {
			tops[at] = i
		}
	}
	out := make([][2]int, len(tops))
	for i, at := len(tops)-1, last(tops); i >= 0; i-- {
		out[i], at = places[at], before[at]
	}
	return out
}

func last(of []int) int {
	if len(of) == 0 {
		return -1
	}
	return of[len(of)-1]
}

// exact notes a longest common subsequence of two stretches.
func (d *differ) exact(a0, a1, b0, b1 int) {
	width := b1 - b0 + 1
	longest := make([]uint32, (a1-a0+1)*width) // of what follows both places
	for i := a1 - a0 - 1; i >= 0; i-- {
		for j := b1 - b0 - 1; j >= 0; j-- {
			if d.a[a0+i] == d.b[b0+j] {
				longest[i*width+j] = longest[(i+1)*width+j+1] + 1
			} else {
				longest[i*width+j] = max(longest[(i+1)*width+j], longest[i*width+j+1])
			}
		}
	}
	for i, j := 0, 0; i < a1-a0 && j < b1-b0; {
		switch {
		case d.a[a0+i] == d.b[b0+j]:
			d.equal(a0+i, b0+j, 1)
			i, j = i+1, j+1
		case longest[(i+1)*width+j] >= longest[i*width+j+1]:
			i++
		default:
			j++
		}
	}
}
