package record

import (
	"slices"
	"testing"
)

func TestRedactArgs(t *testing.T) {
	for _, c := range []struct {
		why       string
		arg, want string
	}{
		{"a plain flag stays", "--speed", "--speed"},
		{"a file name stays", "logs/access.log.2.gz", "logs/access.log.2.gz"},
		{"an authorization header", "Authorization: Basic c2VjcmV0", "Authorization: REDACTED"},
		{"in whatever case", "authorization:Bearer abc", "authorization: REDACTED"},
		{"as one argument with its flag", "--header=Cookie: wordpress_logged_in=x", "--header=Cookie: REDACTED"},
		{"and with the short flag", "-HCookie: a=b", "-HCookie: REDACTED"},
		{"a proxy's password", "Proxy-Authorization: Basic eA==", "Proxy-Authorization: REDACTED"},
		{"a key of an API", "X-Api-Key: 123", "X-Api-Key: REDACTED"},
		{"a nonce of WordPress", "X-WP-Nonce: 123", "X-WP-Nonce: REDACTED"},
		{"any header that is called a token", "X-My-Token: 123", "X-My-Token: REDACTED"},
		{"other headers stay", "Accept-Encoding: gzip", "Accept-Encoding: gzip"},
		{"user and password in a URL", "https://user:pa:ss@host/x", "https://REDACTED@host/x"},
		{"a password with an @ in it", "https://user:p@ss@host", "https://REDACTED@host"},
		{"an @ in the path is none", "https://host/@user", "https://host/@user"},
		{"in a flag", "--target=http://u:p@host:80", "--target=http://REDACTED@host:80"},
		{"a token in a query", "http://h/?a=1&access_token=x&b=2", "http://h/?a=1&access_token=REDACTED&b=2"},
		{"an escaped name of a parameter", "http://h/?to%6ben=x", "http://h/?to%6ben=REDACTED"},
		{"a parameter without value stays", "http://h/?token", "http://h/?token"},
		{"a header with a URL in it", "Referer: https://u:p@h/", "Referer: https://REDACTED@h/"},
		{"a secret header with a URL in it", "Cookie: next=https://h/", "Cookie: REDACTED"},
		{"a log format stays", "%h %^[%d:%t %^] \"%r\" %s %b", "%h %^[%d:%t %^] \"%r\" %s %b"},
	} {
		if got := RedactArgs([]string{c.arg}); got[0] != c.want {
			t.Errorf("%s: %q became %q, want %q", c.why, c.arg, got[0], c.want)
		}
	}
}

func TestRedactArgsLeavesItsArgumentsAlone(t *testing.T) {
	args := []string{"Cookie: a"}
	before := slices.Clone(args)
	if RedactArgs(args); !slices.Equal(args, before) {
		t.Errorf("arguments became %q", args)
	}
}
