package origin

import (
	"fmt"
	"strconv"
	"strings"
)

// ByteSize is a flag's number of bytes: 1048576, 512MiB, 10G.
type ByteSize int64

// Units of 1,024: K, KB and KiB are the same, as for most programs that copy files.
var byteUnits = map[string]int64{"": 1, "B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}

// UnmarshalText reads the flag's value.
func (b *ByteSize) UnmarshalText(text []byte) error {
	s := strings.ToUpper(string(text))
	digits := strings.TrimRight(s, "KMGTIB")
	unit := strings.TrimSuffix(strings.TrimSuffix(s[len(digits):], "B"), "I")
	n, err := strconv.ParseFloat(digits, 64)
	scale, ok := byteUnits[unit]
	if err != nil || !ok || !(n >= 0 && n*float64(scale) < 1<<62) {
		return fmt.Errorf("%q is no size: write a number of bytes, or one with K, M, G or T, such as 10G", text)
	}
	*b = ByteSize(n * float64(scale))
	return nil
}
