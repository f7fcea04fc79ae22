package main

import (
	"context"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/resource"
	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

type caseVariables struct {
	Style string `json:"style"`
	Text  string `json:"text"`
}

func changeCase(_ context.Context, v caseVariables) (string, error) {
	switch v.Style {
	case "upper":
		return upper(v.Text), nil
	case "lower":
		return lower(v.Text), nil
	case "title":
		return title(v.Text), nil
	}
	return "", resource.ErrNotFound
}

// Package strings changes case one character at a time, which loses a sharp s and a final sigma.

func upper(text string) string { return cases.Upper(language.Und).String(text) }

func lower(text string) string { return cases.Lower(language.Und).String(text) }

func title(text string) string {
	var out strings.Builder
	for text != "" {
		_, size := utf8.DecodeRuneInString(text)
		end := strings.IndexFunc(text, unicode.IsSpace)
		switch {
		case end == 0:
			end = size
		case end < 0:
			end = len(text)
		}
		out.WriteString(upper(text[:size]))
		out.WriteString(lower(text[size:end]))
		text = text[end:]
	}
	return out.String()
}
