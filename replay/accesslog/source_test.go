package accesslog

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// lineAt is a line of a COMMON log, a number of seconds into its day.
func lineAt(second int, target string) string {
	at := time.Date(2025, 10, 10, 0, 0, second, 0, time.UTC).Format("02/Jan/2006:15:04:05 -0700")
	return fmt.Sprintf("192.0.2.7 - - [%s] \"GET %s HTTP/1.1\" 200 10\n", at, target)
}

func writeFile(t *testing.T, path string, text []byte) string {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func gzipped(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, text)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// targets reads a log and returns its targets in order.
func targets(t *testing.T, opts ReadOptions, paths ...string) []string {
	t.Helper()
	s, err := Open(paths, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for batch, err := range s.Read(context.Background(), mustCompile(t, Spec{Log: "COMMON"}), opts) {
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range batch.Requests {
			got = append(got, string(r.Target))
		}
		batch.Release()
	}
	return got
}

func TestCompressionIsKnownByItsBytes(t *testing.T) {
	text := twoLines()
	compressed := map[string][]byte{"plain": []byte(text), "gzip": gzipped(t, text)}
	compressed["two gzips, one after the other"] = append(gzipped(t, lineAt(1, "/a")), gzipped(t, lineAt(2, "/b"))...)
	compressed["xz"] = xzDictionary(t, 22)
	z, _ := zstd.NewWriter(nil)
	compressed["zstd"] = z.EncodeAll([]byte(text), nil)
	if path, err := exec.LookPath("bzip2"); err == nil { // Go's library only unpacks
		cmd := exec.Command(path, "-c")
		cmd.Stdin = strings.NewReader(text)
		if compressed["bzip2"], err = cmd.Output(); err != nil {
			t.Fatal(err)
		}
	}
	for name, data := range compressed {
		path := writeFile(t, filepath.Join(t.TempDir(), "log.of.no.name"), data)
		if got := fmt.Sprint(targets(t, ReadOptions{}, path)); got != "[/a /b]" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestWhatCannotBeReadIsSaidInOneSentence(t *testing.T) {
	dir := t.TempDir()
	empty := writeFile(t, filepath.Join(dir, "empty.log"), nil)
	emptyGzip := writeFile(t, filepath.Join(dir, "empty.gz"), gzipped(t, ""))
	binary := writeFile(t, filepath.Join(dir, "a.out"), bytes.Repeat([]byte{0x7f, 'E', 1, 0, 0, 3}, 2000))
	zip := writeFile(t, filepath.Join(dir, "log.zip"), []byte("PK\x03\x04 and so on"))
	for _, c := range []struct {
		why   string
		paths []string
		is    error
		says  string
	}{
		{"no path", nil, ErrNoLog, "name a file, a glob such as 'access.log*', or - for standard input"},
		{"a name that is not there", []string{filepath.Join(dir, "none.log")}, fs.ErrNotExist, "none.log does not exist: check the name"},
		{"a glob that matches nothing", []string{filepath.Join(dir, "none*")}, ErrNoLog, "nothing matches"},
		{"a folder", []string{dir}, ErrDirectory, "is a directory: name the logs in it"},
		{"an empty log", []string{empty}, ErrEmpty, "is empty: there is nothing to read"},
		{"an empty log, compressed", []string{emptyGzip}, ErrEmpty, "is empty: there is nothing to read"},
		{"a program", []string{binary}, ErrBinary, "an access log is text"},
		{"an archive", []string{zip}, ErrBinary, "but a zip archive: unpack it first"},
	} {
		_, err := Open(c.paths, nil)
		if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", c.why, err)
		}
	}
	if _, err := Open([]string{"-"}, strings.NewReader("")); !errors.Is(err, ErrEmpty) {
		t.Errorf("nothing on standard input: %v", err)
	}
}

func TestATruncatedGzipIsAnError(t *testing.T) {
	var text strings.Builder
	for i := range 50_000 {
		text.WriteString(lineAt(i, fmt.Sprintf("/%d", i*7919%10007)))
	}
	whole := gzipped(t, text.String())
	path := writeFile(t, filepath.Join(t.TempDir(), "cut.gz"), whole[:len(whole)/2])
	s, err := Open([]string{path}, nil)
	if err != nil {
		t.Fatal(err)
	}
	f := mustCompile(t, Spec{Log: "COMMON"})
	totals, err := s.Count(context.Background(), f, ReadOptions{})
	if !errors.Is(err, ErrTruncated) || !strings.Contains(err.Error(), "cut.gz is truncated") || totals.Valid == 0 {
		t.Errorf("Count: %v after %d requests", err, totals.Valid)
	}
	err = nil
	read := 0
	for batch, e := range s.Read(context.Background(), f, ReadOptions{}) {
		if err = e; e == nil {
			read += len(batch.Requests)
			batch.Release()
		}
	}
	if !errors.Is(err, ErrTruncated) || read == 0 {
		t.Errorf("Read: %v after %d requests", err, read)
	}
}

func TestRotatedFilesAreMergedByTime(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "access.log")
	writeFile(t, log, []byte(lineAt(50, "/5")+lineAt(60, "/6")))
	writeFile(t, log+".1", []byte(lineAt(30, "/3")+lineAt(40, "/4")))
	writeFile(t, log+".2.gz", gzipped(t, lineAt(10, "/1")+lineAt(20, "/2")))
	writeFile(t, log+".3", nil) // logrotate made it a moment ago
	if got := fmt.Sprint(targets(t, ReadOptions{}, log+"*")); got != "[/1 /2 /3 /4 /5 /6]" {
		t.Error(got)
	}
	if got := fmt.Sprint(targets(t, ReadOptions{}, log, log+".1", log)); got != "[/3 /4 /5 /6]" {
		t.Error("a file that is named twice is read once:", got)
	}
}

func TestFilesSideBySideAreInterleaved(t *testing.T) {
	dir := t.TempDir()
	var paths []string
	for site := range 3 {
		var text strings.Builder
		for i := range 2000 {
			text.WriteString(lineAt(i*3+site, fmt.Sprintf("/%d", i*3+site)))
		}
		paths = append(paths, writeFile(t, filepath.Join(dir, fmt.Sprintf("site%d.log", site)), []byte(text.String())))
	}
	got := targets(t, ReadOptions{chunkBytes: 4 << 10}, paths...)
	if len(got) != 6000 {
		t.Fatal(len(got), "requests")
	}
	for i, target := range got {
		if target != fmt.Sprintf("/%d", i) {
			t.Fatalf("request %d is %s", i, target)
		}
	}
}

// TestAnyChunkSizeReadsTheSame holds reading in pieces against reading at once.
func TestAnyChunkSizeReadsTheSame(t *testing.T) {
	text := "# a comment\n\n" + lineAt(1, "/a") + "nonsense\n" + lineAt(2, "/"+strings.Repeat("b", 5000)) + "\r\n" + lineAt(3, "/c")
	text += strings.TrimSuffix(lineAt(4, "/last line without an end"), "\n")
	path := writeFile(t, filepath.Join(t.TempDir(), "log"), []byte(text))
	s, err := Open([]string{path}, nil)
	if err != nil {
		t.Fatal(err)
	}
	f := mustCompile(t, Spec{Log: "COMMON"})
	want := ""
	for _, size := range []int{1 << 20, 1, 64, 100, 200, 4096} {
		for _, workers := range []int{1, 3} {
			var got strings.Builder
			opts := ReadOptions{chunkBytes: size, Workers: workers, OnReject: func(r Reject) {
				fmt.Fprintf(&got, "reject %d %q\n", r.Line, clip(r.Text, 10))
			}}
			for batch, err := range s.Read(context.Background(), f, opts) {
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range batch.Requests {
					fmt.Fprintf(&got, "%d %d %d\n", r.Line, r.TimeNS, len(r.Target))
				}
				batch.Release()
			}
			totals, err := s.Count(context.Background(), f, opts)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&got, "%+v", totals)
			if want == "" {
				want = got.String()
			}
			if got.String() != want {
				t.Fatalf("chunks of %d bytes, %d workers:\n%s\nwant\n%s", size, workers, &got, want)
			}
		}
	}
	if !strings.Contains(want, "Lines:8 Valid:4 Failed:2 Ignored:2 Bytes:40") {
		t.Error(want)
	}
}

func TestLinesUpToOneMiBAreRead(t *testing.T) {
	long := func(n int) string {
		line := lineAt(1, "/")
		return strings.Replace(line, "GET /", "GET /"+strings.Repeat("x", n-len(line)+1), 1)
	}
	text := long(MaxLineBytes) + long(MaxLineBytes+1) + lineAt(2, "/after") + long(3*MaxLineBytes)
	path := writeFile(t, filepath.Join(t.TempDir(), "log"), []byte(text))
	s, _ := Open([]string{path}, nil)
	var rejects []string
	opts := ReadOptions{OnReject: func(r Reject) {
		rejects = append(rejects, fmt.Sprintf("%d: %v",
			r.Line, r.Mismatch))
	}}
	totals, err := s.Count(context.Background(), mustCompile(t, Spec{Log: "COMMON"}), opts)
	if err != nil || totals.Valid != 2 || totals.Failed != 2 || totals.Lines != 4 {
		t.Errorf("%+v %v", totals.Counts, err)
	}
	if want := "[2: line at column 1048577 is longer than 1 MiB 4: line at column 1048577 is longer than 1 MiB]"; fmt.Sprint(rejects) != want {
		t.Error(rejects)
	}
}

// TestEachFieldsCommentHoldsFromThereOn, wherever the log is cut into chunks.
func TestEachFieldsCommentHoldsFromThereOn(t *testing.T) {
	text := "#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip cs(User-Agent) cs(Referer) sc-status sc-substatus sc-win32-status time-taken\r\n" +
		"2026-11-25 10:00:00 10.0.0.1 GET /a q=1 80 - 192.0.2.1 UA - 200 0 0 5\r\n" +
		"2026-11-25 10:00:01 10.0.0.1 GET /b - 80 - 192.0.2.2 UA - 200 0 0 5\r\n" +
		"#Software: IIS\r\n#Fields: date time c-ip cs-method cs-uri-stem cs-uri-query s-port cs-username s-ip cs(User-Agent) cs(Referer) sc-status sc-substatus sc-win32-status time-taken\r\n" +
		"2026-11-25 10:00:02 192.0.2.3 GET /c - 80 - 10.0.0.1 UA - 200 0 0 5\r\n" +
		"#Fields: date time s-sitename cs-method cs-uri-stem cs-uri-query c-ip cs(User-Agent) cs-host sc-status sc-bytes time-taken\r\n" +
		"2026-11-25 10:00:03 W3SVC1 GET /d - 192.0.2.4 UA www.example.com 200 77 5\r\n" +
		"2026-11-25 10:00:04 W3SVC1 GET /e - 192.0.2.5 UA www.example.com 200 77 5\r\n"
	want := "[192.0.2.1 /a?q=1 192.0.2.2 /b 192.0.2.3 /c 192.0.2.4 www.example.com /d 192.0.2.5 www.example.com /e]"
	path := writeFile(t, filepath.Join(t.TempDir(), "log"), []byte(text))
	s, err := Open([]string{path}, nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := s.FormatFor(Spec{})
	if err != nil || f.Name() != "W3C" {
		t.Fatal(f, err)
	}
	for _, size := range []int{1 << 20, 1, 100, 300} {
		var got []string
		for batch, err := range s.Read(context.Background(), f, ReadOptions{chunkBytes: size, Workers: 3}) {
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range batch.Requests {
				for _, field := range [][]byte{r.Host, r.VHost, r.Target} {
					if field != nil {
						got = append(got, string(field))
					}
				}
				if r.DurationNS != 5_000_000 || r.Status != 200 {
					t.Errorf("%+v", r)
				}
			}
			batch.Release()
		}
		if fmt.Sprint(got) != want {
			t.Errorf("chunks of %d bytes: %v", size, got)
		}
	}
}

// TestFieldsAreReadAsTheirWriterMeansThem: texts in quotes, and units.
func TestFieldsAreReadAsTheirWriterMeansThem(t *testing.T) {
	for _, row := range []struct{ says, fields, line, want string }{
		{
			"IIS with a cookie in quotes", "date time cs-method cs-uri-stem c-ip cs(Cookie) cs-host sc-status time-taken",
			`2026-11-25 10:00:00 GET /a 192.0.2.1 "a=b; c=d" www.example.com 200 1687`, "192.0.2.1 www.example.com GET /a  200 1.687s",
		},
		{
			"IIS Advanced Logging", "date time cs-method cs-uri-stem c-ip cs(User-Agent) sc-status sc-substatus time-taken",
			`2026-11-25 10:00:00 GET /a "192.0.2.1" "Mozilla/5.0 (X11)" 200 " w/ spaces " 9`, "192.0.2.1  GET /a Mozilla/5.0 (X11) 200 9ms",
		},
		{
			"a quote that does not end", "date time cs-method cs-uri-stem c-ip cs(User-Agent) sc-status time-taken",
			`2026-11-25 10:00:00 GET /a 192.0.2.1 "UA 200 9`, `192.0.2.1  GET /a "UA 200 9ms`,
		},
		{
			"NetScaler, in seconds", "date time c-ip cs-username sc-servicename cs-method cs-uri-stem sc-status time-taken cs-version",
			`2026-11-25 10:00:00 192.0.2.1 - HTTP GET /a 302 1 HTTP/1.1`, "192.0.2.1  GET /a  302 1s",
		},
		{
			"IIS with a field of the user's own at the end, and no comment", "",
			`2026-11-25 10:00:00 10.0.0.1 GET /a - 443 - 192.0.2.1 UA - 200 0 0 26 192.0.2.9`, "192.0.2.1  GET /a UA 200 26ms",
		},
	} {
		lines := [][]byte{[]byte(row.line)}
		if row.fields != "" {
			lines = append([][]byte{[]byte("#Fields: " + row.fields)}, lines...)
		}
		f, _, err := Detect(lines, false)
		if err != nil {
			t.Errorf("%s: %v", row.says, err)
			continue
		}
		f.from(lines[0])
		var r Request
		mismatch := f.Parse([]byte(row.line), &r)
		got := fmt.Sprintf("%s %s %s %s %s %d %v", r.Host, r.VHost, r.Method, r.Target, r.UserAgent, r.Status, time.Duration(r.DurationNS))
		if mismatch != nil || got != row.want {
			t.Errorf("%s: %s, want %s; %v", row.says, got, row.want, mismatch)
		}
	}
}

// TestNULsBeforeLinesAreSkipped: a crash leaves them, and a log that was cut to nothing while its server wrote.
func TestNULsBeforeLinesAreSkipped(t *testing.T) {
	zeros := func(n int) string { return strings.Repeat("\x00", n) }
	for _, row := range []struct {
		says, text  string
		nuls, lines int
	}{
		{"one before a line", lineAt(1, "/a") + zeros(1) + lineAt(2, "/b"), 1, 2},
		{"a block at the beginning", zeros(70<<10) + twoLines(), 70 << 10, 2},
		{"more than is looked at for a format", zeros(headBytes+5) + twoLines(), headBytes + 5, 2},
		{"a hole longer than lines may be", lineAt(1, "/a") + zeros(3*MaxLineBytes) + lineAt(2, "/b"), 3 * MaxLineBytes, 2},
		{"lines of nothing else", zeros(9) + "\n" + twoLines() + zeros(3), 12, 3},
	} {
		for _, text := range [][]byte{[]byte(row.text), gzipped(t, row.text)} {
			path := writeFile(t, filepath.Join(t.TempDir(), "log"), text)
			s, err := Open([]string{path}, nil)
			if err != nil {
				t.Errorf("%s: %v", row.says, err)
				continue
			}
			f, err := s.FormatFor(Spec{})
			if err != nil {
				t.Errorf("%s: %v", row.says, err)
				continue
			}
			totals, err := s.Count(context.Background(), f, ReadOptions{Sums: true})
			sum := fmt.Sprintf("%x", sha256.Sum256([]byte(row.text)))
			if err != nil || totals.Valid != 2 || totals.Failed != 0 || totals.NULs != int64(row.nuls) ||
				totals.Lines != uint64(row.lines) || totals.SHA256[0] != sum {
				t.Errorf("%s: %+v %v", row.says, totals, err)
			}
			if got := fmt.Sprint(targets(t, ReadOptions{}, path)); got != "[/a /b]" {
				t.Errorf("%s: %s", row.says, got)
			}
		}
	}
}

func TestStandardInputIsReadOnce(t *testing.T) {
	s, err := Open([]string{"-"}, bytes.NewReader(gzipped(t, lineAt(1, "/a"))))
	if err != nil {
		t.Fatal(err)
	}
	f, err := s.FormatFor(Spec{})
	if err != nil || f.Name() != "COMMON" || s.Size() != -1 {
		t.Fatal(f, err)
	}
	if totals, err := s.Count(context.Background(), f, ReadOptions{}); err != nil || totals.Valid != 1 {
		t.Error(totals, err)
	}
	if _, err := s.Count(context.Background(), f, ReadOptions{}); !errors.Is(err, ErrReadTwice) {
		t.Error(err)
	}
}

func TestAPipeIsReadOnceAndWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if out, err := exec.Command("mkfifo", path).CombinedOutput(); err != nil {
		t.Skipf("no named pipes here: %v %s", err, out)
	}
	go func() {
		if w, err := os.OpenFile(path, os.O_WRONLY, 0); err == nil {
			_, _ = io.WriteString(w, lineAt(1, "/a")+lineAt(2, "/b"))
			_ = w.Close()
		}
	}()
	if got := fmt.Sprint(targets(t, ReadOptions{}, path)); got != "[/a /b]" {
		t.Error(got)
	}
}

func TestReadingCanStop(t *testing.T) {
	var text strings.Builder
	for i := range 20_000 {
		text.WriteString(lineAt(i, "/x"))
	}
	path := writeFile(t, filepath.Join(t.TempDir(), "log"), []byte(text.String()))
	s, _ := Open([]string{path}, nil)
	f := mustCompile(t, Spec{Log: "COMMON"})
	for batch := range s.Read(context.Background(), f, ReadOptions{chunkBytes: 4096}) {
		batch.Release()
		break // the workers have to end, else the next loop hangs or races
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var last error
	for batch, err := range s.Read(ctx, f, ReadOptions{chunkBytes: 4096}) {
		cancel()
		if last = err; err == nil {
			batch.Release()
		}
	}
	if !errors.Is(last, context.Canceled) {
		t.Error(last)
	}
	if _, err := s.Count(ctx, f, ReadOptions{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestDuplicatesAreFound(t *testing.T) {
	var text strings.Builder
	for i := range 3000 {
		text.WriteString(lineAt(i, fmt.Sprintf("/%x", i*i*i)))
	}
	long, short, other := text.String(), lineAt(1, "/a")+lineAt(2, "/b"), lineAt(1, "/a")+lineAt(2, "/c")
	comments := "#Software: Microsoft Internet Information Services 10.0\n#Version: 1.0\n"
	for _, c := range []struct {
		why   string
		files []string
		found bool
		first int // the last one is its duplicate
	}{
		{"a log and its packed copy", []string{long, string(gzipped(t, long))}, true, 0},
		{"short ones", []string{short, string(gzipped(t, short))}, true, 0},
		{"one that went on after it was copied", []string{long[:len(long)/2], long}, true, 0},
		{"a copy that ends within a line, or is still being packed", []string{long, string(gzipped(t, long)[:20<<10])}, true, 0},
		{"not side by side", []string{short, long, lineAt(0, "/"), other, string(gzipped(t, long))}, true, 1},
		{"logs that part after a while", []string{long, long[:len(long)-4] + "9\n"}, false, 0},
		{"short ones that part", []string{short, other}, false, 0},
		{"the same requests with others before them", []string{other + long, long}, false, 0},
		{"the same comments, without requests yet", []string{comments, comments, comments + short}, false, 0},
		{"a log alone", []string{long}, false, 0},
	} {
		var paths []string
		for i, text := range c.files {
			paths = append(paths, writeFile(t, filepath.Join(t.TempDir(), fmt.Sprint(i)), []byte(text)))
		}
		s, err := Open(paths, nil)
		if err != nil {
			t.Fatal(c.why, err)
		}
		a, b, found := s.Duplicates()
		if found != c.found || found && [2]int{a, b} != [2]int{c.first, len(c.files) - 1} {
			t.Errorf("%s: %d and %d, %v", c.why, a, b, found)
		}
	}
}
