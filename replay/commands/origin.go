package commands

// `replay origin`: a server of what a log asks for.

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"syscall"

	"plimsoll/replay/accesslog"
	"plimsoll/replay/cli"
	"plimsoll/replay/origin"
)

// Origin is `replay origin`.
type Origin struct {
	Log    []string `help:"Access log to serve; may be repeated. Plain, gz, bz2, xz or zst." required:"" sep:"none" placeholder:"LOG"`
	Root   string   `help:"Folder for the files, on the disk to measure: empty, or left by an earlier run." required:"" placeholder:"DIR"`
	Listen string   `help:"Address to listen on; port 0 picks any free port. Default: ${default}." default:"127.0.0.1:0" placeholder:"HOST:PORT"`

	cli.LogFlags

	MaxBytes      cli.ByteSize `help:"Disk space for files. Targets beyond it are served from memory, with the right size. Default: ${default}." default:"10GiB" placeholder:"SIZE"`
	MaxTargets    int          `help:"Distinct targets to remember, about 50 bytes each. Others get 404. Default: ${default}." default:"2000000" placeholder:"N"`
	TLS           bool         `name:"tls" help:"Serve TLS with a self-signed certificate, and HTTP/2 to clients that ask for it."`
	Procs         int          `help:"Processor cores to use. Default: all." placeholder:"N"`
	ExitWithStdin bool         `help:"Exit when standard input ends, and so with the program that started this one."`

	cli.ShowFlags
}

// Help is printed below the usage of `replay origin`.
func (c *Origin) Help() string {
	return `Examples:
  replay origin --log examples/access.log --root build/origin --listen 127.0.0.1:8080
  replay origin --log examples/access.log --root build/copy --listen 127.0.0.1:8081
  replay origin --log examples/access.log --root build/tls --listen 127.0.0.1:8443 --tls

Prints one line of JSON when it is ready: {"listening":"127.0.0.1:8080", …}. A target with a logged 200 is a file
of the first such size; all others get their logged status and size. 444 closes the connection without an answer,
1xx becomes 200, and targets that are not in the log get 404.

Exit codes: 0 Ctrl-C or SIGTERM stopped it; 1 it failed; 2 the command line or a file is wrong.`
}

// maxThreads lets this many requests wait for a slow disk at once: each holds a thread of the system, and Go
// would otherwise end the process at 10,000.
const maxThreads = 100_000

func (c *Origin) Run(s cli.Streams) error {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	if c.ExitWithStdin {
		go func() {
			_, _ = io.Copy(io.Discard, s.In)
			cancel()
		}()
	}
	if c.Procs > 0 {
		runtime.GOMAXPROCS(c.Procs)
	}
	// The limit of open files needs no setting: Go raises it as far as the system allows.
	debug.SetMaxThreads(maxThreads)

	if err := c.serve(ctx, s); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil // asked to go while it made ready
}

func (c *Origin) serve(ctx context.Context, s cli.Streams) error {
	catalog := origin.NewCatalog(origin.Limits{Targets: c.MaxTargets, Bytes: int64(c.MaxBytes)})
	if err := c.readLogs(ctx, s, catalog); err != nil {
		return err
	}
	folder, err := origin.OpenFolder(c.Root)
	if err != nil {
		return cli.Usage(err)
	}
	defer folder.Close()
	show, endShow := cli.ShowBytes(s, c.ShowsProgress(s), "Writing the log's files")
	err = catalog.Prepare(ctx, folder, show)
	if endShow(); err != nil {
		return cli.Usage(err)
	}
	stats := catalog.Stats()
	if stats.InMemory > 0 {
		s.Say(fmt.Sprintf("%d files beyond --max-bytes are served from memory and do not touch the disk", stats.InMemory))
	}
	if stats.Forgotten > 0 {
		s.Say(fmt.Sprintf("%d requests for targets beyond --max-targets will get 404", stats.Forgotten))
	}
	l, err := net.Listen("tcp", c.Listen)
	if err != nil {
		if call := new(os.SyscallError); errors.As(err, &call) {
			err = call.Err // without the words about sockets
		}
		return cli.Usage(fmt.Errorf("cannot listen on %s: %w: choose another --listen HOST:PORT", c.Listen, err))
	}
	var certificate *tls.Certificate
	if c.TLS {
		host, _, _ := net.SplitHostPort(c.Listen)
		if certificate, err = origin.SelfSigned(host); err != nil {
			return err
		}
	}
	ready := struct {
		Listening string `json:"listening"`
		origin.Stats
	}{l.Addr().String(), stats}
	if err := json.NewEncoder(s.Out).Encode(ready); err != nil {
		return err
	}
	return origin.Serve(ctx, l, catalog.Handler(folder), certificate)
}

// readLogs reads the logs into the catalog. Targets are what the server received, as a replay sends them.
func (c *Origin) readLogs(ctx context.Context, s cli.Streams, catalog *origin.Catalog) error {
	spec, err := c.Spec()
	if err != nil {
		return err
	}
	if c.ExitWithStdin && slices.Contains(c.Log, "-") {
		return cli.Usage(errors.New("--log - and --exit-with-stdin both need standard input: write the log to a file first"))
	}
	source, err := accesslog.Open(c.Log, s.In)
	if err != nil {
		return cli.Usage(err)
	}
	format, err := source.FormatFor(spec)
	if err != nil {
		return cli.Usage(err)
	}
	style := format.TargetEscape()
	var target []byte
	err = source.Each(ctx, format, nil, func(r *accesslog.Request) bool {
		method := string(r.Method)
		if method == "" {
			method = http.MethodGet
		}
		target = accesslog.Unescape(target[:0], r.Target, style)
		catalog.Add(target, method, int(r.Status), r.Bytes)
		return true
	})
	if err != nil {
		return cli.Usage(err)
	}
	return nil
}
