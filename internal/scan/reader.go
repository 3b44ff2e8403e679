package scan

import (
	"encoding"
	"reflect"
	"strings"
	"sync"
	"time"
	"unsafe"
)

// A Value reads itself from a line. Reset empties it.
type Value interface {
	ReadLine(l *Line)
	Reset()
}

// A Reader reads lines that encoding/json wrote of a struct T into values of T. It finds the keys in the tags of the
// struct, so that a field added to T needs nothing here. The zero value is ready. It is not safe for concurrent use.
type Reader[T any] struct {
	line Line
	of   []member
}

// Read fills v from b. It returns false if b is not as this program writes it; encoding/json then
// reads b, or returns an error, and the content of v is undefined. Read reuses the memory of v and
// room: slices and Values of v, and the values that the pointers of room point to. Maps are new.
func (r *Reader[T]) Read(b []byte, v, room *T) bool {
	if r.of == nil {
		r.of = membersOf(reflect.TypeFor[T]())
	}
	r.line.Reset(b)
	r.line.object(r.of, unsafe.Pointer(v), unsafe.Pointer(room))
	return r.line.Whole()
}

// A readFunc fills the value at p. room provides memory of a value of the same type for reuse, or
// is p itself.
type readFunc func(l *Line, p, room unsafe.Pointer)

// A member is a field of a struct.
type member struct {
	key    string
	offset uintptr
	read   readFunc
	clear  func(p unsafe.Pointer) // for a line without the key
}

func (l *Line) object(all []member, p, room unsafe.Pointer) {
	l.Open()
	for i := range all {
		m := &all[i]
		if at := unsafe.Add(p, m.offset); l.Key(m.key) {
			m.read(l, at, unsafe.Add(room, m.offset))
		} else {
			m.clear(at)
		}
	}
	l.Close()
}

// members caches the results of membersOf by type: finding it takes longer than reading a line.
var members sync.Map //nolint:gochecknoglobals // a cache of what follows from the types alone

// membersOf returns the fields of a struct and of the structs embedded in it, in the order in which
// they are written.
func membersOf(t reflect.Type) []member {
	if known, ok := members.Load(t); ok {
		return known.([]member)
	}
	var all []member
	for _, f := range reflect.VisibleFields(t) {
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if key == "" || key == "-" {
			continue
		}
		offset := f.Offset
		for i := 1; i < len(f.Index); i++ { // of the struct in which it is embedded
			offset += t.FieldByIndex(f.Index[:i]).Offset
		}
		all = append(all, member{key, offset, readerOf(f.Type), clearerOf(f.Type)})
	}
	members.Store(t, all)
	return all
}

func clearerOf(t reflect.Type) func(p unsafe.Pointer) {
	switch {
	case reflect.PointerTo(t).Implements(reflect.TypeFor[Value]()):
		return func(p unsafe.Pointer) { reflect.NewAt(t, p).Interface().(Value).Reset() }
	case t.Kind() == reflect.Slice:
		return func(p unsafe.Pointer) { reflect.NewAt(t, p).Elem().SetLen(0) }
	case t.Kind() == reflect.Float64 || t.Kind() == reflect.Int64 || t.Kind() == reflect.Int:
		return func(p unsafe.Pointer) { *(*int64)(p) = 0 }
	}
	return func(p unsafe.Pointer) { reflect.NewAt(t, p).Elem().SetZero() }
}

// readerOf returns the function that reads a value of type t. It panics for types that no line has.
func readerOf(t reflect.Type) readFunc {
	switch pointer := reflect.PointerTo(t); {
	case t == reflect.TypeFor[time.Time]():
		return func(l *Line, p, _ unsafe.Pointer) { l.text((*time.Time)(p)) }
	case pointer.Implements(reflect.TypeFor[Value]()):
		return func(l *Line, p, _ unsafe.Pointer) { reflect.NewAt(t, p).Interface().(Value).ReadLine(l) }
	case pointer.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return func(l *Line, p, _ unsafe.Pointer) { l.text(reflect.NewAt(t, p).Interface().(encoding.TextUnmarshaler)) }
	}
	switch t.Kind() {
	case reflect.Int, reflect.Int64:
		return func(l *Line, p, _ unsafe.Pointer) { *(*int64)(p) = l.Int() }
	case reflect.Float64:
		return func(l *Line, p, _ unsafe.Pointer) { *(*float64)(p) = l.Float() }
	case reflect.String:
		return func(l *Line, p, _ unsafe.Pointer) { *(*string)(p) = l.Text() }
	case reflect.Bool:
		return func(l *Line, p, _ unsafe.Pointer) { *(*bool)(p) = l.Bool() }
	case reflect.Struct:
		of := membersOf(t)
		return func(l *Line, p, room unsafe.Pointer) { l.object(of, p, room) }
	case reflect.Pointer:
		return readPointer(t.Elem())
	case reflect.Slice:
		return readSlice(t)
	case reflect.Map:
		return readMap(t)
	}
	panic("scan: no reader for " + t.String())
}

func (l *Line) text(to encoding.TextUnmarshaler) {
	if to.UnmarshalText(l.Bytes()) != nil {
		l.Refuse()
	}
}

func readPointer(t reflect.Type) readFunc {
	read := readerOf(t)
	return func(l *Line, p, room unsafe.Pointer) {
		kept := (*unsafe.Pointer)(room)
		if *kept == nil {
			*kept = reflect.New(t).UnsafePointer()
		}
		read(l, *kept, *kept)
		*(*unsafe.Pointer)(p) = *kept
	}
}

func readSlice(t reflect.Type) readFunc {
	read := readerOf(t.Elem())
	return func(l *Line, p, _ unsafe.Pointer) {
		s := reflect.NewAt(t, p).Elem()
		s.SetLen(0)
		for l.Array(); l.Next(); {
			n := s.Len()
			s.Grow(1)
			s.SetLen(n + 1)
			at := s.Index(n).Addr().UnsafePointer()
			read(l, at, at)
		}
	}
}

func readMap(t reflect.Type) readFunc {
	read := readerOf(t.Elem())
	return func(l *Line, p, _ unsafe.Pointer) {
		m := reflect.MakeMap(t)
		l.Open()
		for name := l.AnyKey(); name != ""; name = l.AnyKey() {
			key, value := reflect.New(t.Key()), reflect.New(t.Elem())
			if u, ok := key.Interface().(encoding.TextUnmarshaler); !ok {
				key.Elem().SetString(name)
			} else if u.UnmarshalText([]byte(name)) != nil {
				l.Refuse()
			}
			read(l, value.UnsafePointer(), value.UnsafePointer())
			m.SetMapIndex(key.Elem(), value.Elem())
		}
		l.Close()
		reflect.NewAt(t, p).Elem().Set(m)
	}
}
