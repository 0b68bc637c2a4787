// Package members logs clients of a log in: it reads accounts, finds who was a member, sends the site's login form, and
// keeps the cookies of each client in memory.
package members

import (
	"errors"
	"fmt"
	"strings"
)

// Account is one account of the site under test. Only its name may be shown.
type Account struct {
	Name     string
	password string
}

// ParseAccounts reads a file of accounts: NAME:PASSWORD, one a line; empty lines and those with # at their begin do not
// count. The name ends at the first colon. Errors name lines and never repeat them, since they hold passwords.
func ParseAccounts(text string) ([]Account, error) {
	var accounts []Account
	var wrong []error
	known := map[string]int{}
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSuffix(line, "\r")
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, password, _ := strings.Cut(line, ":")
		name = strings.TrimSpace(name)
		if name == "" || password == "" {
			wrong = append(wrong, fmt.Errorf("line %d is not an account: write NAME:PASSWORD", i+1))
			continue
		}
		if before := known[name]; before > 0 {
			wrong = append(wrong, fmt.Errorf("line %d has the same name as line %d: remove one of them", i+1, before))
			continue
		}
		known[name] = i + 1
		accounts = append(accounts, Account{name, password})
	}
	if len(accounts) == 0 && len(wrong) == 0 {
		wrong = append(wrong, errors.New("the file holds no account: write NAME:PASSWORD, one per line"))
	}
	return accounts, errors.Join(wrong...)
}
