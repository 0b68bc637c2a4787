package run

// Accounts, logins and sessions, before any load.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"

	"plimsoll/replay/cli"
	"plimsoll/replay/engine/target"
	"plimsoll/replay/members"
	"plimsoll/replay/record"
)

// membership is what the flags on members say, checked and read; nil: all clients are guests.
type membership struct {
	accounts []members.Account
	signs    members.Signs
	login    members.Place // zero: it is looked for
}

// members reads --accounts and what goes with it. Its errors never say what the file does.
func (c *Settings) members(setup *Setup, wrong *cli.Problems) *membership {
	m := &membership{signs: members.Signs{Share: c.MembersShare, Seed: c.Seed}}
	m.signs.Match = wrong.Patterns("--members-match", c.MembersMatch)
	if c.LoginPage != "" {
		var ok bool
		m.login, ok = members.ParsePlace(c.LoginPage)
		wrong.NoteIf(!ok, "--login-page %q is not a path: write it as /wp-login.php or /login/", c.LoginPage)
		m.signs.Login = m.login
	}
	wrong.NoteIf(c.given["members-share"] && !(c.MembersShare > 0 && c.MembersShare <= 1),
		"--members-share: %v is out of range, give more than 0 and at most 1 (0.3 is 30 %%)", c.MembersShare)
	wrong.NoteIf(c.MembersShare != 0 && len(c.MembersMatch) > 0, "--members-match and --members-share cannot be combined: give one of them")
	wrong.NoteIf(c.Accounts == "" && c.MembersShare != 0, "--members-share needs --accounts")
	wrong.NoteIf(c.Accounts == "" && len(c.MembersMatch) > 0, "--members-match needs --accounts")
	wrong.NoteIf(c.Accounts != "" && c.Target == "", "--accounts needs --target: the embedded origin has no members")
	wrong.NoteIf(c.Accounts != "" && setup.headers != nil && setup.headers.Sets("Cookie"),
		"--accounts gives members cookies of their own, which a Cookie header would replace: leave it out of the headers")
	if c.Accounts == "" {
		return nil
	}
	text, err := cli.ReadSecretFile("--accounts", c.Accounts)
	wrong.Note(err)
	if err == nil {
		m.accounts, err = members.ParseAccounts(text)
		wrong.NoteLines(fmt.Sprintf("--accounts %s:", c.Accounts), err)
	}
	return m
}

// facts returns what run.json says of the accounts: neither names nor passwords.
func (m *membership) facts() any {
	if m == nil {
		return nil
	}
	var names []string
	for _, account := range m.accounts {
		names = append(names, account.Name)
	}
	return map[string]any{"accounts": len(names), "names_sha256": record.Digest([]byte(strings.Join(names, "\n")))}
}

// logIn logs the log's members in, before any load.
func (r *Replay) logIn(ctx context.Context, s cli.Streams) error {
	m := r.setup.membership
	if m == nil {
		return nil
	}
	if err := r.logInAs(ctx, m, s); err != nil {
		return cli.Usage(fmt.Errorf("--accounts %s: %w", r.command.Accounts, err))
	}
	return nil
}

func (r *Replay) logInAs(ctx context.Context, m *membership, s cli.Streams) error {
	if !r.command.AllowLogins && !target.IsLoopback(r.target.Addresses[0]) {
		return fmt.Errorf("logging in changes a site, and %s is not on this machine: give --allow-logins if it is a clone that may be changed",
			r.target.URL)
	}
	clients, err := r.logs.Marked(ctx, r.setup.plan, m.signs.Marks)
	if err != nil {
		return err
	}
	if len(clients) == 0 && r.setup.Shard == nil {
		return errors.New("no client of the log is recognisable as a member: give --members-match RE, or draw some with --members-share 0.3")
	}
	site := &members.Site{
		Target: r.target, Headers: r.setup.headers, Login: m.login, Timeout: min(r.command.Timeout, 30*time.Second),
	}
	if err = site.Find(ctx); err != nil {
		return err
	}
	done, progress := int64(0), cli.NewProgress(s, r.command.ShowsProgress(s), int64(len(clients)), "Logging in", progressbar.OptionShowCount())
	r.members, err = site.LogIn(ctx, clients, m.accounts, func() { done++; progress.Show(done, nil) })
	progress.End()
	r.accounts = min(len(clients), len(m.accounts))
	return err
}

// MembersWarning returns what to say after a run that did not show members' pages; "" if it did.
func MembersWarning(m *record.Members) string {
	switch {
	case m == nil || m.Clients == 0:
		return ""
	case m.Requests == 0:
		return "no request went out with a member's cookies: the log names a different host from the one that set them; " +
			"give the site's own with --connect-to or --header 'Host: …' (docs/members.md)"
	case 100*m.SentToLogin > m.Requests:
		return fmt.Sprintf("%d of %d requests of members were sent to the login: their sessions have ended, or their accounts may not see these pages",
			m.SentToLogin, m.Requests)
	}
	return ""
}

// joinSenders gives the clients that send forms sessions in which they keep cookies and tokens.
func (r *Replay) joinSenders(ctx context.Context) error {
	senders, err := r.logs.Senders(ctx, r.setup.plan)
	switch {
	case err != nil:
		return cli.Usage(err)
	case len(senders)+len(r.members) == 0:
		return nil
	}
	site := &members.Site{Target: r.target, Headers: r.setup.headers}
	r.sessions = site.Join(r.members, members.Senders{Clients: senders, Rules: r.setup.plan.Forms})
	return nil
}
