package accesslog

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"path/filepath"
	"strings"
	"testing"
)

// twoLines is what xz and zstdFrame pack.
func twoLines() string { return lineAt(1, "/a") + lineAt(2, "/b") }

// xzDictionary is what `xz -c` makes of twoLines, with a dictionary of another size in its header: in code 28 it is
// 64 MiB, in code 30 128 MiB, in code 40 4 GiB (xz file format, 5.3.1).
func xzDictionary(t *testing.T, code byte) []byte {
	t.Helper()
	packed, err := base64.StdEncoding.DecodeString("/Td6WFoAAATm1rRGAgAhARYAAAB0L+Wj4ACHAEddABiOQoh0t0nuvx7vvOHAwgYvzyMEFpkHyUqfozAe" +
		"ljEy98e46CxLGQiN9P0BEcpQ7ipWtvuuYhmYS0vOsv9xq2UhNOXmoTYwAACYF7pgkz+LhwABY4gBAAAAHzUfdLHEZ/sCAAAAAARZWg==")
	if err != nil {
		t.Fatal(err)
	}
	const header, dictionary, sum = 12, 16, 20
	packed[dictionary] = code
	binary.LittleEndian.PutUint32(packed[sum:], crc32.ChecksumIEEE(packed[header:sum]))
	return packed
}

// zstdWindow is twoLines as a zstd frame with a window of 2^log bytes (RFC 8878, 3.1.1.1.2).
func zstdWindow(log byte) []byte {
	text := twoLines()
	const lastRawBlock = 1
	block := uint32(len(text))<<3 | lastRawBlock
	frame := []byte{0x28, 0xb5, 0x2f, 0xfd, 0, (log - 10) << 3, byte(block), byte(block >> 8), byte(block >> 16)}
	return append(frame, text...)
}

func TestADictionaryHasBounds(t *testing.T) {
	xzRemedy, zstdRemedy := "use xz -dc LOG.xz | replay run -", "use zstd -dc --long=31 LOG.zst | replay run -"
	for _, c := range []struct {
		why    string
		packed []byte
		says   string // "" where it is read
	}{
		{"xz -9 is read", xzDictionary(t, 28), ""},
		{"xz with 128 MiB is read", xzDictionary(t, 30), ""},
		{"xz with 192 MiB is not", xzDictionary(t, 31), xzRemedy},
		{"a few bytes of xz ask for 4 GiB", xzDictionary(t, 40), xzRemedy},
		{"so do those after a harmless beginning", append(xzDictionary(t, 22), xzDictionary(t, 40)...), xzRemedy},
		{"zstd --ultra -22 is read", zstdWindow(27), ""},
		{"zstd --long=31 is not", zstdWindow(31), zstdRemedy},
	} {
		path := writeFile(t, filepath.Join(t.TempDir(), "log"), c.packed)
		err := count(t, path)
		if c.says == "" {
			if err != nil {
				t.Errorf("%s: %v", c.why, err)
			}
			continue
		}
		if !errors.Is(err, ErrDictionary) || !strings.Contains(err.Error(), c.says) || !strings.HasPrefix(err.Error(), path) {
			t.Errorf("%s: %v", c.why, err)
		}
	}
}

func TestATruncatedXzIsAnError(t *testing.T) {
	whole := xzDictionary(t, 22)
	for _, n := range []int{8, 14, len(whole) / 2, len(whole) - 1} {
		if err := count(t, writeFile(t, filepath.Join(t.TempDir(), "log"), whole[:n])); !errors.Is(err, ErrTruncated) {
			t.Errorf("%d of %d bytes: %v", n, len(whole), err)
		}
	}
}

// count opens and reads a log, and returns the first error of both.
func count(t *testing.T, path string) error {
	t.Helper()
	s, err := Open([]string{path}, bytes.NewReader(nil))
	if err != nil {
		return err
	}
	_, err = s.Count(context.Background(), mustCompile(t, Spec{Log: "COMMON"}), ReadOptions{})
	return err
}
