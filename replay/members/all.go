package members

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"plimsoll/replay/engine/exchange"
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
