//! Handlers that are run as tasks.

use std::thread::sleep;
use std::time::Duration;

use guesthouse::{Ctx, Elicited, Result, data};

/// Seconds between two reports.
const STEP_S: f64 = 0.25;

#[data]
struct Confirmation {
    /// Whether to delete it.
    confirm: bool,
}

/// What the suite answers to both questions.
#[data]
struct Named {
    /// Any name.
    name: String,
}

/// Waits, and reports how far it is.
pub fn wait(ctx: &Ctx, seconds: f64) {
    let mut waited = 0.0;
    while waited < seconds {
        let step = STEP_S.min(seconds - waited);
        sleep(Duration::from_secs_f64(step));
        waited += step;
        ctx.progress(waited, Some(seconds), None);
    }
}

pub fn confirm_delete(ctx: &Ctx, filename: &str) -> Result<String> {
    match ctx.elicit::<Confirmation>("confirm", &format!("Delete {filename}?"))? {
        Elicited::Accept(Confirmation { confirm: true }) => Ok(format!("Deleted {filename}")),
        Elicited::Accept(_) | Elicited::Decline | Elicited::Cancel => Ok(format!("Kept {filename}")),
    }
}

pub fn two_questions(ctx: &Ctx) -> Result<String> {
    let questions = (ctx.elicit::<Named>("first", "The first name?"), ctx.elicit::<Named>("second", "The second name?"));
    let (first, second) = ctx.together(questions)?;
    let name = |answer| match answer {
        Elicited::Accept(Named { name }) => name,
        Elicited::Decline | Elicited::Cancel => "nothing".to_owned(),
    };
    Ok(format!("{} and {}", name(first), name(second)))
}
