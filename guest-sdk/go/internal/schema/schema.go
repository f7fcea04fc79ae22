// Package schema derives JSON Schemas from Go types.
//
// A struct's fields become properties by their json tags, in declaration order. A field is optional when it is a pointer
// or its tag says omitempty or omitzero; everything else is required. More is said by further tags: description,
// enum (values separated by commas), default, minimum, maximum, minLength, maxLength, minItems, maxItems, pattern, format.
package schema

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

var (
	rawType       = reflect.TypeFor[json.RawMessage]()
	timeType      = reflect.TypeFor[time.Time]()
	numberType    = reflect.TypeFor[json.Number]()
	marshalerType = reflect.TypeFor[json.Marshaler]()
	textType      = reflect.TypeFor[interface{ MarshalText() ([]byte, error) }]()
)

// For is the schema of a type; a closed one allows no members that its structs do not have. It fails for a type that JSON
// has no word for, and for tags that make no sense.
func For(t reflect.Type, closed bool) (json.RawMessage, error) {
	b := &builder{closed: closed, started: map[reflect.Type]bool{}, recursive: map[reflect.Type]bool{}, defs: Object{}}
	schema, err := b.of(t)
	if err != nil {
		return nil, err
	}
	if len(b.defs) > 0 {
		schema = append(schema, Member{"$defs", b.defs})
	}
	return json.Marshal(schema)
}

type builder struct {
	closed bool
	// started are the structs that are being described further up; meeting one again makes it recursive.
	started, recursive map[reflect.Type]bool
	defs               Object
	depth              int
}

func (b *builder) of(t reflect.Type) (Object, error) {
	switch t {
	case rawType:
		return Object{}, nil
	case timeType:
		return Object{{"type", "string"}, {"format", "date-time"}}, nil
	case numberType:
		return Object{{"type", "number"}}, nil
	}
	if t.Kind() == reflect.Pointer {
		return b.of(t.Elem())
	}
	if t.Implements(marshalerType) || reflect.PointerTo(t).Implements(marshalerType) {
		// Only the type knows what it writes.
		return Object{}, nil
	}
	if t.Implements(textType) || reflect.PointerTo(t).Implements(textType) {
		return Object{{"type", "string"}}, nil
	}
	return b.ofKind(t)
}

func (b *builder) ofKind(t reflect.Type) (Object, error) {
	switch t.Kind() {
	case reflect.Bool:
		return Object{{"type", "boolean"}}, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return Object{{"type", "integer"}}, nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return Object{{"type", "integer"}, {"minimum", 0}}, nil
	case reflect.Float32, reflect.Float64:
		return Object{{"type", "number"}}, nil
	case reflect.String:
		return Object{{"type", "string"}}, nil
	case reflect.Interface:
		return Object{}, nil
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 && t.Kind() == reflect.Slice {
			return Object{{"type", "string"}, {"contentEncoding", "base64"}}, nil
		}
		items, err := b.of(t.Elem())
		return Object{{"type", "array"}, {"items", items}}, err
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			return nil, fmt.Errorf("%s: the keys of a JSON object are strings", t)
		}
		values, err := b.of(t.Elem())
		return Object{{"type", "object"}, {"additionalProperties", values}}, err
	case reflect.Struct:
		return b.ofStruct(t)
	default:
		return nil, fmt.Errorf("%s cannot be written as JSON", t)
	}
}

func (b *builder) ofStruct(t reflect.Type) (Object, error) {
	reference := Object{{"$ref", "#/$defs/" + defName(t)}}
	if b.started[t] {
		b.recursive[t] = true
		return reference, nil
	}
	b.started[t] = true
	b.depth++
	schema, err := b.object(t)
	b.depth--
	delete(b.started, t)
	if err != nil || !b.recursive[t] {
		return schema, err
	}
	if _, known := b.defs.get(defName(t)); !known {
		b.defs = append(b.defs, Member{defName(t), schema})
	}
	if b.depth == 0 {
		// Clients expect the outermost schema to say "object" itself.
		return append(Object{}, schema...), nil
	}
	return reference, nil
}

// defName is a name that needs no escaping in a JSON pointer; type arguments bring slashes and brackets.
func defName(t reflect.Type) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("/~[]*.,", r) {
			return '_'
		}
		return r
	}, t.Name())
}

func (b *builder) object(t reflect.Type) (Object, error) {
	properties, required := Object{}, []string{}
	for _, field := range Fields(t) {
		schema, err := b.of(field.Type)
		if err != nil {
			return nil, fmt.Errorf("field %s of %s: %w", field.GoName, t, err)
		}
		if schema, err = withTags(schema, field); err != nil {
			return nil, fmt.Errorf("field %s of %s: %w", field.GoName, t, err)
		}
		properties = append(properties, Member{field.Name, schema})
		if !field.Optional {
			required = append(required, field.Name)
		}
	}
	schema := Object{{"type", "object"}, {"properties", properties}}
	if len(required) > 0 {
		schema = append(schema, Member{"required", required})
	}
	if b.closed {
		schema = append(schema, Member{"additionalProperties", false})
	}
	return schema, nil
}

var numericTags = []string{"minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"}

func withTags(schema Object, field Field) (Object, error) {
	if text := field.Tag.Get("description"); text != "" {
		schema = schema.describe(text)
	}
	if list := field.Tag.Get("enum"); list != "" {
		values := []any{}
		for _, word := range strings.Split(list, ",") {
			value, err := literal(word, field.Type)
			if err != nil {
				return nil, fmt.Errorf("enum: %w", err)
			}
			values = append(values, value)
		}
		if items, ok := schema.get("items"); ok {
			schema = schema.set("items", items.(Object).set("enum", values))
		} else {
			schema = schema.set("enum", values)
		}
	}
	if text, ok := field.Tag.Lookup("default"); ok {
		value, err := literal(text, field.Type)
		if err != nil {
			return nil, fmt.Errorf("default: %w", err)
		}
		schema = append(schema, Member{"default", value})
	}
	for _, name := range numericTags {
		if text := field.Tag.Get(name); text != "" {
			if _, err := strconv.ParseFloat(text, 64); err != nil {
				return nil, fmt.Errorf("%s: %q is not a number", name, text)
			}
			schema = schema.set(name, json.RawMessage(text))
		}
	}
	for _, name := range []string{"pattern", "format"} {
		if text := field.Tag.Get(name); text != "" {
			schema = schema.set(name, text)
		}
	}
	return schema, nil
}

// literal reads a tag's word as a value of the field's type.
func literal(word string, t reflect.Type) (any, error) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() == reflect.String {
		return word, nil
	}
	target := reflect.New(t)
	if err := json.Unmarshal([]byte(word), target.Interface()); err != nil {
		return nil, fmt.Errorf("%q is not a %s", word, t)
	}
	return target.Elem().Interface(), nil
}
