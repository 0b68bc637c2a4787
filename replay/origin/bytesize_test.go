package origin

import "testing"

func TestByteSizes(t *testing.T) {
	for _, c := range []struct {
		text string
		want ByteSize // −1 for an error
	}{
		{"0", 0}, {"1048576", 1 << 20}, {"512MiB", 512 << 20}, {"10G", 10 << 30}, {"1.5 g", -1}, {"1.5g", 3 << 29}, {"4kb", 4096},
		{"7B", 7}, {"2T", 2 << 40}, {"", -1}, {"G", -1}, {"-1", -1}, {"1X", -1}, {"NaN", -1}, {"1e30", -1}, {"GG", -1}, {"1IB", 1},
	} {
		var got ByteSize
		err := got.UnmarshalText([]byte(c.text))
		if (err != nil) != (c.want < 0) || err == nil && got != c.want {
			t.Errorf("%q is %d, %v, want %d", c.text, got, err, c.want)
		}
	}
}
