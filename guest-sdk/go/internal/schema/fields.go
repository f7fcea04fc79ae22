package schema

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
)

// Field is a struct's field as encoding/json sees it.
type Field struct {
	Name, GoName string
	Type         reflect.Type
	Tag          reflect.StructTag
	// Index leads to it with reflect.Value.FieldByIndex.
	Index    []int
	Optional bool
}

// Fields lists what of a struct appears in JSON, in declaration order, with embedded structs spread out.
func Fields(t reflect.Type) []Field {
	fields := []Field{}
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" && options == "" {
			continue
		}
		if field.Anonymous && name == "" {
			embedded := field.Type
			if embedded.Kind() == reflect.Pointer {
				embedded = embedded.Elem()
			}
			if embedded.Kind() == reflect.Struct {
				for _, inner := range Fields(embedded) {
					inner.Index = append([]int{i}, inner.Index...)
					inner.Optional = inner.Optional || field.Type.Kind() == reflect.Pointer
					fields = append(fields, inner)
				}
				continue
			}
		}
		if !field.IsExported() {
			continue
		}
		if name == "" {
			name = field.Name
		}
		fields = append(fields, Field{
			Name: name, GoName: field.Name, Type: field.Type, Tag: field.Tag, Index: field.Index,
			Optional: field.Type.Kind() == reflect.Pointer || hasOption(options, "omitempty") || hasOption(options, "omitzero"),
		})
	}
	return fields
}

func hasOption(options, wanted string) bool {
	for _, option := range strings.Split(options, ",") {
		if option == wanted {
			return true
		}
	}
	return false
}

// Object is a JSON object that keeps its order, so that properties are listed as their author wrote them.
type Object []Member

// Member is one name and value of an [Object].
type Member struct {
	Name  string
	Value any
}

func (o Object) get(name string) (any, bool) {
	for _, member := range o {
		if member.Name == name {
			return member.Value, true
		}
	}
	return nil, false
}

func (o Object) set(name string, value any) Object {
	for i := range o {
		if o[i].Name == name {
			o[i].Value = value
			return o
		}
	}
	return append(o, Member{name, value})
}

// describe puts a description where readers look for it: right after the type.
func (o Object) describe(text string) Object {
	described := Object{}
	if len(o) > 0 && o[0].Name == "type" {
		described, o = append(described, o[0]), o[1:]
	}
	return append(append(described, Member{"description", text}), o...)
}

// MarshalJSON writes the members in order.
func (o Object) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte('{')
	for i, member := range o {
		if i > 0 {
			out.WriteByte(',')
		}
		name, err := json.Marshal(member.Name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(member.Value)
		if err != nil {
			return nil, err
		}
		out.Write(name)
		out.WriteByte(':')
		out.Write(value)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}
