// Package words fills structs from named strings: the arguments of prompts and the variables of URI templates.
package words

import (
	"encoding"
	"fmt"
	"reflect"
	"strconv"

	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/internal/schema"
)

var unmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()

// Fields lists a struct's fields, all of which must be readable from a string.
func Fields(t reflect.Type) ([]schema.Field, error) {
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("%s must be a struct", t)
	}
	fields := schema.Fields(t)
	for _, field := range fields {
		if !readable(field.Type) {
			return nil, fmt.Errorf("field %s of %s: a %s cannot be read from a string", field.GoName, t, field.Type)
		}
	}
	return fields, nil
}

func readable(t reflect.Type) bool {
	if reflect.PointerTo(t).Implements(unmarshalerType) {
		return true
	}
	switch t.Kind() {
	case reflect.Pointer:
		return readable(t.Elem())
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		return true
	default:
		return false
	}
}

// Fill sets the fields for which there are values. Its errors name the field and are meant for the client.
func Fill(target reflect.Value, fields []schema.Field, values map[string]string) error {
	for _, field := range fields {
		word, given := values[field.Name]
		if !given {
			if !field.Optional {
				return fmt.Errorf("%s is required", field.Name)
			}
			continue
		}
		if err := set(target.FieldByIndex(field.Index), word); err != nil {
			return fmt.Errorf("%s: %w", field.Name, err)
		}
	}
	return nil
}

func set(field reflect.Value, word string) error {
	if reader, ok := field.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return reader.UnmarshalText([]byte(word))
	}
	mistake := func(kind string) error { return fmt.Errorf("%q is not %s", word, kind) }
	bits := func() int { return field.Type().Bits() }
	switch field.Kind() {
	case reflect.Pointer:
		field.Set(reflect.New(field.Type().Elem()))
		return set(field.Elem(), word)
	case reflect.String:
		field.SetString(word)
	case reflect.Bool:
		value, err := strconv.ParseBool(word)
		if err != nil {
			return mistake("true or false")
		}
		field.SetBool(value)
	case reflect.Float32, reflect.Float64:
		value, err := strconv.ParseFloat(word, bits())
		if err != nil {
			return mistake("a number")
		}
		field.SetFloat(value)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		value, err := strconv.ParseUint(word, 10, bits())
		if err != nil {
			return mistake("a whole number in range")
		}
		field.SetUint(value)
	default:
		value, err := strconv.ParseInt(word, 10, bits())
		if err != nil {
			return mistake("a whole number in range")
		}
		field.SetInt(value)
	}
	return nil
}
