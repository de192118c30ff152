//! PNG files → one animated PNG.

/// Joins PNG files of one size to one animated PNG with so many frames per second.
pub(crate) fn animated(
    frames: &[Vec<u8>],
    rate: u16,
) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let first = frames.first().ok_or("an animation needs a frame")?;
    let (info, mut pixels) = decoded(first)?;
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, info.width, info.height);
    encoder.set_color(info.color_type);
    encoder.set_depth(info.bit_depth);
    encoder.set_animated(u32::try_from(frames.len())?, 0)?;
    encoder.set_frame_delay(1, rate)?;
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&pixels)?;
    for frame in &frames[1..] {
        let next;
        (next, pixels) = decoded(frame)?;
        if (next.width, next.height) != (info.width, info.height) {
            return Err("the frames of an animation differ in size".into());
        }
        writer.write_image_data(&pixels)?;
    }
    writer.finish()?;
    Ok(file)
}

/// Decodes a PNG file.
fn decoded(file: &[u8]) -> Result<(png::OutputInfo, Vec<u8>), Box<dyn std::error::Error>> {
    let mut reader = png::Decoder::new(std::io::Cursor::new(file)).read_info()?;
    let size = reader.output_buffer_size().ok_or("a frame is too large")?;
    let mut pixels = vec![0; size];
    let info = reader.next_frame(&mut pixels)?;
    pixels.truncate(info.buffer_size());
    Ok((info, pixels))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames are read back by the decoder, in their order and with the delay.
    #[test]
    fn frames_are_read_back() {
        let frame = |grey: u8| {
            let mut file = Vec::new();
            let mut encoder = png::Encoder::new(&mut file, 3, 2);
            encoder.set_color(png::ColorType::Rgb);
            encoder.set_depth(png::BitDepth::Eight);
            let mut writer = encoder.write_header().expect("a header");
            writer.write_image_data(&[grey; 18]).expect("pixels");
            writer.finish().expect("a file");
            file
        };
        let file = animated(&[frame(1), frame(2), frame(3)], 10).expect("an animation");
        let decoder = png::Decoder::new(std::io::Cursor::new(&file));
        let mut reader = decoder.read_info().expect("a header");
        assert_eq!(reader.info().animation_control().map(|own| own.num_frames), Some(3));
        for grey in 1..=3 {
            let mut pixels = vec![0; 18];
            reader.next_frame(&mut pixels).expect("a frame");
            assert_eq!(pixels, [grey; 18]);
            let control = reader.info().frame_control().expect("a frame");
            assert_eq!((control.delay_num, control.delay_den), (1, 10));
        }
        assert!(animated(&[], 10).is_err());
    }
}
