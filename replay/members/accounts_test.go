package members

import (
	"strings"
	"testing"
)

func TestParseAccounts(t *testing.T) {
	for _, c := range []struct {
		why, text string
		names     string
		says      string // of the error; "" none
	}{
		{"one a line", "anna:secret\nbert:secret\n", "anna bert", ""},
		{"comments, empty lines and Windows' ends of lines", "# ours\r\n\r\nanna:secret\r\n", "anna", ""},
		{"a password has colons and blanks", "anna: a:b \n", "anna", ""},
		{"an address as the name", "anna@example.org:x", "anna@example.org", ""},
		{"no password", "anna:\n", "", "line 1 is not an account: write NAME:PASSWORD"},
		{"no colon: the line may be a password and is not shown", "hunter2\n", "", "line 1 is not an account"},
		{"the same name twice", "anna:x\n\nanna:y\n", "anna", "line 3 has the same name as line 1"},
		{"all problems at once", "x\nanna:x\n:y\n", "anna", "line 3 is not an account"},
		{"an empty file", "# nobody\n", "", "holds no account"},
	} {
		accounts, err := ParseAccounts(c.text)
		var names []string
		for _, a := range accounts {
			names = append(names, a.Name)
		}
		if got := strings.Join(names, " "); got != c.names {
			t.Errorf("%s: %q", c.why, got)
		}
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.why, err)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error shows the line", c.why)
		}
	}
	if accounts, _ := ParseAccounts("anna: a:b \n"); accounts[0].password != " a:b " {
		t.Errorf("the password is %q", accounts[0].password)
	}
}
