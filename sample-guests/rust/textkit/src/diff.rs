//! What a unified diff does to which files.

use guesthouse::data;

#[data]
#[derive(Default)]
pub struct DiffSummary {
    /// Files in the order of the diff.
    pub files: Vec<FileChange>,
    /// Lines added in all files.
    pub additions: usize,
    /// Lines deleted in all files.
    pub deletions: usize,
}

#[data]
#[derive(Default)]
pub struct FileChange {
    /// Path after the change; before it, where the file is deleted.
    pub path: String,
    /// What happened to the file.
    pub change: Change,
    /// Lines added.
    pub additions: usize,
    /// Lines deleted.
    pub deletions: usize,
}

#[data]
#[serde(rename_all = "lowercase")]
#[derive(Debug, Default, PartialEq)]
pub enum Change {
    Added,
    Deleted,
    Renamed,
    #[default]
    Modified,
}

/// The file that is being read, and where in it we are.
#[derive(Default)]
struct Open {
    file: FileChange,
    /// Whether its `--- ` line or a hunk has been seen, after which another `--- ` is another file's.
    begun: bool,
    /// Old and new lines that the hunk still promises.
    left: (usize, usize),
}

pub fn summarize(diff: &str) -> DiffSummary {
    let mut files = Vec::new();
    let mut open: Option<Open> = None;
    for line in diff.lines() {
        if open.as_mut().is_some_and(|open| open.hunk_line(line)) {
            continue;
        }
        let begins = match () {
            _ if line.starts_with("diff --git ") => true,
            _ if line.starts_with("--- ") => open.as_ref().is_none_or(|open| open.begun),
            _ => line.starts_with("+++ ") && open.is_none(),
        };
        if begins {
            files.extend(open.replace(Open::default()).map(|open| open.file));
        }
        if let Some(open) = &mut open {
            open.header_line(line);
        }
    }
    files.extend(open.map(|open| open.file));
    let additions = files.iter().map(|file| file.additions).sum();
    let deletions = files.iter().map(|file| file.deletions).sum();
    DiffSummary { files, additions, deletions }
}

impl Open {
    /// Whether the line belongs to a hunk; if so, it is counted.
    fn hunk_line(&mut self, line: &str) -> bool {
        let (old, new) = self.left;
        if old + new == 0 {
            return false;
        }
        self.left = match line.bytes().next() {
            Some(b'+') => {
                self.file.additions += 1;
                (old, new.saturating_sub(1))
            }
            Some(b'-') => {
                self.file.deletions += 1;
                (old.saturating_sub(1), new)
            }
            Some(b' ') | None => (old.saturating_sub(1), new.saturating_sub(1)),
            Some(b'\\') => (old, new),
            Some(_) => {
                self.left = (0, 0);
                return false;
            }
        };
        true
    }

    fn header_line(&mut self, line: &str) {
        let file = &mut self.file;
        if let Some(rest) = line.strip_prefix("diff --git ") {
            file.path = rest.rsplit_once(" b/").map_or(rest, |(_, path)| path).into();
        } else if line.starts_with("new file mode ") {
            file.change = Change::Added;
        } else if line.starts_with("deleted file mode ") {
            file.change = Change::Deleted;
        } else if let Some(name) = line.strip_prefix("rename to ") {
            (file.change, file.path) = (Change::Renamed, name.into());
        } else if let Some(name) = line.strip_prefix("--- ") {
            self.begun = true;
            match path(name) {
                "/dev/null" => file.change = Change::Added,
                path if file.path.is_empty() => file.path = path.into(),
                _ => {}
            }
        } else if let Some(name) = line.strip_prefix("+++ ") {
            match path(name) {
                "/dev/null" => file.change = Change::Deleted,
                path => file.path = path.into(),
            }
        } else if let Some(left) = line.strip_prefix("@@ -").and_then(hunk_lengths) {
            (self.begun, self.left) = (true, left);
        }
    }
}

/// The path of a `--- ` or `+++ ` line, without a time stamp and git's prefix.
fn path(name: &str) -> &str {
    let name = name.split('\t').next().unwrap_or_default();
    name.strip_prefix("a/").or(name.strip_prefix("b/")).unwrap_or(name)
}

/// Old and new lengths of `l[,n] +l[,n] @@…`.
fn hunk_lengths(header: &str) -> Option<(usize, usize)> {
    let (old, rest) = header.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let length = |range: &str| match range.split_once(',') {
        Some((start, length)) => start.parse::<usize>().and(length.parse()).ok(),
        None => range.parse::<usize>().ok().map(|_| 1),
    };
    Some((length(old)?, length(new)?))
}
