//! `guesthouse token`: makes a bearer token, and the entry by which the host knows it.

use super::{print, tell};
use crate::config::auth::{TokenConfig, TokenHash};
use crate::seal::random;
use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use clap::Args;
use std::process::ExitCode;

/// Random bytes of a token: as many as its hash has.
const TOKEN_BYTES: usize = 32;

/// How tokens begin, so that people and programs recognise one where it should not be.
const PREFIX: &str = "gh_";

/// Arguments of `token`.
#[derive(Debug, Args)]
pub(super) struct Token {
    /// What to call the token, such as `alice-laptop`.
    #[arg(value_name = "NAME")]
    name: String,
    /// Who calls with it; the same as NAME, if absent.
    #[arg(long, value_name = "NAME")]
    principal: Option<String>,
    /// The organisation that the principal belongs to.
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
}

impl Token {
    pub(super) fn run(self) -> Result<ExitCode> {
        let Token { name, principal, tenant } = self;
        let random: [u8; TOKEN_BYTES] = random().context("cannot get randomness from the system")?;
        let token = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(random));
        let principal = principal.unwrap_or_else(|| name.clone());
        let entry = TokenConfig { name, hash: TokenHash::of(&token), principal, tenant };
        entry.check()?;
        tell("The token, which is shown this once, and its entry for `tokens` in the table [auth] (with kind = \"tokens\"):");
        print(&token)?;
        print(&format!("{},", entry.to_toml()))?;
        Ok(ExitCode::SUCCESS)
    }
}
