package same

// What the answers of two sides come to: the same, different, or not to be judged.

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// Kind says in what two answers differ.
type Kind string

// The kinds of differences.
const (
	Status  Kind = "status"
	Header  Kind = "header"
	Missing Kind = "no answer"
	Text    Kind = "text"
	Image   Kind = "image"
	Bytes   Kind = "bytes" // of what is neither text nor image
)

// verdict is what is known of one page.
type verdict struct {
	outcome outcome
	kind    Kind
	header  string // which one
	where   string // in the body: line 12, byte 345
	why     string // for outcome unknown
	shown   [2]string
	steady  bool // no side's answers differ among themselves, so that asking again teaches little
}

// answerSets are all answers of both sides to one page, in the order in which they were asked for.
type answerSets struct{ baseline, candidate []*Answer }

// judge compares the answers of two sides. What differs among those of one side is not compared.
func (l answerSets) judge(sites [2]*Site) verdict {
	if v, done := l.judgeErrors(); done {
		return v
	}
	if v, done := l.judgeStatus(); done {
		return v
	}
	if v, done := l.judgeHeaders(); done {
		return v
	}
	return l.judgeBodies(sites)
}

func (l answerSets) judgeErrors() (verdict, bool) {
	failed := [2]error{failure(l.baseline), failure(l.candidate)}
	switch {
	case failed[0] == nil && failed[1] == nil:
		return verdict{}, false
	case failed[0] == nil && !slices.ContainsFunc(l.candidate, func(a *Answer) bool { return a.Err == nil }):
		return verdict{
			outcome: differs, kind: Missing,
			shown: [2]string{fmt.Sprintf("a whole answer, status %d", l.baseline[0].Status), failed[1].Error()},
		}, true
	case failed[0] != nil && failed[1] != nil:
		return verdict{outcome: unknown, why: fmt.Sprintf("both sides: %v; %v", failed[0], failed[1])}, true
	case failed[0] != nil:
		return verdict{outcome: unknown, why: fmt.Sprintf("the baseline: %v", failed[0])}, true
	}
	return verdict{outcome: unknown, why: fmt.Sprintf("the candidate, at times: %v", failed[1])}, true
}

// failure returns why one of the answers is not whole; nil if all are.
func failure(answers []*Answer) error {
	for _, a := range answers {
		if a.Err != nil {
			return a.Err
		}
	}
	return nil
}

// isHiccup reports whether an answer failed, or speaks of a server in trouble: nothing is learned of the page from it.
func (l answerSets) isHiccup() bool {
	return slices.ContainsFunc(slices.Concat(l.baseline, l.candidate), func(a *Answer) bool {
		return a.Err != nil || isTrouble(a.Status)
	})
}

// isTrouble reports whether a status speaks of the server's state, and not of the page.
func isTrouble(status int) bool { return status >= 500 || status == 429 }

func (l answerSets) judgeStatus() (verdict, bool) {
	a, b := statuses(l.baseline), statuses(l.candidate)
	switch {
	case len(a) > 1 || len(b) > 1:
		return verdict{outcome: unknown, why: fmt.Sprintf("the status varies by itself: %v and %v", a, b)}, true
	case a[0] != b[0]:
		return verdict{
			outcome: differs, kind: Status, steady: true,
			shown: [2]string{fmt.Sprint(a[0]), fmt.Sprint(b[0])},
		}, true
	case isTrouble(a[0]):
		return verdict{outcome: unknown, why: fmt.Sprintf("both sides answer with status %d", a[0])}, true
	}
	return verdict{}, false
}

func statuses(answers []*Answer) []int {
	var out []int
	for _, a := range answers {
		out = append(out, a.Status)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (l answerSets) judgeHeaders() (verdict, bool) {
	for _, name := range comparedHeaders {
		a, b := values(l.baseline, name), values(l.candidate, name)
		result, _ := compareTexts(a, b)
		gone := always(a) && never(b) || never(a) && always(b)
		if result == differs || result == unknown && gone {
			return verdict{
				outcome: differs, kind: Header, header: name, steady: steady(a) && steady(b),
				shown: [2]string{orNone(a[0]), orNone(b[0])},
			}, true
		}
	}
	return verdict{}, false
}

func values(answers []*Answer, name string) [][]byte {
	var out [][]byte
	for _, a := range answers {
		out = append(out, []byte(a.Headers[name]))
	}
	return out
}

func always(texts [][]byte) bool {
	return !slices.ContainsFunc(texts, func(text []byte) bool { return len(text) == 0 })
}

func never(texts [][]byte) bool {
	return !slices.ContainsFunc(texts, func(text []byte) bool { return len(text) > 0 })
}

func orNone(value []byte) string {
	if len(value) == 0 {
		return "none"
	}
	return excerpt(value, 0)
}

func steady(texts [][]byte) bool {
	for _, text := range texts {
		if !bytes.Equal(text, texts[0]) {
			return false
		}
	}
	return true
}

func (l answerSets) judgeBodies(sites [2]*Site) verdict {
	for _, a := range l.baseline {
		for _, b := range l.candidate {
			if a.SHA256 == b.SHA256 {
				return verdict{outcome: alike}
			}
		}
	}
	every := slices.Concat(l.baseline, l.candidate)
	if !slices.ContainsFunc(every, func(a *Answer) bool { return !a.isText() || !a.isWhole() }) {
		return l.judgeTexts(sites)
	}
	if !oneBody(l.baseline) || !oneBody(l.candidate) {
		return verdict{outcome: unknown, why: "the body varies by itself, and is not text, or is more than 4 MiB of it"}
	}
	a, b := l.baseline[0], l.candidate[0]
	if a.isText() && sites[0].own.links.String() != sites[1].own.links.String() {
		return verdict{outcome: unknown, why: "it is a text of more than 4 MiB, in which links to either side are not found"}
	}
	kind := Bytes
	if strings.HasPrefix(a.MediaType, "image/") {
		kind = Image
	}
	return verdict{outcome: differs, kind: kind, steady: true, where: whereBytes(a, b), shown: [2]string{inBytes(a), inBytes(b)}}
}

// oneBody reports whether all answers have the same body.
func oneBody(answers []*Answer) bool {
	return !slices.ContainsFunc(answers, func(a *Answer) bool { return a.SHA256 != answers[0].SHA256 })
}

// whereBytes says where two bodies differ first.
func whereBytes(a, b *Answer) string {
	n := 0
	for n < min(len(a.Kept), len(b.Kept)) && a.Kept[n] == b.Kept[n] {
		n++
	}
	if n == keptBytes {
		return fmt.Sprintf("after byte %d", n)
	}
	return fmt.Sprintf("byte %d", n+1)
}

func inBytes(a *Answer) string { return fmt.Sprintf("%d bytes, SHA-256 %x…", a.Bytes, a.SHA256[:6]) }

func (l answerSets) judgeTexts(sites [2]*Site) verdict {
	a, b := sites[0].texts(l.baseline), sites[1].texts(l.candidate)
	result, found := compareTexts(a, b)
	switch result {
	case alike:
		return verdict{outcome: alike}
	case unknown:
		return verdict{outcome: unknown, why: "over half of its words vary by themselves"}
	}
	return verdict{
		outcome: differs, kind: Text, steady: steady(a) && steady(b),
		where: fmt.Sprintf("line %d", 1+bytes.Count(found.a.text[:found.atA], []byte("\n"))),
		shown: [2]string{excerpt(found.a.text, found.atA), excerpt(found.b.text, found.atB)},
	}
}

// texts returns bodies as they are compared.
func (s *Site) texts(answers []*Answer) [][]byte {
	var out [][]byte
	for _, a := range answers {
		text := s.own.normalise(a.Kept)
		for _, ignored := range s.how.Ignore {
			text = ignored.ReplaceAll(text, nil)
		}
		out = append(out, text)
	}
	return out
}

// An excerpt shows so many bytes before a place in a text, and after it.
const (
	shownBefore = 24
	shownAfter  = 72
)

// excerpt returns a part of a text on one line.
func excerpt(text []byte, at int) string {
	from, to := max(0, at-shownBefore), min(len(text), at+shownAfter)
	for from > 0 && from < at && text[from]&0xc0 == 0x80 { // within a character
		from++
	}
	for to < len(text) && to > at && text[to]&0xc0 == 0x80 {
		to--
	}
	shown := string(bytes.Join(bytes.Fields(text[from:to]), []byte(" ")))
	if from > 0 {
		shown = "…" + shown
	}
	switch {
	case to < len(text):
		shown += "…"
	case at >= len(text):
		shown += "(its end)"
	}
	return shown
}
