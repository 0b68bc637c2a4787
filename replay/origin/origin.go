// Package origin is a static server that answers what a log asks for: real files of the logged sizes, so that
// the disks under them are part of what is measured, and the logged statuses for the rest.
package origin

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Limits bound what a catalog takes in memory and on the disk.
type Limits struct {
	Targets int   // distinct targets remembered, some 50 bytes each; requests for others get 404
	Bytes   int64 // of files; what goes beyond is served with the right size from memory
}

// Catalog says what to answer to each target of a log. It is built from a stream of requests, then only read.
type Catalog struct {
	limits  Limits
	answers map[uint64]answer
	stats   Stats
}

// Stats count what a catalog holds.
type Stats struct {
	Targets   int    `json:"targets"`
	Files     int    `json:"files"`
	FileBytes int64  `json:"file_bytes"`
	InMemory  int    `json:"in_memory"` // targets of a logged success beyond the limit of bytes
	Forgotten uint64 `json:"forgotten"` // requests whose target is beyond the limit of targets
}

// answer is what one target gets. Of several logged responses the one of the highest rank counts, and of those the
// first.
type answer struct {
	size   int64
	status uint16
	rank   rank
	onDisk bool
}

// rank orders logged responses by how much they say about the resource.
type rank uint8

const (
	failure rank = iota // the logged status, without a file
	partial             // 206: a part, or a HEAD: the size is unknown
	success             // 2xx of a method that changes something
	whole               // 200 to GET
)

// NewCatalog returns an empty catalog.
func NewCatalog(limits Limits) *Catalog {
	return &Catalog{limits: limits, answers: map[uint64]answer{}}
}

// Add takes in one logged request. bytes is the size of the response's body, −1 where the log does not say.
func (p *Catalog) Add(target []byte, method string, status int, bytes int64) {
	key := hash(target)
	old, known := p.answers[key]
	if !known && len(p.answers) >= p.limits.Targets {
		p.stats.Forgotten++
		return
	}
	a := answer{size: max(bytes, 0), status: uint16(status), rank: rankOf(method, status)}
	// Of parts the longest is the nearest to the whole: every logged part can then be asked for.
	longer := a.rank == partial && old.rank == partial && a.size > old.size
	if known && a.rank <= old.rank && !longer {
		return
	}
	p.count(old, -1)
	a.onDisk = a.isFile() && a.size > 0 && p.stats.FileBytes+a.size <= p.limits.Bytes
	p.count(a, 1)
	p.answers[key] = a
}

func rankOf(method string, status int) rank {
	switch {
	case status < 200 || status > 299:
		return failure
	case method == http.MethodHead, status == http.StatusPartialContent:
		return partial
	case method == http.MethodGet && status == http.StatusOK:
		return whole
	}
	return success
}

// isFile reports whether the answer is a resource that is read, rather than a status with some text.
func (a answer) isFile() bool {
	return a.rank > failure && (a.status == http.StatusOK || a.status == http.StatusPartialContent)
}

// count counts an answer (1), or counts it no longer (−1).
func (p *Catalog) count(a answer, by int) {
	switch {
	case a.onDisk:
		p.stats.Files += by
		p.stats.FileBytes += int64(by) * a.size
	case a.isFile() && a.size > 0:
		p.stats.InMemory += by
	}
}

// Stats returns what the catalog holds so far.
func (p *Catalog) Stats() Stats {
	s := p.stats
	s.Targets = len(p.answers)
	return s
}

// hash returns the 64-bit FNV-1a, which is the same in every process: file names are made from it.
func hash[T string | []byte](target T) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(target) {
		h ^= uint64(target[i])
		h *= 1099511628211
	}
	return h
}

// modified is the Last-Modified of every file, before any log was written: a request that knows a later date, such
// as a replay of a logged 304, gets 304.
var modified = time.Date(1990, time.January, 1, 0, 0, 0, 0, time.UTC)

// Handler answers requests as the catalog says, from the files in the folder. It looks at the target as it was sent:
// nothing is cleaned, unescaped or redirected.
//
// A target with a logged 200 or 206 is a file: ranges, If-Modified-Since and HEAD work as usual. All others get
// the logged status with a body of the logged size, with these exceptions. 444 (nginx: closed without an
// answer) closes the connection. 408 closes it after its answer. 1xx and invalid statuses are not final answers:
// 200. Unknown targets get 404.
func (p *Catalog) Handler(folder *Folder) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key, a, ok := p.find(r.RequestURI)
		switch {
		case !ok:
			http.Error(w, "the log does not ask for this", http.StatusNotFound)
		case a.onDisk:
			serveFile(w, r, folder, key)
		case a.isFile():
			serveContent(w, r, &memoryFile{size: a.size})
		default:
			serveStatus(w, r, a)
		}
	})
}

// find looks for the target as it was sent, then, where it is in absolute form, as other clients would have sent
// it to this server.
func (p *Catalog) find(target string) (key uint64, a answer, ok bool) {
	key = hash(target)
	if a, ok = p.answers[key]; ok || strings.HasPrefix(target, "/") {
		return key, a, ok
	}
	_, rest, absolute := strings.Cut(target, "://")
	if !absolute {
		return key, a, false
	}
	path := "/"
	if slash := strings.IndexByte(rest, '/'); slash >= 0 {
		path = rest[slash:]
	}
	key = hash(path)
	a, ok = p.answers[key]
	return key, a, ok
}

func serveFile(w http.ResponseWriter, r *http.Request, folder *Folder, key uint64) {
	f, err := folder.open(fileName(key))
	if err != nil {
		http.Error(w, "the origin cannot open the file: "+err.Error(), http.StatusInternalServerError)
		return
	}
	defer f.Close()
	serveContent(w, r, f)
}

func serveContent(w http.ResponseWriter, r *http.Request, content io.ReadSeeker) {
	// Without a type the library would read the file once more to guess one.
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, r, "", modified, content)
}

func serveStatus(w http.ResponseWriter, r *http.Request, a answer) {
	status := int(a.status)
	switch {
	case status == 444:
		panic(http.ErrAbortHandler)
	case status == http.StatusRequestTimeout:
		w.Header().Set("Connection", "close")
	case status < 200 || status > 999:
		status = http.StatusOK
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	if status == http.StatusNoContent || status == http.StatusNotModified {
		w.WriteHeader(status)
		return
	}
	w.Header().Set("Content-Length", strconv.FormatInt(a.size, 10))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		// A client that has gone away does not concern the server.
		_, _ = io.Copy(w, &memoryFile{size: a.size})
	}
}

// maxHeaderBytes leaves room for targets of 1 MiB and the headers beside them.
const maxHeaderBytes = 2 << 20

// Serve answers on l with h until ctx is done. With a certificate it speaks TLS, and HTTP/2 to clients that ask for it.
func Serve(ctx context.Context, l net.Listener, h http.Handler, certificate *tls.Certificate) error {
	server := &http.Server{
		Handler:        h,
		MaxHeaderBytes: maxHeaderBytes,
		// OPTIONS * has a logged answer like all others.
		DisableGeneralOptionsHandler: true,
		// Clients that go away are a part of every replay, and not worth reporting.
		ErrorLog: log.New(io.Discard, "", 0),
	}
	stopped := context.AfterFunc(ctx, func() { server.Close() })
	defer stopped()

	var err error
	if certificate != nil {
		server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{*certificate}, MinVersion: tls.VersionTLS12}
		err = server.ServeTLS(l, "", "")
	} else {
		err = server.Serve(l)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// SelfSigned makes a certificate for this machine under its local names and addresses, valid for 30 days.
func SelfSigned(hosts ...string) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		Subject:      pkix.Name{CommonName: "plimsoll origin"},
		NotBefore:    now.Add(-24 * time.Hour), NotAfter: now.Add(30 * 24 * time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IsCA:        true, BasicConstraintsValid: true,
		DNSNames:    []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else if host != "" {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
