//! Messages on a byte stream: a header with the length, an empty line, and JSON.

use serde_json::Value;
use std::io::{self, BufRead, Write};

/// The longest message in bytes: a file has at most 1 MiB, which JSON may escape.
const LONGEST: usize = 64 << 20;

/// A message, or the reason why its text is not JSON.
pub(crate) type Message = Result<Value, serde_json::Error>;

/// Reads one message; `None` at the end of the stream.
pub(crate) fn read(input: &mut impl BufRead) -> io::Result<Option<Message>> {
    let broken = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let mut length = None;
    let mut line = String::new();
    loop {
        line.clear();
        if input.read_line(&mut line)? == 0 {
            return match length {
                None => Ok(None),
                Some(_) => Err(broken("the stream ends in the header of a message")),
            };
        }
        let header = line.trim_end_matches(['\r', '\n']);
        if header.is_empty() {
            break;
        }
        if let Some((name, value)) = header.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            let bytes = value.trim().parse::<usize>().ok().filter(|bytes| *bytes <= LONGEST);
            length = Some(bytes.ok_or_else(|| broken("a message has no usable length"))?);
        }
    }
    let length = length.ok_or_else(|| broken("a message has no length"))?;
    let mut text = vec![0; length];
    input.read_exact(&mut text)?;
    Ok(Some(serde_json::from_slice(&text)))
}

/// Writes one message.
pub(crate) fn write(output: &mut impl Write, message: &Value) -> io::Result<()> {
    let text = message.to_string();
    write!(output, "Content-Length: {}\r\n\r\n{text}", text.len())?;
    output.flush()
}
