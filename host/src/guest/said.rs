//! What a callback has written to its log, so that a run of it that begins again does not write it twice.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// Lines that are remembered; what a callback writes after them is written again.
const LINES_MAX: usize = 1_000;

/// The lines of one call's runs, in order.
#[derive(Debug, Default)]
pub(super) struct Said {
    lines: Vec<u64>,
    /// How many of them this run has repeated so far; none while it says something new.
    repeated: Option<usize>,
}

impl Said {
    /// From now on, what was said is being repeated.
    pub(super) fn run_again(&mut self) {
        self.repeated = Some(0);
    }

    /// Whether an earlier run said this line at this place. A run that once says something else is on its own from there.
    pub(super) fn repeats(&mut self, line: &[u8]) -> bool {
        let mut hasher = DefaultHasher::new();
        line.hash(&mut hasher);
        let line = hasher.finish();
        if let Some(place) = self.repeated {
            if self.lines.get(place) == Some(&line) {
                self.repeated = Some(place + 1);
                return true;
            }
            self.repeated = None;
            self.lines.truncate(place);
        }
        if self.lines.len() < LINES_MAX {
            self.lines.push(line);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said_anew<'a>(said: &mut Said, lines: &[&'a str]) -> Vec<&'a str> {
        lines.iter().copied().filter(|line| !said.repeats(line.as_bytes())).collect()
    }

    #[test]
    fn a_run_repeats_until_it_says_something_else() {
        let mut said = Said::default();
        assert_eq!(said_anew(&mut said, &["a", "b", "b", "c"]), ["a", "b", "b", "c"]);
        said.run_again();
        assert_eq!(said_anew(&mut said, &["a", "b", "x", "c"]), ["x", "c"]);
        said.run_again();
        assert_eq!(said_anew(&mut said, &["a", "b", "x", "c", "d"]), ["d"]);
        said.run_again();
        assert_eq!(said_anew(&mut said, &["b", "a"]), ["b", "a"]);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut said = Said::default();
        for line in 0..2 * LINES_MAX {
            assert!(!said.repeats(&line.to_be_bytes()));
        }
        assert_eq!(said.lines.len(), LINES_MAX);
    }
}
