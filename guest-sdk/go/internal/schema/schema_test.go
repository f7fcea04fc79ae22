package schema

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

type plain struct {
	Text  string   `json:"text" description:"Some text."`
	Count uint     `json:"count,omitempty" maximum:"9"`
	Ratio *float64 `json:"ratio"`
	Mode  string   `json:"mode" enum:"fast,slow" default:"fast"`
	Level int      `json:"level" enum:"1,2"`
	Skip  string   `json:"-"`
	inner string
}

type tags struct {
	Words []string `json:"words" enum:"a,b" minItems:"1"`
	Name  string   `json:"name" pattern:"^[a-z]+$" minLength:"2"`
}

type embedded struct {
	plain2
	Other bool `json:"other"`
}

type plain2 struct {
	Text string `json:"text"`
}

type tree struct {
	Value    int     `json:"value"`
	Children []*tree `json:"children"`
}

type forest struct {
	Trees map[string]tree `json:"trees"`
}

func TestSchemasFollowTypesAndTags(t *testing.T) {
	_ = plain{inner: ""}
	cases := []struct {
		name   string
		of     any
		closed bool
		want   string
	}{
		{"a struct", plain{}, true, `{"type":"object","properties":{` +
			`"text":{"type":"string","description":"Some text."},` +
			`"count":{"type":"integer","minimum":0,"maximum":9},` +
			`"ratio":{"type":"number"},` +
			`"mode":{"type":"string","enum":["fast","slow"],"default":"fast"},` +
			`"level":{"type":"integer","enum":[1,2]}},` +
			`"required":["text","mode","level"],"additionalProperties":false}`},
		{"tags of arrays and texts", tags{}, false, `{"type":"object","properties":{` +
			`"words":{"type":"array","items":{"type":"string","enum":["a","b"]},"minItems":1},` +
			`"name":{"type":"string","minLength":2,"pattern":"^[a-z]+$"}},"required":["words","name"]}`},
		{"an embedded struct", embedded{}, false, `{"type":"object","properties":{"text":{"type":"string"},"other":{"type":"boolean"}},"required":["text","other"]}`},
		{"an empty struct", struct{}{}, true, `{"type":"object","properties":{},"additionalProperties":false}`},
		{"times, bytes, anything", struct {
			T time.Time       `json:"t"`
			B []byte          `json:"b"`
			A any             `json:"a"`
			R json.RawMessage `json:"r"`
		}{}, false, `{"type":"object","properties":{"t":{"type":"string","format":"date-time"},"b":{"type":"string","contentEncoding":"base64"},"a":{},"r":{}},"required":["t","b","a","r"]}`},
		{"a type that contains itself", tree{}, false, `{"type":"object","properties":{"value":{"type":"integer"},"children":{"type":"array","items":{"$ref":"#/$defs/tree"}}},"required":["value","children"],` +
			`"$defs":{"tree":{"type":"object","properties":{"value":{"type":"integer"},"children":{"type":"array","items":{"$ref":"#/$defs/tree"}}},"required":["value","children"]}}}`},
		{"a struct around such a type", forest{}, false, `{"type":"object","properties":{"trees":{"type":"object","additionalProperties":{"$ref":"#/$defs/tree"}}},"required":["trees"],` +
			`"$defs":{"tree":{"type":"object","properties":{"value":{"type":"integer"},"children":{"type":"array","items":{"$ref":"#/$defs/tree"}}},"required":["value","children"]}}}`},
	}
	for _, c := range cases {
		got, err := For(reflect.TypeOf(c.of), c.closed)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if string(got) != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestMistakesAreNamed(t *testing.T) {
	cases := []struct {
		of   any
		want string
	}{
		{struct{ F func() }{}, "field F"},
		{struct{ M map[int]string }{}, "keys"},
		{struct {
			N int `enum:"one"`
		}{}, `"one" is not a int`},
		{struct {
			N int `minimum:"low"`
		}{}, `"low" is not a number`},
	}
	for _, c := range cases {
		_, err := For(reflect.TypeOf(c.of), true)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%T: %v does not say %q", c.of, err, c.want)
		}
	}
}
