package exchange

// links chain an element to its neighbours in a list.
type links[T any] struct{ older, newer *T }

// element is what a list holds.
type element[T any] interface {
	chain() *links[T]
	sinceNS() int64 // the instant by which the list is in order
}

var (
	_ element[Conn] = (*Conn)(nil)
	_ element[Shot] = (*Shot)(nil)
)

// linked is an element that is known by its address.
type linked[T any] interface {
	*T
	element[T]
}

// list holds elements in the order of an instant, which is that of their time-outs. It is linked through the elements
// themselves: taking one out costs no search.
type list[T any, P linked[T]] struct{ first, last P }

// add puts an element in its place, which is nearly always at the end.
func (l *list[T, P]) add(one P) {
	after := l.last
	for after != nil && after.sinceNS() > one.sinceNS() {
		after = after.chain().older
	}
	before := l.first
	if after != nil {
		before = after.chain().newer
	}
	*one.chain() = links[T]{after, before}
	l.join(after, one)
	l.join(one, before)
}

func (l *list[T, P]) remove(one P) {
	l.join(one.chain().older, one.chain().newer)
	*one.chain() = links[T]{}
}

// join makes two elements neighbours; nil is the end of the list.
func (l *list[T, P]) join(older, newer P) {
	if older != nil {
		older.chain().newer = newer
	} else {
		l.first = newer
	}
	if newer != nil {
		newer.chain().older = older
	} else {
		l.last = older
	}
}
