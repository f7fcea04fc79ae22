//! Tables of what a request state is bound to, and of what becomes of it in time.

mod forged;

use super::*;
use crate::seal::replay::MemoryReplays;
use crate::seal::{KEY_BYTES, SealKey};

const NOW: u64 = 1_000_000;
const TTL: u64 = 300;
const SKEW: u64 = 30;

fn ring(ids: &[(&str, u8)], revoked: &[&str]) -> Arc<Sealer> {
    let keys = ids.iter().map(|(id, byte)| SealKey { id: (*id).into(), secret: [*byte; KEY_BYTES] }).collect();
    Arc::new(Sealer::new(keys, None, revoked.iter().map(|id| (*id).to_owned()).collect()).unwrap())
}

fn states(single_use: bool) -> States {
    let replays = single_use.then(|| Box::new(MemoryReplays::new(100)) as Box<dyn Replays>);
    States::new(ring(&[("a", 1)], &[]), TTL, SKEW, replays)
}

fn binding() -> Binding<'static> {
    Binding {
        method: "tools/call",
        name: "deploy",
        arguments: "{}",
        principal: "local",
        tenant: "",
        endpoint: "/mcp",
        revision: "2026-07-28",
    }
}

fn json(text: &str) -> Json {
    RawValue::from_string(text.into()).unwrap()
}

fn rounds() -> Rounds {
    let error = RpcError { code: -1, message: "no".into(), data: Some(json("[1]")) };
    let answers = vec![("name".into(), Ok(json(r#"{"action":"decline"}"#))), ("roots".into(), Err(error))];
    Rounds { answers, state: Some(vec![0, 255, 7]), round: 3 }
}

fn open_questions() -> Vec<(String, Expected)> {
    let schema = serde_json::json!({ "type": "object", "properties": { "z": { "type": "string" }, "a": { "type": "number" } } });
    vec![
        ("form".into(), Expected::Form(Some(schema))),
        ("bare".into(), Expected::Form(None)),
        ("url".into(), Expected::Url),
        ("sample".into(), Expected::Sample),
        ("roots".into(), Expected::Roots),
    ]
}

fn refused(states: &States, to: &Binding<'_>, token: &str, now: u64) -> Option<Refusal> {
    states.open(to, token, now).err()
}

#[test]
fn what_was_sealed_comes_back() {
    let states = states(false);
    let token = states.seal(&binding(), &rounds(), &open_questions(), NOW).unwrap();
    let opened = states.open(&binding(), &token, NOW).ok().unwrap();
    assert_eq!(format!("{:?}", opened.rounds), format!("{:?}", rounds()));
    assert_eq!(opened.open, open_questions());
    for secret in ["decline", "deploy", "name"] {
        assert!(!token.contains(secret) && !token.contains(&STANDARD.encode(secret)));
    }
}

#[test]
fn it_opens_for_the_same_request_of_the_same_client_alone() {
    let states = states(false);
    let token = states.seal(&binding(), &rounds(), &[], NOW).unwrap();
    let others = [
        Binding { method: "prompts/get", ..binding() },
        Binding { name: "deploy2", ..binding() },
        Binding { arguments: r#"{"a":1,}"#, ..binding() },
        Binding { principal: "someone", ..binding() },
        Binding { tenant: "acme", ..binding() },
        Binding { endpoint: "/mcp/one", ..binding() },
        Binding { revision: "2027-01-01", ..binding() },
        // One part must not run into the next.
        Binding { method: "tools/calldeploy", name: "", ..binding() },
    ];
    for to in others {
        let expected = Some(StateProblem::BindingMismatch.into());
        assert_eq!(refused(&states, &to, &token, NOW), expected, "{} {} {}", to.method, to.name, to.arguments);
    }
    assert_eq!(refused(&states, &binding(), &token, NOW), None);
}

#[test]
fn it_lives_as_long_as_it_may() {
    let states = states(false);
    let token = states.seal(&binding(), &rounds(), &[], NOW).unwrap();
    for (now, expected) in [
        (NOW - SKEW - 1, Some(StateProblem::NotYetValid)),
        (NOW - SKEW, None),
        (NOW + TTL, None),
        (NOW + TTL + SKEW, None),
        (NOW + TTL + SKEW + 1, Some(StateProblem::Expired)),
        (u64::MAX, Some(StateProblem::Expired)),
    ] {
        assert_eq!(refused(&states, &binding(), &token, now), expected.map(Refusal::Problem), "at {now}");
    }
}

#[test]
fn every_segment_is_protected_and_keys_rotate() {
    let token = states(false).seal(&binding(), &rounds(), &[], NOW).unwrap();
    let segments: Vec<&str> = token.split('.').collect();
    for at in 0..segments.len() {
        let mut changed = segments.clone();
        let mut segment = changed[at].to_owned();
        let last = if segment.ends_with('A') { "B" } else { "A" };
        segment.replace_range(segment.len() - 1.., last);
        changed[at] = &segment;
        let expected = if at == 1 { StateProblem::KeyUnknown } else { StateProblem::Invalid };
        assert_eq!(refused(&states(false), &binding(), &changed.join("."), NOW), Some(expected.into()), "segment {at}");
    }
    for (sealer, expected) in [
        (ring(&[("b", 2), ("a", 1)], &[]), None),
        (ring(&[("b", 2)], &[]), Some(StateProblem::KeyUnknown)),
        (ring(&[("b", 2), ("a", 1)], &["a"]), Some(StateProblem::KeyRevoked)),
        (ring(&[("a", 9)], &[]), Some(StateProblem::Invalid)),
    ] {
        let states = States::new(sealer, TTL, SKEW, None);
        assert_eq!(refused(&states, &binding(), &token, NOW), expected.map(Refusal::Problem));
    }
    let cursor = ring(&[("a", 1)], &[]).seal("cursor tools/list /mcp", b"o5").unwrap();
    assert_eq!(refused(&states(false), &binding(), &cursor, NOW), Some(StateProblem::Invalid.into()));
    assert_eq!(refused(&states(false), &binding(), &"A".repeat(STATE_LEN_MAX + 1), NOW), Some(StateProblem::TooLarge.into()));
}

#[test]
fn what_would_be_too_large_is_not_sealed() {
    let rounds = Rounds { state: Some(vec![0; STATE_LEN_MAX]), ..Rounds::default() };
    assert!(states(false).seal(&binding(), &rounds, &[], NOW).is_err());
    let short = states(false).with_len_max(400);
    assert!(short.seal(&binding(), &Rounds::default(), &[], NOW).is_ok());
    assert!(short.seal(&binding(), &Rounds { state: Some(vec![0; 400]), ..Rounds::default() }, &[], NOW).is_err());
    assert_eq!(refused(&short, &binding(), &"A".repeat(401), NOW), Some(StateProblem::TooLarge.into()));
}

/// Uses a token once.
async fn spend<'a>(states: &'a States, token: &str, now: u64) -> Result<Used<'a>, Refusal> {
    states.open(&binding(), token, now)?.spend.unwrap().spend().await
}

#[tokio::test(flavor = "multi_thread")]
async fn of_twenty_uses_at_once_one_wins() {
    let states = Arc::new(states(true));
    let token: Arc<str> = states.seal(&binding(), &rounds(), &[], NOW).unwrap().into();
    let tries = (0..20).map(|_| {
        let (states, token) = (states.clone(), token.clone());
        tokio::spawn(async move {
            match spend(&states, &token, NOW).await {
                Ok(used) => {
                    used.keep();
                    true
                }
                Err(refusal) => {
                    assert_eq!(refusal, StateProblem::Replayed.into());
                    false
                }
            }
        })
    });
    let mut won = 0;
    for attempt in tries.collect::<Vec<_>>() {
        won += usize::from(attempt.await.unwrap());
    }
    assert_eq!(won, 1);
    // It is remembered for as long as it would open.
    assert_eq!(spend(&states, &token, NOW + TTL + SKEW).await.err(), Some(StateProblem::Replayed.into()));
}

#[tokio::test]
async fn a_use_that_left_no_trace_is_none() {
    let states = states(true);
    let token = states.seal(&binding(), &rounds(), &[], NOW).unwrap();
    drop(spend(&states, &token, NOW).await.ok().unwrap());
    spend(&states, &token, NOW).await.ok().unwrap().keep();
    assert_eq!(spend(&states, &token, NOW).await.err(), Some(StateProblem::Replayed.into()));
}

#[test]
fn canonical_json_is_the_same_however_it_was_written() {
    for (one, other, same) in [
        (r#"{"a":1,"b":[2]}"#, "{ \"b\" : [2.0], \"a\": 1 }", true),
        (r#"{"a":"\u00e4"}"#, r#"{"a":"ä"}"#, true),
        (r#"{"a":1e2}"#, r#"{"a":100}"#, true),
        (r#"{"a":1}"#, r#"{"a":"1"}"#, false),
        (r#"{"a":[1,2]}"#, r#"{"a":[2,1]}"#, false),
        (r#"{"a":null}"#, "{}", false),
        (r#"{"a":1.5}"#, r#"{"a":1}"#, false),
    ] {
        assert_eq!(canonical(&json(one)) == canonical(&json(other)), same, "{one} {other}");
    }
}
