//! What the compiler says about common mistakes. `TRYBUILD=overwrite cargo test --test ui` writes the expected texts anew.

#[test]
fn mistakes_are_pointed_at_with_their_remedy() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
