//go:build !linux

package punctual

// Thread does nothing here.
func Thread(bool) (niceness int, restore func()) { return 0, func() {} }
