//! Properties of what clients make up, cut, change, or might get to be sealed: it opens never, and never panics.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

/// A payload that opens, as text that can be changed.
fn payload() -> Value {
    let states = states(false);
    let token = states.seal(&binding(), &rounds(), &open_questions(), NOW).unwrap();
    serde_json::from_slice(&states.sealer.open(PURPOSE, &token, STATE_LEN_MAX).unwrap()).unwrap()
}

/// What becomes of a payload that somebody else had sealed.
fn opened(payload: &[u8]) -> Option<Rounds> {
    let states = states(true);
    let token = states.sealer.seal(PURPOSE, payload).unwrap();
    states.open(&binding(), &token, NOW).ok().map(|opened| opened.rounds)
}

/// Any small JSON.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((".{0,4}", inner), 0..4).prop_map(|members| members.into_iter().collect())
        ]
    })
}

proptest! {
    #[test]
    fn whatever_a_client_makes_up_does_not_open(text in ".*", parts in vec("[A-Za-z0-9_-]{0,40}", 0..6)) {
        for token in [text, parts.join("."), format!("gh1.a.{}", parts.join("."))] {
            prop_assert!(refused(&states(true), &binding(), &token, NOW).is_some());
        }
    }

    #[test]
    fn what_is_cut_or_changed_does_not_open(at in any::<prop::sample::Index>(), bit in 0..8_u8, more in "[A-Za-z0-9_.-]{1,4}", now in any::<u64>()) {
        let states = states(true);
        let token = states.seal(&binding(), &rounds(), &open_questions(), NOW).unwrap();
        let at = at.index(token.len());
        let mut flipped = token.clone().into_bytes();
        flipped[at] ^= 1 << bit;
        for forged in [token[..at].to_owned(), token[at + 1..].to_owned(), String::from_utf8_lossy(&flipped).into_owned(), format!("{token}{more}")] {
            prop_assert!(refused(&states, &binding(), &forged, NOW).is_some(), "{forged}");
            prop_assert!(refused(&states, &binding(), &forged, now).is_some(), "{forged}");
        }
        // None of them used the token up.
        prop_assert_eq!(refused(&states, &binding(), &token, NOW), None);
    }

    #[test]
    fn bytes_under_our_own_seal_are_no_state(bytes in vec(any::<u8>(), 0..256), json in any_json()) {
        prop_assert!(opened(&bytes).is_none());
        prop_assert!(opened(json.to_string().as_bytes()).is_none());
    }

    #[test]
    fn a_member_of_another_kind_never_panics(member in 0..9_usize, other in any_json()) {
        let mut payload = payload();
        let names: Vec<String> = payload.as_object().unwrap().keys().cloned().collect();
        let name = &names[member % names.len()];
        payload[name] = other.clone();
        if let Some(rounds) = opened(payload.to_string().as_bytes()) {
            // What it is bound to cannot be changed, and what is there is what the payload says.
            prop_assert!(name != "to", "{}", other);
            prop_assert_eq!(u64::from(rounds.round), payload["round"].as_u64().unwrap());
            prop_assert_eq!(rounds.answers.len(), payload["answers"].as_array().unwrap().len());
        }
        payload.as_object_mut().unwrap().remove(name);
        prop_assert!(opened(payload.to_string().as_bytes()).is_none() || name == "state");
    }
}
