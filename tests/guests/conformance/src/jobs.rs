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

#[data]
struct Name {
    /// A name.
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
    let questions = (ctx.elicit::<Name>("name", "What is your name?"), ctx.elicit::<Confirmation>("confirm", "Shall we go on?"));
    let (name, confirmed) = ctx.together(questions)?;
    let name = match name {
        Elicited::Accept(Name { name }) => name,
        Elicited::Decline | Elicited::Cancel => "nobody".to_owned(),
    };
    match confirmed {
        Elicited::Accept(Confirmation { confirm: true }) => Ok(format!("{name} goes on")),
        Elicited::Accept(_) | Elicited::Decline | Elicited::Cancel => Ok(format!("{name} stops")),
    }
}
