package same

import "slices"

// hunk is a stretch in which two sequences differ: a[A0:A1] stands where b[B0:B1] does; one of them may be empty.
type hunk struct{ A0, A1, B0, B1 int }

const (
	// exactCells bounds the table of an exact longest common subsequence.
	exactCells = 1 << 18
	// deepest bounds how often a stretch is cut at what it has once.
	deepest = 24
)

// hunks returns where two sequences differ, in order. It cuts both at what each has exactly once, tokens or a few of them
// in a row, in the longest order common to both (patience diff, Bram Cohen), until a stretch is small enough for an exact answer. So time
// and memory stay near to linear for any input; a long stretch without such places counts as differing as a whole.
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
