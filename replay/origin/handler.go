package origin

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

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
