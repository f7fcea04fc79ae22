package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

type wordCountInput struct {
	Text string `json:"text" description:"The text to count."`
}

type counts struct {
	Words      uint `json:"words" description:"Words, separated by white space."`
	Characters uint `json:"characters" description:"Unicode code points."`
	Lines      uint `json:"lines" description:"Lines; the last needs no line feed."`
}

func (c counts) String() string { return quantity(c.Words, "word") }

func wordCount(_ context.Context, in wordCountInput) (counts, error) {
	lines := strings.Count(in.Text, "\n")
	if in.Text != "" && !strings.HasSuffix(in.Text, "\n") {
		lines++
	}
	return counts{uint(len(strings.Fields(in.Text))), uint(utf8.RuneCountInString(in.Text)), uint(lines)}, nil
}

type slugifyInput struct {
	Text string `json:"text" description:"The text to turn into a slug."`
}

func slugify(_ context.Context, in slugifyInput) (string, error) {
	words := strings.FieldsFunc(lower(in.Text), func(r rune) bool { return !isAlphanumeric(r) })
	if len(words) == 0 {
		return "", errors.New("The text has no letter or digit.")
	}
	return strings.Join(words, "-"), nil
}

// isAlphanumeric says whether the character is alphabetic or a number; vowel signs, which are no letters, are alphabetic too.
func isAlphanumeric(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.Is(unicode.Other_Alphabetic, r)
}

func quantity(n uint, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
