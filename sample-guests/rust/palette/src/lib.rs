//! Shades of a colour, which a client with MCP Apps shows as a strip instead of as text.

use guesthouse::{Json, Result, data, ensure};

#[derive(Default)]
struct Palette;

#[data]
struct Shades {
    /// From dark to light, each as #rrggbb.
    shades: Vec<String>,
}

#[guesthouse::server]
impl Palette {
    /// Makes shades of a colour, from dark to light.
    #[tool(title = "Make shades", read_only, idempotent, open_world = false, meta = r#"{"ui":{"resourceUri":"ui://palette/strip.html"}}"#)]
    fn make_shades(
        /// The colour, as #rrggbb.
        #[arg(pattern = "^#[0-9a-fA-F]{6}$")]
        color: &str,
        /// How many shades; 7 if not given.
        #[arg(min = 2, max = 32)]
        count: Option<u32>,
    ) -> Result<(String, Json<Shades>)> {
        let rgb = parse(color);
        ensure!(rgb.is_some(), "{color} is no colour such as #3366cc.");
        let shades = shades(rgb.unwrap_or_default(), count.unwrap_or(7));
        Ok((shades.join(" "), Json(Shades { shades })))
    }

    /// A strip of colours that fills itself with what make_shades answered.
    #[resource(uri = "ui://palette/strip.html", mime = "text/html;profile=mcp-app")]
    fn strip() -> &'static str {
        include_str!("../strip.html")
    }
}

fn parse(color: &str) -> Option<[u8; 3]> {
    let digits = color.strip_prefix('#').filter(|digits| digits.len() == 6)?;
    let part = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    Some([part(0)?, part(2)?, part(4)?])
}

/// The colour mixed with black in the first half of the strip, with white in the second.
fn shades(rgb: [u8; 3], count: u32) -> Vec<String> {
    let mix = |part: u8, at: f64| {
        let part = f64::from(part);
        let mixed = if at < 0.5 { part * at * 2.0 } else { part + (255.0 - part) * (at - 0.5) * 2.0 };
        mixed.round() as u8
    };
    (1..=count)
        .map(|step| {
            let [r, g, b] = rgb.map(|part| mix(part, f64::from(step) / f64::from(count + 1)));
            format!("#{r:02x}{g:02x}{b:02x}")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tool_answers_for_people_and_for_the_view() {
        let (text, Json(Shades { shades })) = Palette::make_shades("#3366cc", Some(2)).ok().unwrap();
        assert_eq!(text, shades.join(" "));
        assert!(Palette::make_shades("blue", None).is_err());
        assert!(Palette::strip().contains("ui/notifications/tool-result"));
    }

    #[test]
    fn shades_go_from_dark_to_light_through_the_colour() {
        assert_eq!(shades([0x33, 0x66, 0xcc], 3), ["#1a3366", "#3366cc", "#99b3e6"]);
        assert_eq!(shades([0, 0, 0], 2).len(), 2);
        for (text, rgb) in [("#3366cc", Some([0x33, 0x66, 0xcc])), ("3366cc", None), ("#3366c", None), ("#3366cg", None), ("#€€", None)] {
            assert_eq!(parse(text), rgb, "{text}");
        }
    }
}
