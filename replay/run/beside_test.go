package run

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll/replay/record"
)

// TestTheServerBesideIsFoundByItsSocket has a /proc of a host and a container, whose servers listen on one port.
func TestTheServerBesideIsFoundByItsSocket(t *testing.T) {
	root := t.TempDir()
	write := func(path, text string) {
		path = filepath.Join(root, "proc", path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := func(path, to string) {
		write(path+".", "")
		if err := os.Symlink(to, filepath.Join(root, "proc", path)); err != nil {
			t.Fatal(err)
		}
	}
	const head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
	line := func(address, state, inode string) string {
		return "   0: " + address + " 00000000:0000 " + state + " 00000000:00000000 00:00000000 00000000     0        0 " + inode + " 1\n"
	}
	for pid, network := range map[string]string{"10": "net:[1]", "11": "net:[1]", "20": "net:[2]"} {
		link(pid+"/ns/net", network)
		link(pid+"/fd/3", map[string]string{"10": "socket:[100]", "11": "/dev/null", "20": "socket:[200]"}[pid])
		write(pid+"/task/"+pid+"/schedstat", "5000000 "+map[string]string{"10": "0", "11": "1000000", "20": "0"}[pid]+" 7\n")
	}
	for _, pid := range []string{"10", "11"} {
		write(pid+"/net/fib_trie", "           |-- 127.0.0.1\n")
		write(pid+"/net/tcp", head+line("0100007F:1F90", "0A", "100")+line("0100007F:1F90", "01", "101"))
	}
	write("20/net/fib_trie", "           |-- 172.17.0.2\n")
	write("20/net/tcp", head)
	write("20/net/tcp6", head+line(strings.Repeat("0", 32)+":1F90", "0A", "200"))
	write("10/task/10/children", "11 ")
	write("stat", "cpu  100 0 0 300 0 0 0 0 50 0\ncpu0 0\n")
	for address, want := range map[string][]int{
		"127.0.0.1:8080": {10, 11}, "172.17.0.2:8080": {20}, "172.17.0.3:8080": nil, "127.0.0.1:81": nil,
	} {
		if n := findServerBeside(root, address); !slices.Equal(n.pids, want) {
			t.Errorf("%s: processes %v, want %v", address, n.pids, want)
		}
	}
	n := findServerBeside(root, "127.0.0.1:8080")
	n.since = time.Now().Add(-10 * time.Second)
	write("11/task/11/schedstat", "5000000 2001000000 9\n")
	write("stat", "cpu  175 0 0 325 0 0 0 0 50 0\ncpu0 0\n")
	var s record.Sender
	if n.tell(&s); s.ServerWaitMSPerS == nil || *s.ServerWaitMSPerS <= 0 || *s.ServerWaitMSPerS > 200 {
		t.Errorf("waited %v ms of each second, want up to 200, since 10 s and a little went by", s.ServerWaitMSPerS)
	}
	if s.CoresBusy == nil || *s.CoresBusy != 0.75 {
		t.Errorf("busy %v, want 0.75", s.CoresBusy)
	}
	s = record.Sender{}
	if findServerBeside(root, "172.17.0.3:8080").tell(&s); s.ServerWaitMSPerS != nil {
		t.Errorf("a server that is not seen waited %v", *s.ServerWaitMSPerS)
	}
}

func TestTheServerBesideIsFoundOnThisMachine(t *testing.T) {
	if _, err := os.Stat("/proc/self/net/tcp"); err != nil {
		t.Skip("no /proc here")
	}
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			continue
		}
		defer listener.Close()
		at := netip.MustParseAddrPort(listener.Addr().String())
		if pids := holders("", listeners("", at)); !slices.Contains(pids, os.Getpid()) {
			t.Errorf("%s is held by %v, want %d", at, pids, os.Getpid())
		}
	}
}
