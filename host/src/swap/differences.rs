//! What clients see of one version and not of another.

use crate::changes::Lists;
use crate::policy::Effective;
use crate::registry::Loaded;
use guesthouse_protocol::model::Tool;
use std::collections::BTreeMap;

/// Longest name in a sentence.
const NAME_BYTES_MAX: usize = 128;
/// Longest sentence about what a version may do.
const GRANT_BYTES_MAX: usize = 500;
/// Sentences about one swap.
const SENTENCES_MAX: usize = 100;

/// The lists that differ.
pub(crate) fn lists(old: &Loaded, new: &Loaded) -> Lists {
    let tools = |guest: &Loaded| guest.tools.iter().map(|tool| written(&tool.listed)).collect::<Vec<_>>();
    let prompts = |guest: &Loaded| guest.prompts.iter().map(|prompt| format!("{prompt:?}")).collect::<Vec<_>>();
    let templates = |guest: &Loaded| guest.templates.iter().map(|template| format!("{:?}", template.listed)).collect::<Vec<_>>();
    Lists {
        tools: tools(old) != tools(new),
        prompts: prompts(old) != prompts(new),
        resources: templates(old) != templates(new) || old.resources_digest != new.resources_digest,
    }
}

/// What an operator wants to read before the tools of a stranger change under a model: one sentence for each difference.
pub(crate) fn of_tools(old: &Loaded, new: &Loaded) -> Vec<String> {
    let by_name =
        |guest: &Loaded| guest.tools.iter().map(|tool| (tool.listed.name.clone(), tool.listed.clone())).collect::<BTreeMap<_, _>>();
    let (before, after) = (by_name(old), by_name(new));
    let mut said = Vec::new();
    for (name, tool) in &after {
        let shown = crate::guest::clean(name, NAME_BYTES_MAX);
        match before.get(name) {
            None => said.push(format!("the tool `{shown}` is new")),
            Some(old) if written(old) == written(tool) => {}
            Some(old) => {
                let parts = [
                    ("description", old.description != tool.description),
                    ("arguments", old.input_schema.get() != tool.input_schema.get()),
                    (
                        "output",
                        old.output_schema.as_ref().map(|schema| schema.get()) != tool.output_schema.as_ref().map(|schema| schema.get()),
                    ),
                ];
                let parts: Vec<&str> = parts.into_iter().filter_map(|(part, differs)| differs.then_some(part)).collect();
                let parts = if parts.is_empty() { "other properties".to_owned() } else { parts.join(" and ") };
                said.push(format!("the tool `{shown}` has another {parts}"));
            }
        }
    }
    said.extend(
        before
            .keys()
            .filter(|name| !after.contains_key(*name))
            .map(|name| format!("the tool `{}` is gone", crate::guest::clean(name, NAME_BYTES_MAX))),
    );
    let more = said.len().saturating_sub(SENTENCES_MAX);
    if more > 0 {
        said.truncate(SENTENCES_MAX);
        said.push(format!("{more} tools more differ"));
    }
    said
}

/// What the new version may do and the old one might not, within what is granted: one sentence for each.
pub(crate) fn of_grants(before: &Effective, after: &Effective) -> Vec<String> {
    let mut said = Vec::new();
    if after.state && !before.state {
        said.push("it has state of its own now".to_owned());
    }
    // Without a declaration, what is granted is what it may.
    let http = |given: &Effective| {
        if given.http.is_empty() { Vec::new() } else { given.http.declared.clone().unwrap_or_else(|| given.http.granted.clone()) }
    };
    let old_http = http(before);
    said.extend(
        http(after).iter().filter(|pattern| !old_http.contains(pattern)).map(|pattern| format!("it may send requests to `{pattern}` now")),
    );
    for dir in after.dirs.iter().filter(|dir| !before.dirs.contains(dir)) {
        said.push(format!("it finds the folder `{}` now, to {}", dir.guest, if dir.write { "read and write" } else { "read" }));
    }
    said.extend(after.env.iter().filter(|name| !before.env.contains(name)).map(|name| format!("it finds the variable `{name}` now")));
    said.iter().map(|said| crate::guest::clean(said, GRANT_BYTES_MAX)).collect()
}

/// All of a tool that clients can see.
fn written(tool: &Tool) -> String {
    format!("{tool:?}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::grants::DirGrant;
    use crate::policy::HttpGrant;

    #[test]
    fn what_a_version_may_do_that_the_one_before_might_not_is_said() {
        let dir = |write| DirGrant { host: "/srv".into(), guest: "/data".into(), write };
        let http = |declared: Option<Vec<String>>| HttpGrant { granted: vec!["https://a/*".into()], declared };
        let little = Effective { http: http(Some(vec!["https://a/b".into()])), dirs: vec![dir(false)], ..Effective::default() };
        let much = Effective { state: true, http: http(None), dirs: vec![dir(true)], env: vec!["TZ".into()] };
        assert_eq!(
            of_grants(&little, &much),
            [
                "it has state of its own now",
                "it may send requests to `https://a/*` now",
                "it finds the folder `/data` now, to read and write",
                "it finds the variable `TZ` now"
            ]
        );
        assert_eq!(of_grants(&much, &much), [""; 0]);
        assert_eq!(of_grants(&much, &Effective::default()), [""; 0], "less is no reason to be told");
    }
}
