//! The language of `.wf` files and of [`weak_form!`](crate::weak_form): its reference, for reading and as text.
//!
//! The page `docs/language.md` follows; [`PAGE`] is its text, [`sections`] are its independent parts.
#![doc = include_str!("../docs/language.md")]

/// The reference as Markdown.
pub const PAGE: &str = include_str!("../docs/language.md");

/// Returns the sections of the page: each by the first word of its heading in lower case, with its heading and its
/// text.
pub fn sections() -> impl Iterator<Item = (String, &'static str, &'static str)> {
    let starts = PAGE.match_indices("\n## ").map(|(at, _)| at + 1);
    starts.map(|start| {
        let rest = &PAGE[start..];
        let text = rest.find("\n## ").map_or(rest, |end| &rest[..=end]);
        let heading = text.lines().next().unwrap_or_default().trim_start_matches(['#', ' ']);
        let name = heading.split(' ').next().unwrap_or_default().to_ascii_lowercase();
        (name, heading, text)
    })
}
