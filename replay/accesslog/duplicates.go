package accesslog

import (
	"bytes"
	"io"
	"slices"
)

// How much of two files is compared at most. Those that are the same for so long are of the same requests.
const (
	comparedHead  = 4 << 10
	comparedBytes = 64 << 20
)

// beginning is how a file begins.
type beginning struct {
	file int
	text []byte
}

// Duplicates returns two files of which one begins with all that is in the other, packed or not, as a log and the copy
// of it that a rotation makes: where both are replayed, the load is doubled. What cannot be read is not a duplicate, but
// may be one up to there: a copy that is still being packed is cut off. Pipes are left out.
func (s *Source) Duplicates() (a, b int, found bool) {
	var all []beginning
	for i := range s.files {
		if text := s.beginning(i); hasRequest(text) {
			all = append(all, beginning{i, text})
		}
	}
	// Those that begin alike stand together, the shorter first.
	slices.SortStableFunc(all, func(a, b beginning) int { return bytes.Compare(a.text, b.text) })
	for i, one := range all {
		for _, other := range all[i+1:] {
			if !bytes.HasPrefix(other.text, one.text) {
				break
			}
			if len(one.text) < comparedHead || s.begin(one.file, other.file) {
				return min(one.file, other.file), max(one.file, other.file), true
			}
		}
	}
	return 0, 0, false
}

// beginning returns the head of a file's text, all of it where that is short; nil for a pipe.
func (s *Source) beginning(i int) []byte {
	if s.files[i].pipe != nil || len(s.files) == 1 {
		return nil
	}
	opened, err := s.open(i, false)
	if err != nil {
		return nil
	}
	defer opened.Close()
	text, _ := opened.buffer.Peek(comparedHead)
	return bytes.Clone(text)
}

// hasRequest reports whether there is more than comments, of which the logs of a server may all have the same.
func hasRequest(text []byte) bool {
	for line := range bytes.Lines(text) {
		if !Ignored(bytes.TrimRight(line, "\r\n")) {
			return true
		}
	}
	return false
}

// begin reports whether two files are the same until one of them ends.
func (s *Source) begin(a, b int) bool {
	one, err := s.open(a, false)
	if err != nil {
		return false
	}
	defer one.Close()
	other, err := s.open(b, false)
	if err != nil {
		return false
	}
	defer other.Close()
	left, right := make([]byte, minChunkBytes), make([]byte, minChunkBytes)
	for range comparedBytes / minChunkBytes {
		n, _ := io.ReadFull(one.buffer, left)
		m, _ := io.ReadFull(other.buffer, right)
		shorter := min(n, m)
		if !bytes.Equal(left[:shorter], right[:shorter]) {
			return false
		}
		if shorter < minChunkBytes {
			return true
		}
	}
	return true
}
