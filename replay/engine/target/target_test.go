package target

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestCertificatesAreChecked(t *testing.T) {
	site := httptest.NewTLSServer(http.NotFoundHandler())
	defer site.Close()
	strict, err := New(context.Background(), site.URL, "", false)
	if err != nil {
		t.Fatal(err)
	}
	if err := strict.Check(context.Background(), time.Second); err == nil || !strings.Contains(err.Error(), "--insecure") {
		t.Errorf("a certificate that nobody signed: %v", err)
	}
	lax, err := New(context.Background(), site.URL, "", true)
	if err != nil {
		t.Fatal(err)
	}
	if err := lax.Check(context.Background(), time.Second); err != nil {
		t.Errorf("--insecure: %v", err)
	}
}

func TestNewSaysWhatIsWrong(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := free.Addr().String()
	_ = free.Close()
	rows := []struct{ why, base, connect, want string }{
		{"no scheme", "site.example", "", "not a base URL"},
		{"another scheme", "ftp://site.example", "", "not a base URL"},
		{"a path", "http://site.example/blog", "", "has a path"},
		{"credentials", "http://me:secret@site.example", "", "user name"},
		{"a bad address to connect to", "http://site.example", "10.0.0.1", "--connect-to"},
		{"a name that is none", "http://no-such-host.invalid", "", "does not resolve"},
		{"nobody listens", "http://" + closed, "", "refuses connections"},
		{"nobody listens where to connect to", "http://site.example", closed, "refuses connections"},
		{"TLS to a server without", strings.Replace(plain.URL, "http:", "https:", 1), "", "does not speak TLS"},
	}
	for _, row := range rows {
		target, err := New(context.Background(), row.base, row.connect, false)
		if err == nil {
			err = target.Check(context.Background(), time.Second)
		}
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", row.why, err, row.want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error shows the password", row.why)
		}
	}
}

func TestSources(t *testing.T) {
	rows := []struct {
		why    string
		texts  []string
		client uint32
		want   string
	}{
		{"none", nil, 7, "invalid IP"},
		{"one address is everybody's", []string{"10.0.0.5"}, 7, "10.0.0.5"},
		{"two addresses take turns", []string{"10.0.0.5", "10.0.0.6"}, 7, "10.0.0.6"},
		{"a prefix without the network's own addresses", []string{"10.0.0.0/30"}, 0, "10.0.0.1"},
		{"its last", []string{"10.0.0.0/30"}, 1, "10.0.0.2"},
		{"and round again", []string{"10.0.0.0/30"}, 2, "10.0.0.1"},
		{"a prefix written with an address in it", []string{"10.0.0.7/30"}, 0, "10.0.0.5"},
		{"a carry", []string{"127.0.0.0/16"}, 255, "127.0.1.0"},
		{"a pair has no network's own", []string{"10.0.0.4/31"}, 1, "10.0.0.5"},
		{"of a wide prefix, the first 65,534", []string{"10.0.0.0/8"}, 65534, "10.0.0.1"},
		{"IPv6", []string{"fd00::/64"}, 1, "fd00::2"},
	}
	for _, row := range rows {
		s, err := ParseSources(row.texts)
		if got := s.Of(row.client).String(); err != nil || got != row.want {
			t.Errorf("%s: %s, %v; want %s", row.why, got, err, row.want)
		}
	}
	if _, err := ParseSources([]string{"10.0.0.300", "10.0.0.1", "x/9"}); err == nil {
		t.Error("two of three are wrong, and nobody says so")
	}
}
