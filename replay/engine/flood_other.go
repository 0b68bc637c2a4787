//go:build !linux

package engine

// byEpoll is for Linux; elsewhere the pool does the work.
func (f *flood) byEpoll(int) bool { return false }
