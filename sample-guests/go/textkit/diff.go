package main

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

type diffInput struct {
	Diff string "json:\"diff\" description:\"A unified diff, as `git diff` prints it.\""
}

type diffSummary struct {
	Files     []*changedFile `json:"files" description:"Files in the order of the diff."`
	Additions uint           `json:"additions" description:"Lines added in all files."`
	Deletions uint           `json:"deletions" description:"Lines deleted in all files."`
}

type changedFile struct {
	Path      string `json:"path" description:"Path after the change; before it, where the file is deleted."`
	Change    string `json:"change" description:"What happened to the file." enum:"added,deleted,renamed,modified"`
	Additions uint   `json:"additions" description:"Lines added."`
	Deletions uint   `json:"deletions" description:"Lines deleted."`
}

func (s diffSummary) String() string {
	return quantity(uint(len(s.Files)), "file") + ", " + quantity(s.Additions, "addition") + ", " + quantity(s.Deletions, "deletion")
}

func summarizeDiff(_ context.Context, in diffInput) (diffSummary, error) {
	reader := diffReader{}
	for line := range strings.SplitSeq(in.Diff, "\n") {
		reader.read(strings.TrimSuffix(line, "\r"))
	}
	summary := diffSummary{Files: reader.files}
	if len(summary.Files) == 0 {
		return summary, errors.New(`This is no unified diff: no line begins with "diff --git", "--- " or "+++ ".`)
	}
	for _, file := range summary.Files {
		summary.Additions += file.Additions
		summary.Deletions += file.Deletions
	}
	return summary, nil
}

// diffReader is given the lines one by one.
type diffReader struct {
	files []*changedFile
	// oldLeft and newLeft are the lines that the hunk's header still promises.
	oldLeft, newLeft uint
	// settled says that the open file has had its "--- " line or a hunk, so that another "--- " starts the next one.
	settled bool
}

// A new instance runs for every call: what few calls need is made when they need it.
var hunkHeader = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@`)
})

func (r *diffReader) read(line string) {
	if (r.oldLeft > 0 || r.newLeft > 0) && r.readInHunk(line) {
		return
	}
	r.oldLeft, r.newLeft = 0, 0
	file := r.open()
	switch {
	case strings.HasPrefix(line, "diff --git "):
		names := strings.TrimPrefix(line, "diff --git ")
		r.start().Path = names
		if at := strings.LastIndex(names, " b/"); at >= 0 {
			r.open().Path = names[at+len(" b/"):]
		}
	case strings.HasPrefix(line, "--- "):
		if file == nil || r.settled {
			file = r.start()
		}
		r.settled = true
		if path := headerPath(line); path == "/dev/null" {
			file.Change = "added"
		} else if file.Path == "" {
			file.Path = path
		}
	case strings.HasPrefix(line, "+++ "):
		if file == nil {
			file = r.start()
		}
		if path := headerPath(line); path == "/dev/null" {
			file.Change = "deleted"
		} else {
			file.Path = path
		}
	case file == nil:
	case strings.HasPrefix(line, "new file mode "):
		file.Change = "added"
	case strings.HasPrefix(line, "deleted file mode "):
		file.Change = "deleted"
	case strings.HasPrefix(line, "rename to "):
		file.Change, file.Path = "renamed", strings.TrimPrefix(line, "rename to ")
	default:
		r.readHunkHeader(line)
	}
}

func (r *diffReader) readHunkHeader(line string) {
	header := hunkHeader().FindStringSubmatch(line)
	if header == nil {
		return
	}
	var numbers [4]uint
	for i, digits := range header[1:] {
		n, err := strconv.ParseUint(cmp.Or(digits, "1"), 10, 32)
		if err != nil {
			return
		}
		numbers[i] = uint(n)
	}
	r.oldLeft, r.newLeft, r.settled = numbers[1], numbers[3], true
}

func (r *diffReader) readInHunk(line string) bool {
	file := r.open()
	switch {
	case strings.HasPrefix(line, "+"):
		file.Additions++
		r.newLeft = less(r.newLeft)
	case strings.HasPrefix(line, "-"):
		file.Deletions++
		r.oldLeft = less(r.oldLeft)
	case line == "", strings.HasPrefix(line, " "):
		r.oldLeft, r.newLeft = less(r.oldLeft), less(r.newLeft)
	case strings.HasPrefix(line, `\`):
	default:
		return false
	}
	return true
}

func (r *diffReader) open() *changedFile {
	if len(r.files) == 0 {
		return nil
	}
	return r.files[len(r.files)-1]
}

func (r *diffReader) start() *changedFile {
	r.files = append(r.files, &changedFile{Change: "modified"})
	r.settled = false
	return r.open()
}

func headerPath(line string) string {
	path, _, _ := strings.Cut(line[len("--- "):], "\t")
	if strings.HasPrefix(path, "a/") || strings.HasPrefix(path, "b/") {
		path = path[2:]
	}
	return path
}

func less(n uint) uint {
	if n == 0 {
		return 0
	}
	return n - 1
}
