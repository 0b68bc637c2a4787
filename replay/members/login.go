package members

// Clients are logged in, a few at a time: the login's page is asked for, its form found and sent.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/html"

	"plimsoll/replay/engine/exchange"
	"plimsoll/replay/engine/target"
	"plimsoll/replay/engine/wire"
	"plimsoll/replay/forms"
)

const (
	atOnce    = 4  // logins under way: checking a password is heavy work for a site
	mostNamed = 10 // accounts that an error names
)

// LogIn logs all clients in, each with a session of its own; where there are more clients than accounts, these are used
// in turn. Find must have found the login. Every account is tried once before any is used twice, so that all that the
// site refuses are reported together and no password is tried again. done is called for each login.
func (s *Site) LogIn(ctx context.Context, clients []uint32, accounts []Account, done func()) (map[uint32]exchange.ClientSession, error) {
	all := map[uint32]exchange.ClientSession{}
	for rest := clients; len(rest) > 0; {
		turn := rest[:min(len(rest), len(accounts))]
		rest = rest[len(turn):]
		if err := s.turn(ctx, turn, accounts, all, done); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// turn logs clients in with an account each.
func (s *Site) turn(
	ctx context.Context, clients []uint32, accounts []Account, all map[uint32]exchange.ClientSession, done func(),
) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var mu sync.Mutex
	refusals := make([]bool, len(clients))
	var wait sync.WaitGroup
	room := make(chan struct{}, atOnce)
	for i, client := range clients {
		room <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		wait.Add(1)
		go func() {
			defer func() { <-room; wait.Done() }()
			session, err := s.logIn(ctx, accounts[i])
			mu.Lock()
			defer mu.Unlock()
			switch {
			case errors.Is(err, errRefused):
				refusals[i] = true
			case err != nil:
				stop(fmt.Errorf("account %q cannot be logged in: %w", accounts[i].Name, err))
			default:
				all[client] = session
				done()
			}
		}()
	}
	wait.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	var refused []string
	for i, is := range refusals {
		if is {
			refused = append(refused, fmt.Sprintf("%q", accounts[i].Name))
		}
	}
	if n := len(refused); n > 0 {
		more := ""
		if n > mostNamed {
			more = fmt.Sprintf(" and %d more", n-mostNamed)
		}
		return fmt.Errorf("the site does not let in %s%s (each was tried once): correct their names and passwords, or remove them",
			strings.Join(refused[:min(n, mostNamed)], ", "), more)
	}
	return nil
}

// maxPageBytes bounds what is read of a login page.
const maxPageBytes = 1 << 20

// usualLogins are where the login is on WordPress and on XenForo with and without rewritten addresses.
var usualLogins = []string{"/wp-login.php", "/login/", "/index.php?login/", "/index.php?login"}

// errRefused says that the site did not let an account in.
var errRefused = errors.New("the site did not let the account in")

// Site is the site that clients are logged in to.
type Site struct {
	Target  *target.Target
	Headers *wire.Headers // are sent with each request here too
	Login   Place         // zero until Find has found one of the usual
	Timeout time.Duration // of one request

	client *http.Client
}

// connect makes the client, whose connections lead to the target alone. It follows no redirect and keeps no cookies.
func (s *Site) connect() {
	transport := s.Target.Transport(s.host(), s.Timeout)
	transport.MaxIdleConnsPerHost, transport.MaxResponseHeaderBytes = atOnce, 256<<10
	s.client = &http.Client{
		Timeout:       s.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     transport,
	}
}

func (s *Site) host() string { return (&wire.Request{}).Authority(s.Target.Host, s.Headers) }

// Find finds the login among the usual places, unless it is given, and checks that its form can be read.
func (s *Site) Find(ctx context.Context) error {
	s.connect()
	places := usualLogins
	if !s.Login.IsZero() {
		places = []string{s.Login.String()}
	}
	var failed error
	for _, at := range places {
		place, _ := ParsePlace(at)
		page, err := s.ask(ctx, s.newSession(place), at, "")
		if err != nil {
			failed = err
			break
		}
		if _, ok := readForm(page.body); ok && page.status < 400 {
			s.Login = place
			return nil
		}
	}
	if failed != nil {
		return fmt.Errorf("the login of %s cannot be read (%w): is this the site?", s.Target.URL, failed)
	}
	return fmt.Errorf("%s has no login form at %s: give its place with --login-page PATH", s.Target.URL, strings.Join(places, ", "))
}

// logIn logs one client in, once. The session is the client's own.
func (s *Site) logIn(ctx context.Context, account Account) (*session, error) {
	session := s.newSession(s.Login)
	page, err := s.ask(ctx, session, s.Login.String(), "")
	if err != nil {
		return nil, err
	}
	form, ok := readForm(page.body)
	if !ok {
		return nil, fmt.Errorf("%s answers %d without a login form", s.Login, page.status)
	}
	to, err := s.action(form.action)
	if err != nil {
		return nil, err
	}
	answer, err := s.ask(ctx, session, to, form.filled(account))
	switch {
	case err != nil:
		return nil, err
	case answer.status >= 500 || answer.status == 429:
		return nil, fmt.Errorf("%s answers %d to a login", s.Login, answer.status)
	case answer.status < 300 || answer.status > 399 || strings.Contains(answer.location, "two-step"):
		return nil, errRefused
	case answer.cookies == 0:
		return nil, fmt.Errorf("%s lets the account in and gives no cookie for %s: name the site's own host, by --connect-to or --header 'Host: …'",
			s.Login, session.host)
	}
	return session, nil
}

// newSession returns an empty session. With a Host header of the user's own, all requests have that host.
func (s *Site) newSession(login Place) *session {
	return newSession(s.host(), s.Headers.Host(), login)
}

// action returns the target of a form on the login page. A form that sends passwords to another host is refused.
func (s *Site) action(action string) (string, error) {
	base, err := url.Parse("http://" + s.host() + s.Login.String())
	if err != nil {
		return "", err
	}
	to, err := base.Parse(strings.TrimSpace(action))
	if err != nil || !strings.EqualFold(to.Hostname(), base.Hostname()) || to.Scheme != "http" && to.Scheme != "https" {
		return "", fmt.Errorf("the login form of %s leads to another host: name the site's own host, by --connect-to or --header 'Host: …'", s.Login)
	}
	return to.RequestURI(), nil
}

// answer is what the login needs of an answer.
type answer struct {
	status   int
	location string
	cookies  int
	body     []byte
}

// ask sends a request with the session's cookies: a POST where there is a body.
func (s *Site) ask(ctx context.Context, session *session, at, body string) (answer, error) {
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
	request, err := http.NewRequestWithContext(ctx, method, s.Target.URL+at, strings.NewReader(body))
	if err != nil {
		return answer{}, errors.New("the address of the login is invalid")
	}
	request.Host = s.host()
	request.Header.Set("User-Agent", "plimsoll")
	request.Header.Set("Referer", s.Target.Scheme()+"://"+s.host()+s.Login.String())
	if body != "" {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	s.Headers.Each(request.Header.Set)
	own := &wire.Request{Method: method, Target: at, Host: s.host()}
	if cookie := session.Cookie(own); cookie != "" {
		request.Header.Set("Cookie", cookie)
	}
	response, err := s.client.Do(request)
	if err != nil {
		return answer{}, plain(err)
	}
	defer func() { _ = response.Body.Close() }()
	page, err := io.ReadAll(io.LimitReader(response.Body, maxPageBytes))
	if err != nil {
		return answer{}, plain(err)
	}
	return answer{
		response.StatusCode, response.Header.Get("Location"), session.take(session.place(own), response.Header["Set-Cookie"]), page,
	}, nil
}

// plain takes the address out of an error of the client, which the caller names.
func plain(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// Bounds of a form: a login has a handful of fields.
const (
	maxFields     = 64
	maxFieldBytes = 4 << 10
)

// form is a login form: where it goes, and what it sends. Tokens against forged requests are among its hidden fields.
type form struct {
	action         string
	hidden         url.Values
	name, password string // of the two fields that people fill in
}

// readForm finds the first form of a page that is sent by POST and asks for one name and one password. A form that asks
// for two passwords is for people who register.
func readForm(page []byte) (form, bool) {
	tokens := html.NewTokenizer(bytes.NewReader(page))
	var now *reading
	for {
		switch tokens.Next() {
		case html.ErrorToken:
			return now.done()
		case html.EndTagToken:
			if name, _ := tokens.TagName(); string(name) == "form" {
				if f, ok := now.done(); ok {
					return f, true
				}
				now = nil
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			switch tag := tokens.Token(); {
			case tag.Data == "form":
				if f, ok := now.done(); ok {
					return f, true
				}
				now = &reading{form: form{action: forms.Attribute(tag, "action"), hidden: url.Values{}},
					post: strings.EqualFold(forms.Attribute(tag, "method"), "post")}
			case tag.Data == "input" && now != nil:
				now.input(forms.Attribute(tag, "type"), forms.Attribute(tag, "name"), forms.Attribute(tag, "value"))
			}
		}
	}
}

// reading is a form of which more may come.
type reading struct {
	form
	post             bool
	names, passwords int
}

func (r *reading) input(kind, name, value string) {
	if name == "" || len(name)+len(value) > maxFieldBytes {
		return
	}
	switch strings.ToLower(kind) {
	case "", "text", "email":
		if r.names++; r.passwords == 0 {
			r.name = name
		}
	case "password":
		r.passwords++
		r.password = name
	case "hidden":
		if len(r.hidden) < maxFields {
			r.hidden.Add(name, value)
		}
	}
}

func (r *reading) done() (form, bool) {
	if r == nil || !r.post || r.passwords != 1 || r.name == "" {
		return form{}, false
	}
	return r.form, true
}

// filled returns what the form sends for an account.
func (f *form) filled(account Account) string {
	values := url.Values{}
	for name, value := range f.hidden {
		values[name] = value
	}
	values.Set(f.name, account.Name)
	values.Set(f.password, account.password)
	return values.Encode()
}
