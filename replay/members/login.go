package members

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"plimsoll/replay/engine/target"
	"plimsoll/replay/engine/wire"
)

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
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, _, _, err := s.Target.Dial(ctx, target.Dialing{ServerName: target.ServerName(s.host()), Timeout: s.Timeout})
		return conn, err
	}
	s.client = &http.Client{
		Timeout:       s.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext: dial, DialTLSContext: dial, MaxIdleConnsPerHost: atOnce, MaxResponseHeaderBytes: 256 << 10,
		},
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
	request.Header.Set("Referer", s.scheme()+"://"+s.host()+s.Login.String())
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

func (s *Site) scheme() string {
	if s.Target.TLS {
		return "https"
	}
	return "http"
}

// plain takes the address out of an error of the client, which the caller names.
func plain(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}
