//! Reads PNG and JPEG.

use super::picture::Picture;
use crate::data::idx::ImageShape;
use png::{BitDepth, ColorType, Limits, Transformations};
use std::io::Cursor;
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

/// The most bytes of one image while it is decoded.
const DECODED_BYTES_MAX: usize = 256 << 20;

/// The longest side of an image before it is resized.
const SIDE_MAX: usize = 16_384;

/// The formats that are read.
pub(super) enum Format {
    Png,
    Jpeg,
}

impl Format {
    /// The format that the first bytes tell.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(Self::Png),
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            _ => None,
        }
    }

    /// Decodes an image to grey or colours of 8 bits a sample.
    ///
    /// # Errors
    /// Says why the image cannot be decoded.
    pub(super) fn decode(self, bytes: &[u8]) -> Result<Picture, String> {
        match self {
            Self::Png => decode_png(bytes),
            Self::Jpeg => decode_jpeg(bytes),
        }
    }
}

/// Palettes and samples of 1, 2 and 4 bits become bytes, samples of 16 bits are scaled to bytes, and
/// transparency is left out. Of an animation it is the first image.
fn decode_png(bytes: &[u8]) -> Result<Picture, String> {
    let limits = Limits {
        bytes: DECODED_BYTES_MAX,
    };
    let mut decoder = png::Decoder::new_with_limits(Cursor::new(bytes), limits);
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    decoder.set_transformations(Transformations::EXPAND);
    let said = |error: png::DecodingError| error.to_string();
    let info = decoder.read_header_info().map_err(said)?;
    let (height, width) = (info.height as usize, info.width as usize);
    check_sides(height, width)?;
    let mut reader = decoder.read_info().map_err(said)?;
    let mut samples = vec![0; checked_bytes(reader.output_buffer_size())?];
    let info = reader.next_frame(&mut samples).map_err(said)?;
    if info.bit_depth == BitDepth::Sixteen {
        samples = scaled(&samples);
    }
    let (channels, with_alpha) = match info.color_type {
        ColorType::Grayscale => (1, false),
        ColorType::GrayscaleAlpha => (1, true),
        ColorType::Rgba => (3, true),
        // A palette was replaced by its colours.
        ColorType::Rgb | ColorType::Indexed => (3, false),
    };
    if with_alpha {
        let pixels = samples.chunks_exact(channels + 1);
        samples = pixels
            .flat_map(|pixel| &pixel[..channels])
            .copied()
            .collect();
    }
    let shape = ImageShape {
        height,
        width,
        channels,
    };
    Ok(Picture { shape, samples })
}

/// Samples of 16 bits, the higher byte first, on the scale of 8 bits: round(255 v / 65535).
fn scaled(samples: &[u8]) -> Vec<u8> {
    let (samples, _) = samples.as_chunks();
    let scaled = |sample: &[u8; 2]| ((u32::from(u16::from_be_bytes(*sample)) + 128) / 257) as u8;
    samples.iter().map(scaled).collect()
}

/// All other colours than grey, CMYK too, are converted to red, green and blue.
fn decode_jpeg(bytes: &[u8]) -> Result<Picture, String> {
    let options = DecoderOptions::default()
        .set_strict_mode(false)
        .set_max_width(usize::MAX)
        .set_max_height(usize::MAX);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    decoder
        .decode_headers()
        .map_err(|error| error.to_string())?;
    let info = decoder.info().ok_or("it has no header")?;
    let (height, width) = (usize::from(info.height), usize::from(info.width));
    check_sides(height, width)?;
    let (colours, channels) = match decoder.input_colorspace() {
        Some(ColorSpace::Luma) => (ColorSpace::Luma, 1),
        _ => (ColorSpace::RGB, 3),
    };
    decoder.set_options(options.jpeg_set_out_colorspace(colours));
    checked_bytes(decoder.output_buffer_size())?;
    let shape = ImageShape {
        height,
        width,
        channels,
    };
    let samples = decoder.decode().map_err(|error| error.to_string())?;
    if samples.len() == shape.area() {
        Ok(Picture { shape, samples })
    } else {
        Err(format!("its colours cannot be converted to {colours:?}"))
    }
}

fn check_sides(height: usize, width: usize) -> Result<(), String> {
    match height.max(width) <= SIDE_MAX {
        true => Ok(()),
        false => Err(format!(
            "it is {height} x {width}, and a side may have {SIDE_MAX} pixels"
        )),
    }
}

fn checked_bytes(bytes: Option<usize>) -> Result<usize, String> {
    let fits = bytes.filter(|bytes| *bytes <= DECODED_BYTES_MAX);
    fits.ok_or_else(|| format!("decoded it takes more than {} MiB", DECODED_BYTES_MAX >> 20))
}

#[cfg(test)]
mod tests {
    use super::super::png_of;
    use super::*;
    use png::Encoder;

    fn decode(bytes: &[u8]) -> Picture {
        Format::of(bytes).unwrap().decode(bytes).unwrap()
    }

    fn samples(size: [u32; 2], colour: ColorType, depth: BitDepth, bytes: &[u8]) -> Vec<u8> {
        let mut png = Vec::new();
        let mut encoder = Encoder::new(&mut png, size[1], size[0]);
        encoder.set_color(colour);
        encoder.set_depth(depth);
        if colour == ColorType::Indexed {
            encoder.set_palette(&[9, 8, 7, 60, 50, 40, 3, 2, 1][..]);
            encoder.set_trns(&[0, 255][..]);
        }
        let mut writer = encoder.write_header().unwrap();
        writer.write_image_data(bytes).unwrap();
        writer.finish().unwrap();
        decode(&png).samples
    }

    #[test]
    fn samples_of_16_bits_are_scaled_and_keep_their_order() {
        let values: Vec<u16> = (1_000..4_000)
            .chain([0, 128, 129, 65_406, 65_535])
            .collect();
        let bytes: Vec<u8> = values
            .iter()
            .flat_map(|value| value.to_be_bytes())
            .collect();
        let size = [1, values.len() as u32];
        let found = samples(size, ColorType::Grayscale, BitDepth::Sixteen, &bytes);
        let exact = |value: &u16| (f64::from(*value) * 255.0 / 65_535.0).round() as u8;
        assert_eq!(found, values.iter().map(exact).collect::<Vec<_>>());
        assert_eq!((found[0], found[2_999]), (4, 16));
        let rgba = [255, 255, 0, 0, 128, 0, 3, 3];
        let found = samples([1, 1], ColorType::Rgba, BitDepth::Sixteen, &rgba);
        assert_eq!(found, [255, 0, 128]);
    }

    #[test]
    fn palettes_few_bits_and_transparency_become_plain_bytes() {
        let grey = |depth, byte| samples([1, 2], ColorType::Grayscale, depth, &[byte]);
        assert_eq!(grey(BitDepth::One, 0b0100_0000), [0, 255]);
        assert_eq!(grey(BitDepth::Two, 0b0111_0000), [85, 255]);
        assert_eq!(grey(BitDepth::Four, 0x2f), [34, 255]);
        let of = |colour, bytes: &[u8]| samples([1, 2], colour, BitDepth::Eight, bytes);
        assert_eq!(of(ColorType::GrayscaleAlpha, &[5, 0, 6, 255]), [5, 6]);
        let rgba = [1, 2, 3, 0, 4, 5, 6, 9];
        assert_eq!(of(ColorType::Rgba, &rgba), [1, 2, 3, 4, 5, 6]);
        assert_eq!(of(ColorType::Indexed, &[1, 0]), [60, 50, 40, 9, 8, 7]);
        let two_bits = samples([1, 2], ColorType::Indexed, BitDepth::Two, &[0b1001_0000]);
        assert_eq!(two_bits, [3, 2, 1, 60, 50, 40]);
    }

    #[test]
    fn jpegs_of_any_colours_are_grey_or_red_green_and_blue() {
        use jpeg_encoder::ColorType::{Cmyk, CmykAsYcck, Luma, Rgb};
        let jpeg = |colours, pixel: &[u8]| {
            let mut bytes = Vec::new();
            let encoder = jpeg_encoder::Encoder::new(&mut bytes, 100);
            encoder.encode(&pixel.repeat(64), 8, 8, colours).unwrap();
            decode(&bytes)
        };
        let near = |found: Picture, wanted: &[u8]| {
            assert_eq!(found.shape.channels, wanted.len());
            let pixels = found.samples.chunks_exact(wanted.len());
            assert!(pixels.len() == 64, "{found:?}");
            for pixel in pixels {
                let all = pixel.iter().zip(wanted);
                assert!(all.clone().all(|(a, b)| a.abs_diff(*b) <= 3), "{pixel:?}");
            }
        };
        near(jpeg(Luma, &[77]), &[77]);
        near(jpeg(Rgb, &[200, 100, 50]), &[200, 100, 50]);
        // (255 - c) (255 - k) / 255
        for cmyk in [Cmyk, CmykAsYcck] {
            near(jpeg(cmyk, &[0, 127, 255, 0]), &[255, 128, 0]);
        }
    }

    #[test]
    fn images_too_large_are_refused_before_they_are_decoded() {
        let refused = |height: u32, width: u32| {
            let mut png = png_of([1, 1, 3], &[1, 2, 3]);
            png[16..20].copy_from_slice(&width.to_be_bytes());
            png[20..24].copy_from_slice(&height.to_be_bytes());
            let mut crc = flate2::Crc::new();
            crc.update(&png[12..29]);
            png[29..33].copy_from_slice(&crc.sum().to_be_bytes());
            Format::Png.decode(&png).unwrap_err()
        };
        assert!(refused(1, 16_385).contains("1 x 16385"));
        assert!(refused(16_384, 16_384).contains("256 MiB"));
    }
}
