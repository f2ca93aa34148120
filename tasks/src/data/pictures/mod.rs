//! Images as PNG and JPEG: files in one folder for each class, or a column of Parquet files.

mod ahead;
mod decode;
mod formats;
mod listing;
pub(super) mod packs;
mod picture;
mod place;

pub(super) use ahead::Ahead;
pub(super) use decode::{Decoded, decode_all, look};
pub(super) use listing::{Files, Listing};

/// A PNG of height, width and channels (one or three), 8 bits a sample.
#[cfg(test)]
pub(crate) fn png_of([height, width, channels]: [u32; 3], samples: &[u8]) -> Vec<u8> {
    let mut png = Vec::new();
    let mut encoder = png::Encoder::new(&mut png, width, height);
    encoder.set_color([png::ColorType::Grayscale, png::ColorType::Rgb][channels as usize / 2]);
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(samples).unwrap();
    writer.finish().unwrap();
    png
}

/// The same as a JPEG in colours.
#[cfg(test)]
pub(crate) fn jpeg_of([height, width, _]: [u16; 3], samples: &[u8]) -> Vec<u8> {
    let mut jpeg = Vec::new();
    let encoder = jpeg_encoder::Encoder::new(&mut jpeg, 90);
    let colours = jpeg_encoder::ColorType::Rgb;
    encoder.encode(samples, width, height, colours).unwrap();
    jpeg
}
