//go:build !linux

package punctual

// Thread does nothing here.
func Thread() (restore func()) { return func() {} }
