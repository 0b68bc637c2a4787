//go:build !linux

package engine

// byEpoll returns false: only Linux has epoll, and elsewhere the pool does the work.
func (f *flood) byEpoll(int) bool { return false }
