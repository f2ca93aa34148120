//! Decodes PNG and JPEG images to one shape.

use super::formats::Format;
use super::picture::Picture;
use super::place::{Place, read_some};
use crate::data::BadRecords;
use crate::data::error::{DataError, Problem};
use crate::data::idx::ImageShape;
use std::num::NonZero;
use std::panic::catch_unwind;
use std::thread;

/// The most threads that decode one batch.
const THREADS_MAX: usize = 8;

/// Height, width and number of channels of an image.
///
/// # Errors
/// If it cannot be decoded.
pub(in crate::data) fn look(place: &Place) -> Result<ImageShape, DataError> {
    let encoded = read_some(std::slice::from_ref(place))?.swap_remove(0);
    Ok(open(place, &encoded?)?.shape)
}

/// Decoded images.
pub(in crate::data) struct Decoded {
    /// `[images, height, width, channels]`; zeros for those that are left out.
    pub(in crate::data) pixels: Vec<u8>,
    /// Which are left out, ascending.
    pub(in crate::data) left_out: Vec<usize>,
}

/// Decodes images. Each image is cut to the proportions of the
/// shape around its middle and then resized linearly; colours become grey by their luma, grey the same
/// value in all channels, and transparency is left out. The result depends only on the images.
///
/// # Errors
/// Names one that cannot be decoded, unless it may be left out.
pub(in crate::data) fn decode_all(
    places: &[Place],
    shape: ImageShape,
    bad: &BadRecords,
) -> Result<Decoded, DataError> {
    let area = shape.area();
    let mut pixels = vec![0; places.len() * area];
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let each = places.len().div_ceil(cores.min(THREADS_MAX)).max(1);
    let some = |first: usize, places: &[Place], pixels: &mut [u8]| {
        let (mut left_out, mut at) = (Vec::new(), 0);
        while at < places.len() {
            for encoded in read_some(&places[at..])? {
                let (place, into) = (&places[at], &mut pixels[at * area..][..area]);
                let decoded = encoded.and_then(|bytes| decode(place, &bytes, shape, into));
                match decoded {
                    Err(error) if error.is_of_a_record() => {
                        bad.judge(error)?;
                        left_out.push(first + at);
                    }
                    other => other?,
                }
                at += 1;
            }
        }
        Ok(left_out)
    };
    let parts = places.chunks(each).zip(pixels.chunks_mut(each * area));
    let parts = (0..).step_by(each).zip(parts);
    let left_out = thread::scope(|scope| {
        let threads: Vec<_> = parts
            .map(|(first, (places, pixels))| scope.spawn(move || some(first, places, pixels)))
            .collect();
        // All are joined: a panic of a thread that is not would go on in this one.
        let results: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
        let results = results.into_iter();
        let stopped = || DataError::nowhere(Problem::Stopped);
        let parts = results.map(|result| result.unwrap_or_else(|_| Err(stopped())));
        parts.collect::<Result<Vec<_>, _>>()
    })?;
    Ok(Decoded {
        pixels,
        left_out: left_out.concat(),
    })
}

fn decode(
    place: &Place,
    bytes: &[u8],
    shape: ImageShape,
    into: &mut [u8],
) -> Result<(), DataError> {
    let picture = open(place, bytes)?.with_channels(shape.channels);
    into.copy_from_slice(&picture.fitted(shape));
    Ok(())
}

fn open(place: &Place, bytes: &[u8]) -> Result<Picture, DataError> {
    let unreadable = |reason| place.wrong(Problem::Unreadable(reason));
    let Some(format) = Format::of(bytes) else {
        return Err(unreadable("its first bytes are of neither".to_owned()));
    };
    // The decoder fills what is missing with grey.
    if matches!(format, Format::Jpeg) && !is_complete_jpeg(bytes) {
        return Err(place.wrong(Problem::Torn));
    }
    // A decoder that panics on a damaged image must not end the thread without the name of the image.
    let decoded = catch_unwind(|| format.decode(bytes));
    let decoded = decoded.unwrap_or_else(|_| Err("its decoder failed".to_owned()));
    decoded.map_err(|reason| unreadable(reason.replace('\n', " ")))
}

/// Checks that the segments of a JPEG end with the marker EOI. Thumbnails inside a segment have markers of
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
    use crate::config::OnBadRecord;

    const SHAPE: ImageShape = ImageShape {
        height: 4,
        width: 4,
        channels: 3,
    };

    fn pixels(places: &[Place], shape: ImageShape) -> Vec<u8> {
        let decoded = decode_all(places, shape, &BadRecords::default());
        decoded.unwrap().pixels
    }

    fn refusal(place: Place) -> String {
        let decoded = decode_all(&[place], SHAPE, &BadRecords::default());
        decoded.err().unwrap().to_string()
    }

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
        let found = pixels(&[Place::File(file.clone()), Place::File(file)], SHAPE);
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
        let found = pixels(&[Place::File(wide.clone())], SHAPE);
        assert_eq!(found, [90; 48]);
        let thin = dir.path().join("thin.png");
        std::fs::write(&thin, png_of([1, 9_000, 1], &[3; 9_000])).unwrap();
        assert_eq!(pixels(&[Place::File(thin)], SHAPE), [3; 48]);
        let grey = ImageShape {
            channels: 1,
            ..SHAPE
        };
        assert_eq!(pixels(&[Place::File(wide)], grey), [90; 16]);
    }

    #[test]
    fn torn_files_and_other_formats_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let line = |name: &str, bytes: &[u8]| {
            let file = dir.path().join(name);
            std::fs::write(&file, bytes).unwrap();
            let line = refusal(Place::File(file));
            assert!(line.contains(name) && !line.contains('\n'), "{line}");
            line
        };
        let jpeg = jpeg_of([40, 40, 3], &colour(40));
        for (name, bytes) in [("a.jpg", jpeg), ("a.png", png_of([40, 40, 3], &colour(40)))] {
            let file = dir.path().join(name);
            std::fs::write(&file, &bytes).unwrap();
            pixels(&[Place::File(file)], SHAPE);
            // The last bytes of a PNG are no pixels.
            for len in [0, 1, 3, 20, bytes.len() / 2, bytes.len() - 16] {
                line(name, &bytes[..len]);
            }
        }
        assert!(line("b.jpg", b"\xff\xd8\xff\xe0\x00\x10JFIF").contains("ends before"));
        assert!(line("c.png", b"GIF89a").contains("of neither"));
        let missing = dir.path().join("d.png");
        let error = refusal(Place::File(missing));
        assert!(error.contains("d.png: No such file"), "{error}");
    }

    #[test]
    fn an_image_on_which_its_decoder_panics_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.jpg");
        let jpeg = jpeg_of([40, 40, 3], &colour(40));
        let mut noise = 7_u32;
        // Whatever the decoder makes of damaged bytes, no thread ends without the name of the file.
        for _ in 0..2_000 {
            let mut damaged = jpeg.clone();
            for _ in 0..3 {
                noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let at = 2 + (noise >> 8) as usize % (damaged.len() - 4);
                damaged[at] = noise as u8;
            }
            std::fs::write(&file, &damaged).unwrap();
            let place = Place::File(file.clone());
            if let Err(error) = decode_all(&[place], SHAPE, &BadRecords::default()) {
                let error = error.to_string();
                assert!(error.contains("a.jpg: "), "{error}");
            }
        }
    }

    #[test]
    fn images_that_cannot_be_read_are_left_out_and_counted() {
        let dir = tempfile::tempdir().unwrap();
        let places: Vec<Place> = (0..9_u8)
            .map(|number| {
                let file = dir.path().join(format!("{number}.png"));
                let png = png_of([4, 4, 3], &colour(4));
                let torn = &png[..png.len() / 2];
                std::fs::write(&file, [&png, torn][usize::from(number % 4 == 1)]).unwrap();
                Place::File(file)
            })
            .collect();
        let bad = BadRecords::new(OnBadRecord::Skip);
        let decoded = decode_all(&places, SHAPE, &bad).unwrap();
        assert_eq!(decoded.left_out, [1, 5]);
        assert_eq!(decoded.pixels[6 * 48..][..48], colour(4)[..]);
        assert_eq!(bad.report().skipped(), 2);
        assert!(decode_all(&places, SHAPE, &BadRecords::default()).is_err());
    }
}
