// Package types has the shapes of the contract that Go has no type for. The generated bindings are written against it, so
// that a guest needs no module besides this SDK.
package types

// Unit is the payload of a result that carries nothing.
type Unit struct{}

// The tags of an Option.
const (
	OptionNone uint8 = iota
	OptionSome
)

// Option is a value that may be absent.
type Option[T any] struct {
	value   T
	present bool
}

// None is an absent value.
func None[T any]() Option[T] { return Option[T]{} }

// Some is a present value.
func Some[T any](value T) Option[T] { return Option[T]{value, true} }

// Tag is OptionNone or OptionSome.
func (o Option[T]) Tag() uint8 {
	if o.present {
		return OptionSome
	}
	return OptionNone
}

// Some is the value, which must be present.
func (o Option[T]) Some() T {
	if !o.present {
		panic("an absent option has no value")
	}
	return o.value
}

// Get is the value, and whether there is one.
func (o Option[T]) Get() (T, bool) { return o.value, o.present }

// The tags of a Result.
const (
	ResultOk uint8 = iota
	ResultErr
)

// Result is a success or a failure.
type Result[T, E any] struct {
	ok     T
	err    E
	failed bool
}

// Ok is a success.
func Ok[T, E any](value T) Result[T, E] { return Result[T, E]{ok: value} }

// Err is a failure.
func Err[T, E any](value E) Result[T, E] { return Result[T, E]{err: value, failed: true} }

// Tag is ResultOk or ResultErr.
func (r Result[T, E]) Tag() uint8 {
	if r.failed {
		return ResultErr
	}
	return ResultOk
}

// Ok is the value of a success.
func (r Result[T, E]) Ok() T {
	if r.failed {
		panic("a failure has no value")
	}
	return r.ok
}

// Err is the error of a failure.
func (r Result[T, E]) Err() E {
	if !r.failed {
		panic("a success has no error")
	}
	return r.err
}

// Tuple2 is a pair.
type Tuple2[T0, T1 any] struct {
	F0 T0
	F1 T1
}
