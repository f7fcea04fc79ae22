//! Issues of a code forge, over its REST interface. Who asks is the host's business: it adds the token on the way.

use guesthouse::http::{Request, Response};
use guesthouse::serde_json::{Value, json};
use guesthouse::{Json, Result, bail, ensure};

/// Most issues in one answer.
const ISSUES_MAX: usize = 30;

/// What the operator says.
#[guesthouse::data]
struct Config {
    /// Where the forge is; GitHub where it is absent.
    base: Option<String>,
}

struct Forge {
    base: String,
}

/// An issue.
#[guesthouse::data]
struct Issue {
    /// Its number.
    number: u64,
    /// Its title.
    title: String,
    /// Where people read it.
    html_url: String,
}

/// Some issues.
#[guesthouse::data]
struct Issues {
    /// The newest first.
    issues: Vec<Issue>,
}

#[guesthouse::server(title = "Forge")]
impl Forge {
    #[init]
    fn init(config: Config) -> Result<Forge> {
        let base = config.base.unwrap_or_else(|| "https://api.github.com".into());
        Ok(Forge { base: base.trim_end_matches('/').to_owned() })
    }

    /// Lists the open issues of a repository, the newest first.
    #[tool(title = "List issues", read_only, idempotent)]
    fn list_issues(
        &self,
        /// Owner and name, as in `octocat/hello-world`.
        repository: &str,
    ) -> Result<(String, Json<Issues>)> {
        let url = format!("{}/issues?state=open&per_page={ISSUES_MAX}", self.repository(repository)?);
        let issues: Vec<Issue> = checked(request("GET", url).send()?)?.json()?;
        let lines: Vec<String> = issues.iter().map(|issue| format!("#{} {}", issue.number, issue.title)).collect();
        let text = if lines.is_empty() { "No open issues.".into() } else { lines.join("\n") };
        Ok((text, Json(Issues { issues })))
    }

    /// Opens an issue.
    #[tool(title = "Open an issue")]
    fn open_issue(
        &self,
        /// Owner and name, as in `octocat/hello-world`.
        repository: &str,
        /// The title.
        title: &str,
        /// The text, in Markdown.
        body: Option<&str>,
    ) -> Result<(String, Json<Issue>)> {
        let url = format!("{}/issues", self.repository(repository)?);
        let issue: Issue = checked(request("POST", url).json(&json!({ "title": title, "body": body }))?.send()?)?.json()?;
        Ok((format!("Opened #{}: {}", issue.number, issue.html_url), Json(issue)))
    }
}

impl Forge {
    /// Where a repository is. What is no name does not become a part of the path.
    fn repository(&self, name: &str) -> Result<String> {
        let is_name = |part: &str| {
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            !part.is_empty() && part.chars().all(plain) && !matches!(part, "." | "..")
        };
        ensure!(
            name.split_once('/').is_some_and(|(owner, name)| is_name(owner) && is_name(name)),
            "`{name}` is not a repository: write owner/name."
        );
        Ok(format!("{}/repos/{name}", self.base))
    }
}

fn request(method: &str, url: String) -> Request {
    Request::new(method, url).header("accept", "application/vnd.github+json").header("user-agent", "guesthouse-forge")
}

/// The response, or what the forge says is wrong.
fn checked(response: Response) -> Result<Response> {
    if (200..300).contains(&response.status) {
        return Ok(response);
    }
    let said = response.json::<Value>().ok().and_then(|body| body["message"].as_str().map(str::to_owned));
    bail!("The forge answered with status {}: {}", response.status, said.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_become_paths() {
        let forge = Forge { base: "https://forge.example".into() };
        assert_eq!(forge.repository("octocat/hello.world").unwrap(), "https://forge.example/repos/octocat/hello.world");
        for name in ["octocat", "octocat/", "/x", "a/b/c", "../x", "a/..", "a/b?c", "a/b#c", "a/%2e"] {
            assert!(forge.repository(name).is_err(), "{name}");
        }
    }
}
