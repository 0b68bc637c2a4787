package record

import (
	"math/big"
	"math/bits"
)

// wide is an unsigned 128-bit sum. Squares of microseconds outgrow 64 bits within one long request.
type wide struct{ hi, lo uint64 }

func (w *wide) add(v uint64) {
	var carry uint64
	w.lo, carry = bits.Add64(w.lo, v, 0)
	w.hi += carry
}

func (w *wide) addSquare(v uint64) {
	hi, lo := bits.Mul64(v, v)
	var carry uint64
	w.lo, carry = bits.Add64(w.lo, lo, 0)
	w.hi, _ = bits.Add64(w.hi, hi, carry)
}

func (w wide) big() *big.Int {
	b := new(big.Int).SetUint64(w.hi)
	return b.Lsh(b, 64).Or(b, new(big.Int).SetUint64(w.lo))
}

// moments are the exact sums behind a mean and a population standard deviation.
type moments struct {
	n              uint64
	sum, sumSquare wide
}

func (m *moments) add(v uint64) {
	m.n++
	m.sum.add(v)
	m.sumSquare.addSquare(v)
}

func (m *moments) merge(o *moments) {
	m.n += o.n
	m.sum = m.sum.plus(o.sum)
	m.sumSquare = m.sumSquare.plus(o.sumSquare)
}

func (w wide) plus(o wide) wide {
	lo, carry := bits.Add64(w.lo, o.lo, 0)
	hi, _ := bits.Add64(w.hi, o.hi, carry)
	return wide{hi: hi, lo: lo}
}

// mean returns Σx / n; n must not be 0.
func (m *moments) mean() float64 {
	mean, _ := new(big.Rat).SetFrac(m.sum.big(), new(big.Int).SetUint64(m.n)).Float64()
	return mean
}

// stddev returns the population's, √(n·Σx² − (Σx)²) / n, without cancellation since the sums are whole numbers.
func (m *moments) stddev() float64 {
	n := new(big.Int).SetUint64(m.n)
	sum := m.sum.big()
	v := new(big.Int).Mul(n, m.sumSquare.big())
	v.Sub(v, new(big.Int).Mul(sum, sum))
	root := new(big.Float).SetPrec(128).SetInt(v)
	root.Sqrt(root)
	root.Quo(root, new(big.Float).SetInt(n))
	f, _ := root.Float64()
	return f
}
