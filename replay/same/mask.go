package same

// mask is what varies by itself in a text: which tokens another answer of the same side had otherwise or not at all,
// and where it had more.
type mask struct {
	of     *document
	varies []bool // the token was another one, or none
	goes   []bool // the token was not there at all
	grows  []bool // before this token, or at the end, there was more
}

func newMask(of *document) *mask {
	n := len(of.ids)
	return &mask{of: of, varies: make([]bool, n), goes: make([]bool, n), grows: make([]bool, n+1)}
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
	a, b := learned(words, baseline), learned(words, candidate)
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

func learned(words lexicon, texts [][]byte) *mask {
	m := newMask(words.read(texts[0]))
	for _, text := range texts[1:] {
		if string(text) != string(texts[0]) {
			m.learn(words.read(text))
		}
	}
	return m
}
