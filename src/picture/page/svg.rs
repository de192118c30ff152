//! A page as SVG: lines and text stay vectors, pixels are embedded as PNG.

use std::fmt::Write as _;

use super::{Anchor, Image, Ink, Mark, Page, PageError, Point, Stroke, Text, png};

/// Returns the text of an SVG file.
pub(super) fn written(page: &Page) -> Result<String, PageError> {
    let (width, height) = (short(page.width), short(page.height));
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"DejaVu Sans, Verdana, sans-serif\">\n\
         <title>{}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
        escaped(&page.title)
    );
    for (number, mark) in page.marks.iter().enumerate() {
        match mark {
            Mark::Area { points, ink } => {
                let points: Vec<String> = points.iter().map(|&point| pair(point)).collect();
                line(
                    &mut text,
                    &format!("<polygon points=\"{}\" {}/>", points.join(" "), fill(*ink)),
                );
            }
            Mark::Lines { chains, stroke } => lines(&mut text, chains, stroke),
            Mark::Text(mark) => line(&mut text, &label(mark)),
            Mark::Image { at, image } => line(&mut text, &embedded(*at, image)?),
            Mark::Ramp { at, size, colours } => ramp(&mut text, number, *at, *size, colours),
        }
    }
    text.push_str("</svg>\n");
    Ok(text)
}

fn line(text: &mut String, mark: &str) {
    text.push_str(mark);
    text.push('\n');
}

fn lines(text: &mut String, chains: &[Vec<Point>], stroke: &Stroke) {
    let mut path = String::new();
    for points in chains {
        let points: Vec<String> = points.iter().map(|&point| pair(point)).collect();
        if !points.is_empty() {
            path.push('M');
            path.push_str(&points.join("L"));
        }
    }
    let Ink { rgb: [r, g, b], opacity } = stroke.ink;
    let faded = match opacity < 1.0 {
        true => format!(" stroke-opacity=\"{}\"", short(opacity)),
        false => String::new(),
    };
    let ends = match stroke.dash {
        Some([dash, gap]) => format!(" stroke-dasharray=\"{} {}\"", short(dash), short(gap)),
        None => " stroke-linecap=\"round\"".to_owned(),
    };
    let width = short(stroke.width);
    line(
        text,
        &format!(
            "<path d=\"{path}\" fill=\"none\" stroke=\"#{r:02x}{g:02x}{b:02x}\" \
             stroke-width=\"{width}\" stroke-linejoin=\"round\"{ends}{faded}/>"
        ),
    );
}

fn label(text: &Text) -> String {
    let anchor = match text.anchor {
        Anchor::Start => "",
        Anchor::Middle => " text-anchor=\"middle\"",
        Anchor::End => " text-anchor=\"end\"",
    };
    let [x, y] = text.at.map(short);
    let turn =
        if text.turned { format!(" transform=\"rotate(-90 {x} {y})\"") } else { String::new() };
    let (size, fill) = (short(text.size), fill(Ink::new(text.rgb)));
    let words = escaped(&text.text);
    format!("<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\" {fill}{anchor}{turn}>{words}</text>")
}

fn embedded(at: Point, image: &Image) -> Result<String, PageError> {
    let [x, y] = at.map(|c| short(c.round()));
    let (width, height, data) = (image.width, image.height, base64(&png::of_image(image)?));
    Ok(format!(
        "<image x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" \
         href=\"data:image/png;base64,{data}\"/>"
    ))
}

fn ramp(text: &mut String, number: usize, at: Point, size: Point, colours: &[[u8; 3]]) {
    let _ =
        write!(text, "<linearGradient id=\"ramp{number}\" x1=\"0\" y1=\"1\" x2=\"0\" y2=\"0\">");
    let last = colours.len().saturating_sub(1).max(1) as f64;
    for (stop, [r, g, b]) in colours.iter().enumerate() {
        let offset = short(100.0 * stop as f64 / last);
        let _ = write!(text, "<stop offset=\"{offset}%\" stop-color=\"#{r:02x}{g:02x}{b:02x}\"/>");
    }
    let ([x, y], [width, height]) = (at.map(short), size.map(short));
    let mark = format!(
        "</linearGradient>\n<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" \
         fill=\"url(#ramp{number})\"/>"
    );
    line(text, &mark);
}

fn fill(Ink { rgb: [r, g, b], opacity }: Ink) -> String {
    let faded = match opacity < 1.0 {
        true => format!(" fill-opacity=\"{}\"", short(opacity)),
        false => String::new(),
    };
    format!("fill=\"#{r:02x}{g:02x}{b:02x}\"{faded}")
}

fn pair([x, y]: Point) -> String {
    format!("{} {}", short(x), short(y))
}

/// Formats a number to a hundredth, without trailing zeros.
fn short(x: f64) -> String {
    let text = format!("{x:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Escapes a text for XML.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            letter if letter.is_control() => out.push('\u{FFFD}'),
            letter => out.push(letter),
        }
    }
    out
}

/// Encodes as in RFC 4648, section 4.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let bits = (0..3).fold(0u32, |bits, i| bits << 8 | u32::from(*three.get(i).unwrap_or(&0)));
        for digit in 0..4 {
            match digit <= three.len() {
                true => text.push(char::from(DIGITS[(bits >> (18 - 6 * digit) & 63) as usize])),
                false => text.push('='),
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors of RFC 4648, section 10.
    #[test]
    fn bytes_are_written_in_base_64() {
        let vectors = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (bytes, text) in vectors {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn numbers_are_short_and_text_is_no_markup() {
        assert_eq!([1.0, 0.5, -0.001, 12.345].map(short), ["1", "0.5", "0", "12.35"]);
        assert_eq!(escaped("a<b> & \"c\"\u{7}"), "a&lt;b&gt; &amp; &quot;c&quot;\u{FFFD}");
    }
}
