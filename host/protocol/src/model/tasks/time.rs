//! Times of tasks as text: ISO 8601, in UTC, to the millisecond.

const MS_PER_DAY: u64 = 86_400_000;

/// Days from 0000-03-01, where this reckoning begins, to 1970-01-01.
const DAYS_TO_1970: u64 = 719_468;

/// Days in four centuries, after which the calendar repeats itself.
const DAYS_PER_ERA: u64 = 146_097;

/// Milliseconds since 1970 as `2026-07-28T01:02:03.004Z`.
pub fn iso_8601(ms: u64) -> String {
    let (year, month, day) = date(ms / MS_PER_DAY);
    let of_day = ms % MS_PER_DAY;
    let (hour, minute) = (of_day / 3_600_000, of_day / 60_000 % 60);
    let (second, milli) = (of_day / 1_000 % 60, of_day % 1_000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

/// The date so many days after 1970-01-01. Years are taken to begin in March, so that a leap day is their last.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days.saturating_add(DAYS_TO_1970);
    let (era, day_of_era) = (days / DAYS_PER_ERA, days % DAYS_PER_ERA);
    // Leap days so far in the era: every 4 years one, every 100 years none, and the last year of the era has one again.
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // From March on, every five months have 153 days.
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let (month, later) = if month_from_march < 10 { (month_from_march + 3, 0) } else { (month_from_march - 9, 1) };
    (era.saturating_mul(400).saturating_add(year_of_era).saturating_add(later), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_709_164_800_000, "2024-02-29T00:00:00.000Z"),
            (1_785_200_523_004, "2026-07-28T01:02:03.004Z"),
            (1_798_761_599_999, "2026-12-31T23:59:59.999Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(iso_8601(ms), text);
        }
    }
}
