//! What the compiler shows for mistakes inside the macro.

#[test]
fn mistakes_are_underlined_at_their_tokens() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/*.rs");
}
