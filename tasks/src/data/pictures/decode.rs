//! Decodes PNG and JPEG images to one shape.

use super::error::PictureError;
use super::formats::Format;
use super::picture::Picture;
use super::place::{Place, read_some};
use crate::data::idx::ImageShape;
use std::num::NonZero;
use std::thread;

/// The most threads that decode one batch.
const THREADS_MAX: usize = 8;

/// Height, width and number of channels of an image.
///
/// # Errors
/// If it cannot be decoded.
pub(in crate::data) fn look(place: &Place) -> Result<ImageShape, PictureError> {
    let encoded = read_some(std::slice::from_ref(place))?;
    Ok(open(place, &encoded[0])?.shape)
}

/// Decodes images to `[images, height, width, channels]`. Each image is cut to the proportions of the
/// shape around its middle and then resized linearly; colours become grey by their luma, grey the same
/// value in all channels, and transparency is left out. The result depends only on the images.
///
/// # Errors
/// Names the first one that cannot be decoded.
pub(in crate::data) fn decode_all(
    places: &[Place],
    shape: ImageShape,
) -> Result<Vec<u8>, PictureError> {
    let area = shape.area();
    let mut pixels = vec![0; places.len() * area];
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let each = places.len().div_ceil(cores.min(THREADS_MAX)).max(1);
    let some = |(mut places, pixels): (&[Place], &mut [u8])| {
        let mut pixels = pixels.chunks_exact_mut(area);
        while !places.is_empty() {
            let encoded = read_some(places)?;
            for ((place, bytes), into) in places.iter().zip(&encoded).zip(&mut pixels) {
                decode(place, bytes, shape, into)?;
            }
            places = &places[encoded.len()..];
        }
        Ok(())
    };
    let parts = places.chunks(each).zip(pixels.chunks_mut(each * area));
    thread::scope(|scope| {
        let threads: Vec<_> = parts.map(|part| scope.spawn(move || some(part))).collect();
        // All are joined: a panic of a thread that is not would go on in this one.
        let results: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
        let mut results = results.into_iter();
        results.try_for_each(|result| result.unwrap_or(Err(PictureError::Stopped)))
    })?;
    Ok(pixels)
}

fn decode(
    place: &Place,
    bytes: &[u8],
    shape: ImageShape,
    into: &mut [u8],
) -> Result<(), PictureError> {
    let picture = open(place, bytes)?.with_channels(shape.channels);
    into.copy_from_slice(&picture.fitted(shape));
    Ok(())
}

fn open(place: &Place, bytes: &[u8]) -> Result<Picture, PictureError> {
    let unreadable = |reason: String| PictureError::Unreadable {
        file: place.name(),
        reason,
    };
    let Some(format) = Format::of(bytes) else {
        return Err(unreadable("its first bytes are of neither".to_owned()));
    };
    // The decoder fills what is missing with grey.
    if matches!(format, Format::Jpeg) && !is_complete_jpeg(bytes) {
        return Err(PictureError::Torn(place.name()));
    }
    let decoded = format.decode(bytes);
    decoded.map_err(|reason| unreadable(reason.replace('\n', " ")))
}

/// Whether the segments of a JPEG end with the marker EOI. Thumbnails inside a segment have markers of
/// their own, so segments are skipped by their lengths.
///
/// **Source:** ITU-T T.81, annex B.1.
fn is_complete_jpeg(bytes: &[u8]) -> bool {
    let mut at = 2;
    loop {
        // In data, FF is followed by 00 or by a restart marker.
        let rest = bytes.get(at..).unwrap_or_default();
        let marker = rest
            .windows(2)
            .position(|pair| pair[0] == 0xff && !matches!(pair[1], 0 | 0xff | 0xd0..=0xd7));
        let Some(marker) = marker else { return false };
        match rest[marker + 1] {
            0xd9 => return true,
            0x01 | 0xd8 => at += marker + 2,
            _ => {
                let length = rest.get(marker + 2..marker + 4).unwrap_or(&[0, 0]);
                at += marker + 2 + usize::from(u16::from_be_bytes([length[0], length[1]]));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{jpeg_of, png_of};
    use super::*;

    const SHAPE: ImageShape = ImageShape {
        height: 4,
        width: 4,
        channels: 3,
    };

    fn colour(side: u8) -> Vec<u8> {
        let pixels = (0..side).flat_map(|y| (0..side).map(move |x| [x * 6, y * 6, 7]));
        pixels.flatten().collect()
    }

    #[test]
    fn an_image_of_the_right_size_keeps_its_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.png");
        std::fs::write(&file, png_of([4, 4, 3], &colour(4))).unwrap();
        assert_eq!(look(&Place::File(file.clone())).unwrap(), SHAPE);
        let found = decode_all(&[Place::File(file.clone()), Place::File(file)], SHAPE).unwrap();
        assert_eq!(found[..48], colour(4)[..]);
        assert_eq!(found[..48], found[48..]);
    }

    #[test]
    fn other_sizes_are_cut_around_the_middle_and_grey_fills_all_channels() {
        let dir = tempfile::tempdir().unwrap();
        let wide = dir.path().join("wide.png");
        // White at both ends, which the cut removes.
        let row: [u8; 32] = std::array::from_fn(|x| [255, 90][usize::from(x / 8 % 3 != 0)]);
        std::fs::write(&wide, png_of([8, 32, 1], &row.repeat(8))).unwrap();
        assert_eq!(look(&Place::File(wide.clone())).unwrap().channels, 1);
        let found = decode_all(&[Place::File(wide.clone())], SHAPE).unwrap();
        assert_eq!(found, [90; 48]);
        let thin = dir.path().join("thin.png");
        std::fs::write(&thin, png_of([1, 9_000, 1], &[3; 9_000])).unwrap();
        assert_eq!(decode_all(&[Place::File(thin)], SHAPE).unwrap(), [3; 48]);
        let grey = ImageShape {
            channels: 1,
            ..SHAPE
        };
        assert_eq!(decode_all(&[Place::File(wide)], grey).unwrap(), [90; 16]);
    }

    #[test]
    fn torn_files_and_other_formats_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let line = |name: &str, bytes: &[u8]| {
            let file = dir.path().join(name);
            std::fs::write(&file, bytes).unwrap();
            let line = decode_all(&[Place::File(file)], SHAPE)
                .unwrap_err()
                .to_string();
            assert!(line.contains(name) && !line.contains('\n'), "{line}");
            line
        };
        let jpeg = jpeg_of([40, 40, 3], &colour(40));
        for (name, bytes) in [("a.jpg", jpeg), ("a.png", png_of([40, 40, 3], &colour(40)))] {
            let file = dir.path().join(name);
            std::fs::write(&file, &bytes).unwrap();
            assert!(decode_all(&[Place::File(file)], SHAPE).is_ok());
            // The last bytes of a PNG are no pixels.
            for len in [0, 1, 3, 20, bytes.len() / 2, bytes.len() - 16] {
                line(name, &bytes[..len]);
            }
        }
        assert!(line("b.jpg", b"\xff\xd8\xff\xe0\x00\x10JFIF").contains("ends before"));
        assert!(line("c.png", b"GIF89a").contains("of neither"));
        let missing = dir.path().join("d.png");
        let error = decode_all(&[Place::File(missing)], SHAPE)
            .unwrap_err()
            .to_string();
        assert!(error.contains("d.png: No such file"), "{error}");
    }
}
