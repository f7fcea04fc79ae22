//! Table `[http]`, and what guests' tables say of HTTP requests: whom to trust, proxies, patterns and secrets.

use super::GuestConfig;
use super::grants::Secret;
use crate::capability::http::SecretHeader;
use crate::network::{Proxies, Trust};
use crate::policy::http::Patterns;
use crate::policy::origin::{Host, Origin, Scheme};
use anyhow::{Context, Result, anyhow, bail};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// Largest file of certificates, and of a secret.
const CA_BYTES_MAX: u64 = 4 << 20;
const SECRET_BYTES_MAX: u64 = 16 << 10;

/// Table `[http]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HttpConfig {
    /// A file with certificates of authorities to trust, in PEM form, besides those of browsers and of the system.
    pub ca: Option<PathBuf>,
    /// Whether the proxies are used that the environment names (`HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`).
    pub proxy: bool,
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self { ca: None, proxy: true }
    }
}

impl HttpConfig {
    pub(super) fn resolve_paths(&mut self, folder: &Path) {
        if let Some(file) = &mut self.ca {
            *file = folder.join(&*file);
        }
    }

    /// Reads the certificates. Takes a moment.
    pub fn trust(&self) -> Result<Trust> {
        let own = match &self.ca {
            None => Vec::new(),
            Some(file) => vec![read(file, CA_BYTES_MAX).with_context(|| format!("`http.ca`: cannot read `{}`", file.display()))?],
        };
        let system = rustls_native_certs::load_native_certs();
        for error in system.errors {
            tracing::debug!(%error, "a certificate of the system cannot be read");
        }
        let named = || format!("`http.ca`: `{}`", self.ca.as_deref().unwrap_or(Path::new("")).display());
        Trust::new(system.certs, &own).with_context(named)
    }

    /// Reads the proxies from the environment.
    pub fn proxies(&self) -> Result<Proxies> {
        if !self.proxy {
            return Ok(Proxies::default());
        }
        Proxies::read(|name| variable(name).ok()).map_err(|error| anyhow!("{error}; `proxy = false` in the table [http] uses none"))
    }
}

/// Checks what a guest's table says of HTTP, as far as that can be done without the secrets themselves.
pub(super) fn check(guest: &str, config: &GuestConfig) -> Result<()> {
    patterns(guest, config)?;
    let mut seen = Vec::new();
    for (origin, secret) in &config.secrets {
        let (parsed, _) = parts(guest, origin, secret)?;
        if seen.contains(&parsed) {
            bail!("`guest.{guest}.secrets`: `{origin}` is there twice");
        }
        seen.push(parsed);
        if secret.env.is_some() == secret.file.is_some() {
            bail!("`guest.{guest}.secrets.\"{origin}\"` needs either `env` or `file`");
        }
    }
    Ok(())
}

/// Where the guest may send requests.
pub fn patterns(guest: &str, config: &GuestConfig) -> Result<Patterns> {
    Patterns::parse(&config.grants.http).with_context(|| format!("`guest.{guest}.grants.http`"))
}

/// Reads the secrets of a guest that may send these requests. An error names guest, origin and source, and never a value.
pub fn secrets(guest: &str, config: &GuestConfig, granted: &Patterns) -> Result<Vec<SecretHeader>> {
    let read = |(origin, secret): (&String, &Secret)| {
        let (parsed, name) = parts(guest, origin, secret)?;
        if !granted.reach(&parsed) {
            bail!(
                "`guest.{guest}.secrets`: no grant lets guest `{guest}` send a request to {origin}; add one to `guest.{guest}.grants.http`"
            );
        }
        let (text, place) = match (&secret.env, &secret.file) {
            (Some(env), None) => (variable(env), format!("the environment variable {env}")),
            (None, Some(file)) => (secret_file(file), format!("`{}`", file.display())),
            (Some(_), Some(_)) | (None, None) => bail!("`guest.{guest}.secrets.\"{origin}\"` needs either `env` or `file`"),
        };
        let wrong = |what: &str| anyhow!("guest `{guest}`: the secret for {origin} in {place} {what}");
        let text = text.map_err(|error| wrong(&format!("cannot be read: {error}")))?;
        let value = text.trim();
        if value.is_empty() {
            return Err(wrong("is empty"));
        }
        SecretHeader::new(parsed, name, &format!("{}{value}", secret.prefix)).map_err(wrong)
    };
    config.secrets.iter().map(read).collect()
}

/// Origin and header of a secret.
fn parts(guest: &str, origin: &str, secret: &Secret) -> Result<(Origin, http::HeaderName)> {
    let parsed = Origin::parse(origin).map_err(|error| anyhow!("`guest.{guest}.secrets`: {error}"))?;
    let name = SecretHeader::name_of(&secret.header);
    let name = name.map_err(|what| anyhow!("`guest.{guest}.secrets.\"{origin}\"`: `{}` {what}", secret.header))?;
    if http::HeaderValue::from_str(&secret.prefix).is_err() {
        bail!("`guest.{guest}.secrets.\"{origin}\"`: the prefix has characters that a header cannot have");
    }
    check_clear(&parsed, secret).map_err(|what| anyhow!("`guest.{guest}.secrets.\"{origin}\"` {what}"))?;
    Ok((parsed, name))
}

/// A secret goes in the clear within this machine, and beyond it only where that is said.
fn check_clear(origin: &Origin, secret: &Secret) -> Result<(), &'static str> {
    let here = matches!(origin.host, Host::Address(address) if address.is_loopback());
    match (origin.scheme, secret.insecure) {
        (Scheme::Http, false) if !here => {
            Err("would be sent unencrypted to another machine; write `https://`, or `insecure = true` beside the header if that must be")
        }
        (Scheme::Https, true) => Err("is sent encrypted: `insecure` is for origins with `http://`"),
        (Scheme::Http | Scheme::Https, _) => Ok(()),
    }
}

fn secret_file(file: &Path) -> Result<String, String> {
    let bytes = read(file, SECRET_BYTES_MAX).map_err(|error| error.to_string())?;
    // The error of the conversion has the bytes.
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())
}

/// Reads a file of a bounded size.
fn read(file: &Path, bytes_max: u64) -> std::io::Result<Vec<u8>> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    std::fs::File::open(file)?.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(std::io::Error::other(format!("it has more than {bytes_max} bytes")));
    }
    Ok(bytes)
}

/// A variable of the environment. The error never has the value.
#[expect(clippy::disallowed_methods, reason = "the configuration is the one reader of the environment")]
fn variable(name: &str) -> Result<String, String> {
    std::env::var(name).map_err(|error| match error {
        std::env::VarError::NotPresent => "it is not set".to_owned(),
        std::env::VarError::NotUnicode(_) => "it is not UTF-8".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    fn refusal(text: &str) -> String {
        format!("{:#}", Config::parse(text).unwrap_err())
    }

    #[test]
    fn patterns_and_secrets_that_cannot_work_name_guest_and_part() {
        let secret = |rest: &str| format!("[guest.a.secrets]\n{rest}");
        for (text, parts) in [
            ("[guest.a.grants]\nhttp = [\"https://x.example\", \"x.example\"]".to_owned(), ["guest.a.grants.http", "`x.example`"]),
            ("[guest.a.grants]\nhttp = [\"https://x.example/v1*\"]".into(), ["guest.a.grants.http", "the path `/v1*`"]),
            (secret("\"https://x.example/v1\" = { header = \"x\", env = \"A\" }"), ["guest.a.secrets", "goes on after the host"]),
            (secret("\"https://*.example\" = { header = \"x\", env = \"A\" }"), ["guest.a.secrets", "`*.example`"]),
            (secret("\"https://x.example\" = { header = \"a b\", env = \"A\" }"), ["https://x.example", "`a b`"]),
            (secret("\"https://x.example\" = { header = \"Host\", env = \"A\" }"), ["https://x.example", "`Host`"]),
            (secret("\"https://x.example\" = { header = \"content-length\", env = \"A\" }"), ["https://x.example", "`content-length`"]),
            (secret("\"https://x.example\" = { header = \"x\", env = \"A\", prefix = \"a\\nb\" }"), ["https://x.example", "prefix"]),
            (secret("\"https://x.example\" = { header = \"x\" }"), ["https://x.example", "either `env` or `file`"]),
            (secret("\"https://x.example\" = { header = \"x\", env = \"A\", file = \"b\" }"), ["https://x.example", "either"]),
            (
                secret(
                    "\"https://x.example\" = { header = \"x\", env = \"A\" }\n\"https://X.example:443\" = { header = \"y\", env = \"A\" }",
                ),
                ["https://X.example:443", "twice"],
            ),
            (secret("\"http://x.example\" = { header = \"x\", env = \"A\" }"), ["http://x.example", "unencrypted"]),
            (secret("\"http://10.0.0.1\" = { header = \"x\", env = \"A\" }"), ["http://10.0.0.1", "`insecure = true`"]),
            (secret("\"http://localhost\" = { header = \"x\", env = \"A\" }"), ["http://localhost", "`insecure = true`"]),
            (secret("\"https://x.example\" = { header = \"x\", env = \"A\", insecure = true }"), ["https://x.example", "encrypted"]),
            ("[http]\nproxies = true".into(), ["proxies", ""]),
        ] {
            let said = refusal(&text);
            assert!(parts.iter().all(|part| said.contains(part)), "{said}");
        }
    }

    #[test]
    fn a_secret_goes_in_the_clear_within_this_machine_or_where_that_is_said() {
        for (origin, more) in [("http://127.0.0.1:8080", ""), ("http://[::1]", ""), ("http://x.example", ", insecure = true")] {
            let text = format!("[guest.a.secrets]\n\"{origin}\" = {{ header = \"x\", env = \"A\"{more} }}");
            assert!(Config::parse(&text).is_ok(), "{text}");
        }
    }

    #[test]
    fn a_secret_that_no_grant_covers_is_refused_before_it_is_read() {
        for grants in ["", "http = []", "http = [\"http://x.example\", \"https://x.example:8443\", \"https://*.x.example\"]"] {
            let text = format!(
                "[guest.a.grants]\n{grants}\n[guest.a.secrets]\n\"https://x.example\" = {{ header = \"x\", env = \"GUESTHOUSE_TEST_UNSET\" }}"
            );
            let guest = &Config::parse(&text).unwrap().guest["a"];
            let said = super::secrets("a", guest, &super::patterns("a", guest).unwrap()).unwrap_err().to_string();
            assert!(said.contains("guest `a`") && said.contains("https://x.example;") && said.contains("no grant"), "{said}");
        }
    }

    #[test]
    fn secrets_are_read_trimmed_and_never_shown() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key");
        let config = format!(
            "[guest.a.grants]\nhttp = [\"https://x.example\"]\n[guest.a.secrets]\n\"https://x.example\" = {{ header = \"authorization\", prefix = \"Bearer \", file = \"{}\" }}",
            file.display()
        );
        let guest = &Config::parse(&config).unwrap().guest["a"];
        for (content, refused) in [
            (b" hush-hush\n" as &[u8], None),
            (b"\n", Some("is empty")),
            (b"hush\nhush", Some("characters that a header cannot have")),
            (b"hush\xffhush", Some("not UTF-8")),
            (&[b'h'; 20_000], Some("more than 16384 bytes")),
        ] {
            std::fs::write(&file, content).unwrap();
            let read = super::secrets("a", guest, &super::patterns("a", guest).unwrap());
            let said = format!("{read:?}");
            assert!(!said.contains("hush"), "{said}");
            match refused {
                None => assert!(read.is_ok(), "{said}"),
                Some(part) => {
                    let said = read.unwrap_err().to_string();
                    let named = ["guest `a`", "https://x.example", "key", part].iter().all(|part| said.contains(part));
                    assert!(named, "{said}");
                }
            }
        }
    }

    #[test]
    fn a_secret_that_is_not_there_names_guest_origin_and_variable() {
        let config = "[guest.a.grants]\nhttp = [\"https://x.example\"]\n[guest.a.secrets]\n\"https://x.example\" = { header = \"x-key\", env = \"GUESTHOUSE_TEST_UNSET\" }";
        let guest = &Config::parse(config).unwrap().guest["a"];
        let said = super::secrets("a", guest, &super::patterns("a", guest).unwrap()).unwrap_err().to_string();
        for part in ["guest `a`", "https://x.example", "GUESTHOUSE_TEST_UNSET", "not set"] {
            assert!(said.contains(part), "{said}");
        }
    }
}
