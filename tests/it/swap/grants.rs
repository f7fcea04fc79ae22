//! Grants that are taken back while a host runs, and versions that are not what they were.

use super::*;

#[tokio::test]
async fn a_table_that_takes_a_grant_back_and_is_refused_ends_the_guest() {
    let kit = Kit::start().await;
    let table = |text: &str| GuestSource { config: toml::from_str(text).unwrap(), ..kit_of(&kit) };
    kit.host.configure(table("grants = { env = [\"TZ\"] }")).await.unwrap();
    let wrong = "config = { x = 1 }\nlimits = { memory = \"64KiB\" }";
    // Nothing is taken back here: the guest is served as before.
    let kept = format!("{wrong}\ngrants = {{ env = [\"TZ\", \"LANG\"] }}");
    assert!(kit.host.configure(table(&kept)).await.is_err());
    assert!(kit.host.serves("kit"));
    let said = format!("{:#}", kit.host.configure(table(wrong)).await.unwrap_err());
    assert!(said.contains("served no more") && said.contains("limits.memory"), "{said}");
    assert!(!kit.host.serves("kit"));
    kit.host.configure(table("")).await.unwrap();
    assert!(kit.host.serves("kit"));
}

#[tokio::test]
async fn what_lies_where_a_version_was_kept_is_not_served_for_it() {
    let kit = Kit::start().await;
    let first = kit.served();
    kit.swapped(kit.other_build(b'7')).await;
    let versions = kit.folder.path().join("versions");
    let folder = std::fs::read_dir(&versions).unwrap().next().unwrap().unwrap().path();
    std::fs::copy(component(HOSTILE), folder.join(format!("{first}.wasm"))).unwrap();
    let said = format!("{:#}", kit.host.swap("kit", Component::Previous { restore_state: false }).await.unwrap_err());
    assert!(said.contains("is not what was kept there"), "{said}");
}
