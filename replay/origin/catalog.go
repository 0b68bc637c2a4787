// Package origin is a static server that answers what a log asks for: real files of the logged sizes, so that
// the disks under them are part of what is measured, and the logged statuses for the rest.
package origin

import "net/http"

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
	p.forget(old)
	a.onDisk = a.isFile() && a.size > 0 && p.stats.FileBytes+a.size <= p.limits.Bytes
	p.count(a)
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

func (p *Catalog) count(a answer) {
	switch {
	case a.onDisk:
		p.stats.Files++
		p.stats.FileBytes += a.size
	case a.isFile() && a.size > 0:
		p.stats.InMemory++
	}
}

func (p *Catalog) forget(a answer) {
	switch {
	case a.onDisk:
		p.stats.Files--
		p.stats.FileBytes -= a.size
	case a.isFile() && a.size > 0:
		p.stats.InMemory--
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
