package route

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func routeOf(n *Namer, target string) string {
	number := n.Route([]byte(target))
	return n.Names()[number]
}

var kindsOfRequests = []struct{ why, target, want string }{
	{"the front page", "/", "page"},
	{"the front page of a campaign", "/?utm_source=x&utm_medium=y", "page"},
	{"a page with a name of its own", "/about/", "page"},
	{"a permalink without a date", "/hello-world", "page"},
	{"a permalink with a date", "/2026/11/20/hello-world/", "article"},
	{"a plain permalink", "/?p=123", "article"},
	{"WordPress's search", "/?s=my+secret+search", "search"},
	{"a feed at its end", "/feed", "feed"},
	{"a feed of a category", "/category/news/feed/", "feed"},
	{"a plain feed", "/?feed=rss2", "feed"},
	{"a feed by its file type", "/news.rss", "feed"},
	{"WordPress's login", "/wp-login.php?redirect_to=%2Fwp-admin%2F", "login"},
	{"the same in a folder", "/blog/wp-login.php", "login"},
	{"WordPress's administration", "/wp-admin/edit.php?post_type=page", "admin"},
	{"its folder alone", "/wp-admin/", "admin"},
	{"its requests in the background", "/wp-admin/admin-ajax.php?action=heartbeat", "admin-ajax"},
	{"styles of the administration are styles", "/wp-admin/load-styles.php?c=1", "css-js"},
	{"WordPress's REST", "/wp-json/wp/v2/posts?per_page=5", "rest"},
	{"the same without pretty permalinks", "/?rest_route=/wp/v2/posts", "rest"},
	{"an upload", "/wp-admin/async-upload.php", "upload"},
	{"cron", "/wp-cron.php?doing_wp_cron=1700000000.5", "cron"},
	{"XML-RPC", "/xmlrpc.php", "xmlrpc"},
	{"a comment", "/wp-comments-post.php", "comment"},
	{"an image that was uploaded is an image", "/wp-content/uploads/2026/11/photo-300x200.JPG?x=1", "image"},
	{"a site map", "/wp-sitemap-posts-post-1.xml", "sitemap"},
	{"robots", "/robots.txt", "robots"},
	{"XenForo: a thread", "/threads/some-title.123/page-2", "thread"},
	{"XenForo: a thread below a folder", "/community/threads/some-title.123/", "thread"},
	{"XenForo: a thread without rewriting", "/index.php?threads/some-title.123/", "thread"},
	{"XenForo: a thread with index.php in the path", "/index.php/threads/some-title.123/", "thread"},
	{"XenForo: a forum", "/forums/news.5/", "forum"},
	{"XenForo: a member", "/members/jo.7/", "member"},
	{"XenForo: a reply", "/threads/some-title.123/add-reply", "posting"},
	{"XenForo: styles", "/css.php?css=public%3Anormalize.css&s=1", "css-js"},
	{"XenForo: an attachment", "/attachments/pic-jpg.99/", "attachment"},
	{"phpBB: a thread", "/viewtopic.php?f=1&t=2", "thread"},
	{"phpBB: a forum below a folder", "/forum/viewforum.php?f=1", "forum"},
	{"phpBB: login", "/ucp.php?mode=login&sid=0123456789abcdef", "login"},
	{"phpBB: the user's panel", "/ucp.php?i=pm", "member"},
	{"phpBB: a file", "/download/file.php?id=5", "attachment"},
	{"phpBB: a new post", "/posting.php?mode=reply&t=5", "posting"},
	{"vBulletin: a thread", "/showthread.php?1234-title", "thread"},
	{"vBulletin: a forum", "/forumdisplay.php?5", "forum"},
	{"Discourse: a thread", "/t/some-title/123/4", "thread"},
	{"Discourse: a thread as JSON", "/t/123.json", "thread"},
	{"Discourse: a category", "/c/support/5", "forum"},
	{"Discourse: a user", "/u/jo/summary", "member"},
	{"Discourse: its bus", "/message-bus/0123456789abcdef0123456789abcdef/poll", "api"},
	{"a style", "/wp-includes/css/dist/style.min.css?ver=6.4", "css-js"},
	{"a script", "/js/app.js", "css-js"},
	{"a font", "/fonts/a.woff2", "font"},
	{"a download", "/debian/dists/Release.gz", "download"},
	{"a film", "/v/film.mp4", "media"},
	{"a plain page", "/dir/page.html", "page"},
	{"a script of unknown meaning", "/foo/bar.php?x=1", "page"},
	{"data", "/data/list.json", "text"},
	{"the absolute form is its path", "http://example.org/wp-login.php", "login"},
	{"the absolute form without a path", "http://example.org", "page"},
	{"the absolute form with a query only", "http://example.org?s=x", "search"},
	{"two slashes are a path", "//wp-login.php", "login"},
	{"a URL in a query is no absolute form", "/go/out?to=http://example.org/x.png", "go"},
	{"a fragment is cut off", "/a/b.png#c/d", "image"},
	{"the first segment names the rest", "/shop/cart/3", "shop"},
	{"in lower case", "/Shop/Cart/3", "shop"},
	{"a file that only scanners ask for", "/laravel/.env", "probe"},
	{"such a file below a known folder", "/admin/.env", "probe"},
	{"such a folder", "/.git/config", "probe"},
	{"an image is an image even there", "/.well-known/a.png", "image"},
	{"no request at all", "\x03\x00\x00", "other"},
	{"the authority form", "site.example:443", "other"},
	{"the asterisk", "*", "page"},
	{"a number is no name", "/12345/x", "other"},
	{"a token is no name", "/a8f3k2x9q1/x", "other"},
	{"a hash is no name", "/deadbeef01/x", "other"},
	{"part of a UUID is no name", "/f47ac10b-58cc/x", "other"},
	{"letters at random are no name", "/xkcdqrstvw/x", "other"},
	{"an address is no name", "/jo@example.org/x", "other"},
	{"a long segment is no name", "/" + strings.Repeat("long-", 6) + "/x", "other"},
	{"escapes are no name", "/%2e%2e/x", "other"},
	{"control characters are no name", "/a\x00b/x", "other"},
	{"markup is no name", "/<script>/x", "other"},
	{"nothing", "", "page"},
}

func TestKindsOfRequests(t *testing.T) {
	for _, c := range kindsOfRequests {
		n := New(nil)
		if got := routeOf(n, c.target); got != c.want {
			t.Errorf("%s: %q is %q, want %q", c.why, c.target, got, c.want)
		}
	}
}

func TestRulesComeFirst(t *testing.T) {
	rules, err := ParseRules([]string{`checkout=^/shop/(cart|checkout)`, `slow=\.php\?id=`, `checkout=^/pay`})
	if err != nil {
		t.Fatal(err)
	}
	n := New(rules)
	for _, c := range []struct{ why, target, want string }{
		{"a rule wins over the first segment", "/shop/cart", "checkout"},
		{"and over a kind", "/viewtopic.php?id=5", "slow"},
		{"two rules may bear one name", "/pay/now", "checkout"},
		{"what no rule matches has its kind", "/viewtopic.php?t=5", "thread"},
	} {
		if got := routeOf(n, c.target); got != c.want {
			t.Errorf("%s: %q is %q, want %q", c.why, c.target, got, c.want)
		}
	}
}

func TestParseRulesTellsAllProblemsAtOnce(t *testing.T) {
	_, err := ParseRules([]string{"shop", "=x", "a b=x", "ok=^/x", "open=(", "empty=", "\x1b[31m=x"})
	if err == nil {
		t.Fatal("no problem was found")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 6 {
		t.Errorf("%d problems are told, want 6: %q", len(lines), lines)
	}
	for _, says := range []string{`"shop": it has no '='`, `"a b=x": the name`, `missing closing )`, `is empty`, `\x1b`} {
		if !strings.Contains(err.Error(), says) {
			t.Errorf("the problems do not say %q: %v", says, err)
		}
	}
}

func TestParseRulesBoundsTheNames(t *testing.T) {
	var texts []string
	for i := range MaxNames + 1 {
		texts = append(texts, fmt.Sprintf("n%d=x", i))
	}
	if _, err := ParseRules(texts[:MaxNames]); err != nil {
		t.Errorf("%d names: %v", MaxNames, err)
	}
	if _, err := ParseRules(texts); err == nil {
		t.Errorf("%d names were taken", len(texts))
	}
}

// Whatever a log holds, the names stay few, stable and free of anything that could be a secret.
func TestNamesStayBounded(t *testing.T) {
	var texts []string
	for i := range MaxNames - 5 {
		texts = append(texts, fmt.Sprintf("rule%d=^/rule%d/", i, i))
	}
	rules, err := ParseRules(texts)
	if err != nil {
		t.Fatal(err)
	}
	n := New(rules)
	r := rand.New(rand.NewPCG(5, 6))
	seen := map[string]uint16{}
	for i := range 20_000 {
		target := randomTarget(r, i)
		number := n.Route([]byte(target))
		names := n.Names()
		if int(number) >= len(names) || len(names) > Limit+1 {
			t.Fatalf("%q: number %d of %d names", target, number, len(names))
		}
		if before, ok := seen[names[number]]; ok && before != number {
			t.Fatalf("%q has the numbers %d and %d", names[number], before, number)
		}
		seen[names[number]] = number
	}
	for i := range MaxNames - 5 {
		n.Route(fmt.Appendf(nil, "/rule%d/x", i))
	}
	for _, target := range []string{"/wp-login.php", "/a.png", "/a.woff", "/feed"} {
		if got := routeOf(n, target); got == Other {
			t.Errorf("there was no room left for %q", target)
		}
	}
	if got := len(n.Names()); got > Limit+1 {
		t.Errorf("%d names", got)
	}
}

func randomTarget(r *rand.Rand, i int) string {
	switch i % 4 {
	case 0:
		return fmt.Sprintf("/%c%c%c%c/x", 'a'+r.IntN(26), 'a'+r.IntN(5), 'a'+r.IntN(26), 'a'+r.IntN(26))
	case 1:
		b := make([]byte, r.IntN(60))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return string(b)
	case 2:
		return fmt.Sprintf("/%x/%x.png", r.Uint64(), r.Uint64())
	default:
		return fmt.Sprintf("/rule%d/%d", r.IntN(40), i)
	}
}

func TestNamesAreASnapshot(t *testing.T) {
	n := New(nil)
	n.Route([]byte("/"))
	before := n.Names()
	n.Route([]byte("/a.png"))
	if !slices.Equal(before, []string{"page"}) || !slices.Equal(n.Names(), []string{"page", "image"}) {
		t.Errorf("before %q, now %q", before, n.Names())
	}
}

func TestNamesMayBeReadMeanwhile(t *testing.T) {
	n := New(nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 1000 {
			n.Names()
		}
	}()
	for i := range 1000 {
		n.Route(fmt.Appendf(nil, "/%c%c/x", 'a'+i%26, 'a'+i/26%26))
	}
	<-done
}

func TestRouteDoesNotAllocate(t *testing.T) {
	rules, err := ParseRules([]string{"shop=^/shop/"})
	if err != nil {
		t.Fatal(err)
	}
	n := New(rules)
	targets := [][]byte{[]byte("/"), []byte("/wp-content/a.PNG?v=1"), []byte("/threads/x.1/"), []byte("/some/where"), []byte("/shop/x"),
		[]byte("/12345/x"), []byte("/2026/11/20/a/"), []byte("/x?" + strings.Repeat("a=b&", 1<<18))}
	for _, target := range targets {
		n.Route(target)
		if got := testing.AllocsPerRun(100, func() { n.Route(target) }); got != 0 {
			t.Errorf("%.40q: %v allocations", target, got)
		}
	}
}

func FuzzRoute(f *testing.F) {
	for _, seed := range []string{"/", "*", "http://h/x", "//x", "/a/b?c#d", "/2026/11/", "\xff"} {
		f.Add([]byte(seed))
	}
	n := New(nil)
	f.Fuzz(func(t *testing.T, target []byte) {
		name := n.Names
		number := n.Route(target)
		if again := n.Route(target); again != number || int(number) >= len(name()) {
			t.Errorf("%q: %d, then %d of %d names", target, number, again, len(name()))
		}
	})
}

func BenchmarkRoute(b *testing.B) {
	n := New(nil)
	target := []byte("/wp-content/uploads/2026/11/photo-300x200.jpg?ver=5")
	b.ReportAllocs()
	for b.Loop() {
		n.Route(target)
	}
}

func TestEachWordNamesOneKind(t *testing.T) {
	for what, known := range map[string]func(k *kind) []string{
		"file":      func(k *kind) []string { return k.files },
		"file type": func(k *kind) []string { return k.extensions },
		"folder":    func(k *kind) []string { return k.folders },
	} {
		names := map[string]string{}
		for i := range kinds {
			for _, word := range known(&kinds[i]) {
				if other, taken := names[word]; taken {
					t.Errorf("the %s %s stands with %s and with %s", what, word, other, kinds[i].name)
				}
				names[word] = kinds[i].name
			}
		}
	}
}

// The kinds that the rules return are in the registry, where room is kept for their names.
func TestRulesReturnRegisteredKinds(t *testing.T) {
	registered := map[string]bool{"": true}
	for i := range kinds {
		registered[kinds[i].name] = true
	}
	source, err := parser.ParseFile(token.NewFileSet(), "kinds.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	ast.Inspect(source, func(n ast.Node) bool {
		result, ok := n.(*ast.ReturnStmt)
		if !ok || len(result.Results) != 1 {
			return true
		}
		if text, ok := result.Results[0].(*ast.BasicLit); ok && text.Kind == token.STRING {
			found++
			if name, _ := strconv.Unquote(text.Value); !registered[name] {
				t.Errorf("a rule returns %s, which is not in the table of kinds", name)
			}
		}
		return true
	})
	if found < 10 {
		t.Errorf("only %d rules were found: is the test still right?", found)
	}
}
