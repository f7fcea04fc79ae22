//! Writes the world of a guest that exports some of the contract's interfaces.

/// The contract's package, as this build of Guesthouse has it.
pub(super) const CONTRACT_PACKAGE: &str = "guesthouse:mcp@0.1.0";

/// The text of a world that exports these interfaces of the contract, and imports what a handler may call besides `imports`.
pub(super) fn world(name: &str, exports: &[String], imports: &[&str]) -> String {
    let mut text = format!("package {CONTRACT_PACKAGE};\n\nworld {name} {{\n  import context;\n  import changes;\n");
    for import in imports {
        text.push_str(&format!("  import {import};\n"));
    }
    for export in exports {
        text.push_str(&format!("  export {export};\n"));
    }
    text.push_str("}\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::parse_contract;

    #[test]
    fn the_world_has_the_exports_asked_for() {
        let text = world("some-guest", &["lifecycle".into(), "prompts".into()], &[]);
        let (resolve, package) = parse_contract(&text).unwrap();
        let world = resolve.select_world(&[package], Some("some-guest")).unwrap();
        assert_eq!(resolve.worlds[world].exports.len(), 2);
    }

    #[test]
    fn the_package_is_the_contract() {
        let (resolve, package) = parse_contract("").unwrap();
        assert_eq!(resolve.packages[package].name.to_string(), CONTRACT_PACKAGE);
    }
}
