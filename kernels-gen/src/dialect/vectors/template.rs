//! Templates of functions on vectors: text with marks → text for a number of lanes.

/// Expands each `$EACH{… $I …}`, once per lane, separated by commas, and each `$DO{… $I …}`, separated by spaces.
/// Compilers take several times as long for loops over lanes and generate the same code.
pub(in crate::dialect) fn for_each_lane(text: &str, lanes: usize) -> String {
    let each = |text: &str, mark: &str, separator: &str| {
        replace_marked(text, mark, |part| {
            let each = (0..lanes).map(|lane| part.replace("$I", &lane.to_string()));
            each.collect::<Vec<_>>().join(separator)
        })
    };
    each(&each(text, "$EACH{", ", "), "$DO{", " ")
}

/// Replaces a mark, the text after it and the matching closing brace.
pub(in crate::dialect) fn replace_marked(
    text: &str,
    mark: &str,
    replaced: impl Fn(&str) -> String,
) -> String {
    let mut parts = text.split(mark);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = closing(part);
        out.push_str(&replaced(&part[..end]));
        out.push_str(part.get(end + 1..).unwrap_or_default());
    }
    out
}

/// Returns the position of the brace that closes the one opened before `text`.
fn closing(text: &str) -> usize {
    let mut open = 1;
    for (at, byte) in text.bytes().enumerate() {
        open += i32::from(byte == b'{') - i32::from(byte == b'}');
        if open == 0 {
            return at;
        }
    }
    text.len()
}
