package same

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
			joins := isSeparator(c) && isDigit(text[end-1]) && end+1 < len(text) && isDigit(text[end+1])
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

func isSeparator(c byte) bool { return c == '.' || c == ',' || c == ':' || c == '-' || c == '/' }
