//! What tools do: each row is called over the whole host.

use super::attack::Attack;
use super::stage::{Era, Stage, Transport, beside_echo, guest};
use super::{Code, Expected, Harmless, Kind, LeftOut, Stopped, ToolError, by_era};
use serde_json::json;

/// Most notifications of one kind that a call may send, in the configuration below.
const NOISE_MAX: usize = 20;
const TABLE: &str = "limits = { cpu = \"500ms\", wall = \"20s\", memory = \"16MiB\", output = \"1MiB\", logs = 20, progress = 20 }";

const CRASH: Expected = Kind("handler_crash");
const INVALID: Expected = Kind("invalid_output");

/// How many tools are not served because of their schemas.
pub const LEFT_OUT: usize = 7;

fn expected(attack: Attack, era: Era) -> Expected {
    match attack {
        Attack::Echo | Attack::SchemaVerbatim | Attack::SchemaSlow => Harmless("{}"),
        Attack::Loop => Stopped("handler_timeout"),
        Attack::Grow => Kind("handler_memory"),
        Attack::Recurse | Attack::Trap | Attack::Panic => CRASH,
        Attack::Huge | Attack::Alias => Kind("output_too_large"),
        Attack::LogFlood | Attack::LogLong | Attack::LogLongName | Attack::DeepLog => Harmless("logged"),
        Attack::Progress => Harmless("Ok(())"),
        Attack::ProgressFlood => Harmless("\"0\""),
        Attack::ProgressFalling => Harmless("[true, false, false, false, false, true]"),
        Attack::ProgressQuick => Harmless("true"),
        Attack::Changes | Attack::ChangesFlood => Harmless("announced"),
        // It asks nothing, which is nothing that a session could be asked.
        Attack::ChangesThenAsk => by_era(era, Harmless("input_required"), ToolError),
        Attack::QuestionTwice => INVALID,
        Attack::QuestionFlood => Kind("output_too_large"),
        // The session has no such capability, and its guest's state goes nowhere.
        Attack::StateHuge => by_era(era, Kind("output_too_large"), ToolError),
        // Nothing was asked before, and so nothing is answered.
        Attack::Context => Harmless("None None true"),
        Attack::NotFound => Code(-32602),
        Attack::InvalidParams => ToolError,
        Attack::MissingCapability => by_era(era, Code(-32021), ToolError),
        Attack::Internal | Attack::ChangesThenFail => Kind("handler_error"),
        Attack::Rpc => Code(7),
        Attack::BadJson | Attack::DeepJson | Attack::MetaNoObject | Attack::WrongOutput | Attack::WithoutOutput => INVALID,
        // Valid, and more than a client's parser can take.
        Attack::DeepStructured | Attack::DeepMeta | Attack::DeepError | Attack::DeepQuestion | Attack::HugeNumber => INVALID,
        Attack::LongNumber => Harmless("\"a\":0.0"),
        Attack::DuplicateKeys => Harmless("__proto__"),
        Attack::BadText
        | Attack::Surrogate
        | Attack::BadTextInError
        | Attack::BadTextInJson
        | Attack::BadTextInLog
        | Attack::BadTextInProgress
        | Attack::BadTextInChange => CRASH,
        Attack::SparseGrowth => Harmless("0 dirty of 128 pages"),
        Attack::Print | Attack::PrintFlood => Harmless("printed"),
        // This build has no WASI, and so no clock to ask. `host/tests/guest/wasi.rs` looks at the other.
        Attack::Surroundings => CRASH,
        Attack::Work => Harmless("10000000"),
        Attack::SchemaNoJson
        | Attack::SchemaNoObject
        | Attack::SchemaInvalid
        | Attack::SchemaFarReference
        | Attack::SchemaDeep
        | Attack::SchemaHugeNumber
        | Attack::HeaderInvalid => LeftOut,
        // The last of equal keys counts, as everywhere in the host: an object that lacks `a`.
        Attack::SchemaDuplicateKeys => ToolError,
        Attack::Trace => Harmless("Some(("),
        Attack::Count => Harmless("\"1\""),
        Attack::Who => Harmless("local"),
    }
}

async fn check(transport: Transport, era: Era) {
    let mut stage = Stage::open(transport, era, &beside_echo(&guest("hostile", "tests/guests/hostile", TABLE))).await;
    let mut wrong = Vec::new();
    for attack in Attack::ALL {
        let name = attack.name();
        let ran = stage.attack("tools/call", json!({ "name": format!("hostile_{name}"), "arguments": {} })).await;
        wrong.extend(expected(*attack, era).problem(&ran).map(|problem| format!("{name}: {problem}")));
        // A flood arrives as far as it may, and no further.
        let least = if matches!(attack, Attack::LogFlood | Attack::ProgressFlood) { NOISE_MAX / 2 } else { 0 };
        if !(least..=NOISE_MAX).contains(&ran.noise) {
            wrong.push(format!("{name}: {} notifications", ran.noise));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_http() {
    check(Transport::Http, Era::Modern).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_http_in_a_session() {
    check(Transport::Http, Era::Handshake).await;
}

#[tokio::test]
async fn over_stdio() {
    check(Transport::Stdio, Era::Modern).await;
}

#[tokio::test]
async fn over_stdio_in_a_session() {
    check(Transport::Stdio, Era::Handshake).await;
}
