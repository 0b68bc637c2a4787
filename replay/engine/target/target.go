// Package target is the one server that requests are sent to: its address, and how a connection to it is opened.
package target

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ErrTarget says that the target cannot be used as it was given, or cannot be reached. Its text has the remedy.
var ErrTarget = errors.New("target")

// Target is the one server that requests are sent to. Nothing in a log leads anywhere else.
type Target struct {
	URL       string   // as given, without path
	Host      string   // for the Host header: name, and port where it is not the scheme's
	ConnectTo string   // host:port that was given to connect to instead, or ""
	Addresses []string // host:port with resolved addresses, in the resolver's order; the first that answers is used
	TLS       bool
	Insecure  bool // accept any certificate
	Resume    bool // clients resume their TLS sessions
	Local     bool // on this machine, as Check saw
	Sources   Sources
}

// Validate says what is wrong with a base URL and, where the connection is to go elsewhere than the URL's host, with that
// host:port. It asks no resolver.
func Validate(base, connectTo string) error {
	_, _, _, err := read(base, connectTo)
	return err
}

// New reads a base URL as Validate does. It resolves the name once: a replay measures the server, not the resolver.
func New(ctx context.Context, base, connectTo string, insecure bool) (*Target, error) {
	t, host, port, err := read(base, connectTo)
	if err != nil {
		return nil, err
	}
	t.Insecure = insecure
	t.Addresses, err = resolve(ctx, host, port)
	return t, err
}

// read returns the target, and the host and the port to connect to.
func read(base, connectTo string) (t *Target, host, port string, err error) {
	u, err := url.Parse(base)
	if err != nil || u.Hostname() == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, "", "", fmt.Errorf("%w %q is not a base URL: write http://HOST[:PORT] or https://HOST[:PORT]",
			ErrTarget, redactUser(base))
	}
	if u.User != nil {
		return nil, "", "", fmt.Errorf("%w %s has a user name: put credentials into a file of headers (--header-file)",
			ErrTarget, u.Redacted())
	}
	if (u.Path != "" && u.Path != "/") || u.RawQuery != "" {
		return nil, "", "", fmt.Errorf("%w %s has a path: give only the scheme and the host, since the paths come from the log",
			ErrTarget, u.Redacted())
	}
	t = &Target{URL: u.Scheme + "://" + u.Host, Host: u.Host, ConnectTo: connectTo, TLS: u.Scheme == "https"}
	host, port = u.Hostname(), u.Port()
	if port == "" {
		port = map[bool]string{false: "80", true: "443"}[t.TLS]
	}
	if connectTo != "" {
		if host, port, err = net.SplitHostPort(connectTo); err != nil || host == "" || port == "" {
			return nil, "", "", fmt.Errorf("%w: --connect-to %q is not HOST:PORT", ErrTarget, connectTo)
		}
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return nil, "", "", fmt.Errorf("%w: %q is not a port: give a number from 1 to 65535", ErrTarget, port)
	}
	return t, host, port, nil
}

func redactUser(base string) string {
	if i := strings.LastIndexByte(base, '@'); i >= 0 {
		return "…" + base[i:]
	}
	return base
}

func resolve(ctx context.Context, host, port string) ([]string, error) {
	if address, err := netip.ParseAddr(host); err == nil {
		return []string{net.JoinHostPort(address.String(), port)}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, fmt.Errorf("%w: the name %s does not resolve (%w): correct it, or give an address with --connect-to HOST:PORT",
			ErrTarget, host, err)
	}
	var out []string
	for _, address := range addresses {
		out = append(out, net.JoinHostPort(address.Unmap().String(), port))
	}
	return out, nil
}

// Check opens one connection to each address, in order, keeps the first that answers (with TLS where the target has
// it), and closes it. It leaves the target with that address alone.
func (t *Target) Check(ctx context.Context, timeout time.Duration) error {
	var failures []string
	for _, address := range t.Addresses {
		conn, _, _, err := t.dial(ctx, address, Dialing{ServerName: ServerName(t.Host), Timeout: timeout})
		if err == nil {
			t.Local = isLocal(conn.LocalAddr(), conn.RemoteAddr())
			_ = conn.Close()
			t.Addresses = []string{address}
			return nil
		}
		failures = append(failures, t.explain(address, err))
	}
	return fmt.Errorf("%w: %s", ErrTarget, strings.Join(failures, "; "))
}

// explain returns one sentence: why no connection came about, and the remedy.
func (t *Target) explain(address string, err error) string {
	var unknown *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &unknown):
		return fmt.Sprintf("the certificate of %s is not accepted (%v): use the name in the certificate with --connect-to, or accept any certificate with --insecure",
			address, unknown.Err)
	case errors.As(err, &record):
		return fmt.Sprintf("%s does not speak TLS: use http:// in --target", address)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Sprintf("%s refuses connections: is the server running, and on this port?", address)
	case IsTimeout(err):
		return fmt.Sprintf("%s does not answer: is it the right address, and does a firewall let it through?", address)
	}
	return fmt.Sprintf("cannot connect to %s (%v): check the address, or use --connect-to", address, err)
}

// Dialing says how a connection is opened.
type Dialing struct {
	ServerName string
	HTTP2      bool // offer it, by ALPN
	Timeout    time.Duration
	Client     uint32                 // whose it is
	Sessions   tls.ClientSessionCache // of the client; nil: it is a stranger to the server each time
}

// Dial opens one connection and returns the nanoseconds that TCP and TLS took.
func (t *Target) Dial(ctx context.Context, how Dialing) (conn net.Conn, connectNS, tlsNS int64, err error) {
	return t.dial(ctx, t.Addresses[0], how)
}

// Scheme returns that of its URL.
func (t *Target) Scheme() string {
	if t.TLS {
		return "https"
	}
	return "http"
}

// Transport returns a transport whose connections lead to the target alone, whatever a request is addressed to.
func (t *Target) Transport(host string, timeout time.Duration) *http.Transport {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, _, _, err := t.Dial(ctx, Dialing{ServerName: ServerName(host), Timeout: timeout})
		return conn, err
	}
	return &http.Transport{DialContext: dial, DialTLSContext: dial}
}

func (t *Target) dial(ctx context.Context, address string, how Dialing) (
	conn net.Conn, connectNS, tlsNS int64, err error,
) {
	start := time.Now()
	deadline := start.Add(how.Timeout)
	dialer := net.Dialer{Deadline: deadline, KeepAlive: -1}
	if from := t.Sources.Of(how.Client); from.IsValid() {
		dialer.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))
		dialer.Control = portLater
	}
	if conn, err = dialer.DialContext(ctx, "tcp", address); err != nil {
		return nil, int64(time.Since(start)), 0, err
	}
	connected := time.Now()
	connectNS = int64(connected.Sub(start))
	if !t.TLS {
		return conn, connectNS, 0, nil
	}
	protocols := []string{"http/1.1"}
	if how.HTTP2 {
		protocols = []string{"h2", "http/1.1"}
	}
	// #nosec G402 -- InsecureSkipVerify is what --insecure asks for.
	secure := tls.Client(conn, &tls.Config{
		ServerName: how.ServerName, InsecureSkipVerify: t.Insecure, NextProtos: protocols,
		ClientSessionCache: how.Sessions,
	})
	_ = conn.SetDeadline(deadline)
	if err = secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, connectNS, int64(time.Since(connected)), HandshakeError{err}
	}
	_ = conn.SetDeadline(time.Time{})
	return secure, connectNS, int64(time.Since(connected)), nil
}

// portLater has the port of a bound socket chosen when it connects, so that addresses can share ports. Only Linux can.
func portLater(_, _ string, conn syscall.RawConn) error {
	const bindAddressNoPort = 24 // IP_BIND_ADDRESS_NO_PORT, linux/in.h
	if runtime.GOOS != "linux" {
		return nil
	}
	return conn.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_IP, bindAddressNoPort, 1)
	})
}

// HandshakeError marks an error of the TLS handshake.
type HandshakeError struct{ Err error }

func (e HandshakeError) Error() string { return e.Err.Error() }

func (e HandshakeError) Unwrap() error { return e.Err }

// IsTimeout reports whether an error of the network is a time-out.
func IsTimeout(err error) bool {
	var network net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || (errors.As(err, &network) && network.Timeout())
}

// ServerName returns a Host header without its port, as SNI and certificates have it.
func ServerName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.Trim(host, "[]")
}

// IsLoopback reports whether a host, with its port or without, can be reached from this machine only.
func IsLoopback(host string) bool {
	name := ServerName(host)
	ip, err := netip.ParseAddr(name)
	return name == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// Sources are the addresses of this machine from which connections are opened. One address has no more than the ports
// of net.ipv4.ip_local_port_range to a server: 28,232 by default.
type Sources struct {
	prefixes []netip.Prefix
	total    uint32 // addresses in all prefixes together
}

// ParseSources reads addresses and prefixes. The error names all that are wrong.
func ParseSources(texts []string) (Sources, error) {
	var s Sources
	var wrong []error
	for _, text := range texts {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			var address netip.Addr
			if address, err = netip.ParseAddr(strings.Trim(text, "[]")); err == nil {
				prefix = netip.PrefixFrom(address, address.BitLen())
			}
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("--source-address %q is neither an address nor a prefix: write 10.0.0.5, or 10.0.0.0/28", text))
			continue
		}
		s.prefixes = append(s.prefixes, prefix)
		s.total += usedAddresses(prefix)
	}
	return s, errors.Join(wrong...)
}

// Len returns how many addresses there are; 0: the system chooses one.
func (s Sources) Len() int { return int(s.total) }

// usedAddresses returns how many addresses of a prefix are used: all but the first and the last where there are more than
// two, which are the network's own.
func usedAddresses(p netip.Prefix) uint32 {
	bits := hostBits(p)
	if bits < 2 {
		return 1 << bits
	}
	return 1<<bits - 2
}

// hostBits returns by how many bits the addresses of a prefix differ, 16 at most.
func hostBits(p netip.Prefix) int { return min(p.Addr().BitLen()-p.Bits(), 16) }

// Of returns the address of a client: the same at each connection. It is not valid where none was given.
func (s Sources) Of(client uint32) netip.Addr {
	if s.total == 0 {
		return netip.Addr{}
	}
	n := client % s.total
	for _, p := range s.prefixes {
		if here := usedAddresses(p); n >= here {
			n -= here
			continue
		}
		if hostBits(p) >= 2 {
			n++
		}
		return addressAfter(p.Masked().Addr(), n)
	}
	return netip.Addr{}
}

// addressAfter returns the n-th address after one, n < 65,536.
func addressAfter(a netip.Addr, n uint32) netip.Addr {
	b := a.AsSlice()
	for i := len(b) - 1; i >= 0 && n > 0; i-- {
		n += uint32(b[i])
		b[i] = byte(n)
		n >>= 8
	}
	sum, _ := netip.AddrFromSlice(b)
	return sum
}
