package target

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
)

func TestIsLocal(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if !isLocal(conn.LocalAddr(), conn.RemoteAddr()) {
		t.Error("loopback is not on this machine")
	}
	own, far := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}, &net.TCPAddr{IP: net.IPv4(198, 51, 100, 1)}
	if !isLocal(own, own) {
		t.Error("an address of its own is not on this machine")
	}
	if isLocal(own, far) || isLocal(own, &net.UnixAddr{}) {
		t.Error("another network is on this machine")
	}
}

// TestGuestsAreOnThisMachine has the files of /sys and /proc as Linux 6.1 shows them.
func TestGuestsAreOnThisMachine(t *testing.T) {
	card := map[string]string{"iflink": "2", "ifindex": "2", "uevent": "INTERFACE=eno1", "device": "x"}
	pair := map[string]string{"iflink": "8", "ifindex": "9", "uevent": "INTERFACE=veth1"}
	tap := map[string]string{"iflink": "7", "ifindex": "7", "uevent": "INTERFACE=tap1", "tun_flags": "0x5002"}
	vpn := map[string]string{"iflink": "6", "ifindex": "6", "uevent": "INTERFACE=tun0", "tun_flags": "0x1001"}
	lan := map[string]string{"iflink": "2", "ifindex": "5", "uevent": "DEVTYPE=vlan"}
	bridge := func(ports ...string) map[string]string {
		files := map[string]string{"uevent": "DEVTYPE=bridge", "iflink": "3", "ifindex": "3"}
		for i, port := range ports {
			files["brif/"+port+"/port_no"] = []string{"0x1", "0x2"}[i]
		}
		return files
	}
	seen := func(hardware string, port byte) string {
		address, _ := net.ParseMAC(hardware)
		return string(append(append([]byte{}, address...), port, 0, 0, 0, 0, 0, 0, 0, 0, 0))
	}
	with := func(files map[string]string, table string) map[string]string {
		files["brforward"] = table
		return files
	}
	rows := []struct {
		why        string
		interfaces map[string]map[string]string
		want       bool
	}{
		{"a network card", map[string]map[string]string{"if0": card}, false},
		{"a VLAN of a card", map[string]map[string]string{"if0": lan}, false},
		{"a VPN", map[string]map[string]string{"if0": vpn}, false},
		{"one end of a pair", map[string]map[string]string{"if0": pair}, true},
		{"a guest's tap", map[string]map[string]string{"if0": tap}, true},
		{"a bridge of containers", map[string]map[string]string{"if0": bridge("veth1"), "veth1": pair}, true},
		{"a guest on a bridge with a card", map[string]map[string]string{
			"if0": with(bridge("eno1", "tap1"), seen("52:54:00:00:00:01", 1)+seen("52:54:00:00:00:02", 2)), "eno1": card, "tap1": tap,
		}, true},
		{"another machine behind the card of a bridge", map[string]map[string]string{
			"if0": with(bridge("eno1", "tap1"), seen("52:54:00:00:00:02", 1)), "eno1": card, "tap1": tap,
		}, false},
	}
	for _, row := range rows {
		root := t.TempDir()
		write := func(path, text string) {
			path = filepath.Join(root, path)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write("proc/net/arp", "IP address       HW type     Flags       HW address            Mask     Device\n"+
			"192.0.2.7        0x1         0x2         52:54:00:00:00:02     *        if0\n")
		for name, files := range row.interfaces {
			for file, text := range files {
				write(filepath.Join("sys/class/net", name, file), text)
			}
		}
		if got := leadsToGuests(root, "if0", netip.MustParseAddr("192.0.2.7")); got != row.want {
			t.Errorf("%s: on this machine: %v", row.why, got)
		}
	}
}

func TestIsLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"127.0.0.1:80": true, "127.9.9.9:80": true, "[::1]:443": true, "[::ffff:127.0.0.1]:80": true, "::1": true, "localhost": true,
		"10.0.0.5:80": false, "[2001:db8::1]:80": false, "0.0.0.0:80": false, "site.example": false, "": false,
	} {
		if IsLoopback(host) != want {
			t.Errorf("%q: %v", host, !want)
		}
	}
}
