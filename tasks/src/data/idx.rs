//! IDX files, the format of MNIST: a header with big-endian lengths, then bytes; gzipped or not.
//! Element types other than bytes are refused.

use flate2::read::GzDecoder;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

/// The most bytes one IDX file may unpack to: sixteen times the images of MNIST.
pub(super) const IDX_BYTES_MAX: u64 = 768 << 20;

/// The longest side of an image in pixels.
pub(crate) const IMAGE_SIDE_MAX: u32 = 1024;

const UNSIGNED_BYTES: u8 = 0x08;
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Reasons to refuse an IDX file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum IdxProblem {
    /// The file is missing or unreadable, or its gzip stream is damaged.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The first bytes are not those of an IDX file.
    #[error("it does not begin like an IDX file of unsigned bytes (found {0:02x?})")]
    Magic([u8; 4]),
    /// Wrong number of dimensions for images or labels.
    #[error("it has {found} dimensions where {needed} are needed (are images and labels swapped?)")]
    Dimensions { found: u8, needed: u8 },
    /// The header names more bytes than allowed.
    #[error("its header announces {bytes} bytes, at most {IDX_BYTES_MAX} are read")]
    TooLarge { bytes: u64 },
    /// Images without pixels or with too many.
    #[error("its images are {height} x {width}, each side must be from 1 to {IMAGE_SIDE_MAX}")]
    Sides { height: u32, width: u32 },
    /// Fewer bytes than the header names.
    #[error("it ends after {found} of {needed} bytes (copy or download it again)")]
    Short { found: u64, needed: u64 },
    /// More bytes than the header names.
    #[error("bytes follow the {needed} that its header names (copy or download it again)")]
    Long { needed: u64 },
}

/// The shape of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageShape {
    /// Number of rows.
    pub height: usize,
    /// Number of columns.
    pub width: usize,
    /// Values of a pixel: 1 for grey, 3 for red, green and blue.
    pub channels: usize,
}

impl ImageShape {
    /// Number of values of one image.
    pub const fn area(&self) -> usize {
        self.height * self.width * self.channels
    }
}

/// Images of one shape: one byte per value, without gaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Images {
    shape: ImageShape,
    /// `[images, height, width, channels]`.
    pixels: Vec<u8>,
}

impl Images {
    /// Images by all their values, `[images, height, width, channels]`.
    ///
    /// # Panics
    /// If the values are not complete images.
    pub fn new(shape: ImageShape, pixels: Vec<u8>) -> Self {
        let area = shape.area();
        assert!(
            area > 0 && pixels.len().is_multiple_of(area),
            "complete images"
        );
        Self { shape, pixels }
    }

    /// The shape of each image.
    pub const fn shape(&self) -> ImageShape {
        self.shape
    }

    /// Number of images.
    pub fn len(&self) -> usize {
        self.pixels.len() / self.shape.area()
    }

    /// True without images.
    pub fn is_empty(&self) -> bool {
        self.pixels.is_empty()
    }

    /// The values of one image.
    ///
    /// # Panics
    /// If the index is out of bounds.
    pub fn image(&self, index: usize) -> &[u8] {
        let area = self.shape.area();
        &self.pixels[index * area..(index + 1) * area]
    }

    /// Copies the images with these indices.
    ///
    /// # Panics
    /// If an index is out of bounds.
    pub fn pick(&self, indices: &[u32]) -> Self {
        let mut pixels = Vec::with_capacity(indices.len() * self.shape.area());
        for &index in indices {
            pixels.extend_from_slice(self.image(index as usize));
        }
        let shape = self.shape;
        Self { shape, pixels }
    }
}

/// Reads the images of a file, gzipped or not.
///
/// # Errors
/// If it cannot be read or is not an IDX file of images.
pub(super) fn read_images(path: &Path) -> Result<Images, IdxProblem> {
    open(path).and_then(parse_images)
}

/// Reads the labels of a file, gzipped or not.
///
/// # Errors
/// If it cannot be read or is not an IDX file of labels.
pub(super) fn read_labels(path: &Path) -> Result<Vec<u8>, IdxProblem> {
    open(path).and_then(parse_labels)
}

/// Parses images. The first two bytes tell whether they are gzipped.
///
/// # Errors
/// If the bytes are not an IDX file of images.
pub(super) fn parse_images(source: impl Read) -> Result<Images, IdxProblem> {
    let mut source = unpack(source)?;
    let (count, shape) = image_header(&mut source)?;
    let pixels = body(source, &[count, shape.height as u32, shape.width as u32])?;
    Ok(Images::new(shape, pixels))
}

/// Parses the images with these indices, in this order; the others take no memory. Bytes behind the last of them
/// are not looked at.
///
/// # Errors
/// If the bytes up to there are not an IDX file of images.
///
/// # Panics
/// If an index is out of bounds.
pub(super) fn parse_chosen(source: impl Read, indices: &[u32]) -> Result<Images, IdxProblem> {
    let mut source = unpack(source)?;
    let (count, shape) = image_header(&mut source)?;
    let area = shape.area();
    let mut wanted: Vec<(u32, usize)> = indices.iter().copied().zip(0..).collect();
    wanted.sort_unstable();
    let (mut pixels, mut image) = (vec![0; indices.len() * area], vec![0; area]);
    let mut read = 0;
    for (index, place) in wanted {
        assert!(index < count, "image {index} of {count}");
        while read <= index {
            read_exactly(&mut source, &mut image)?;
            read += 1;
        }
        pixels[place * area..(place + 1) * area].copy_from_slice(&image);
    }
    Ok(Images::new(shape, pixels))
}

/// The number of images and their shape.
fn image_header(source: &mut dyn Read) -> Result<(u32, ImageShape), IdxProblem> {
    let [count, height, width] = header(source)?;
    let sides = 1..=IMAGE_SIDE_MAX;
    if !sides.contains(&height) || !sides.contains(&width) {
        return Err(IdxProblem::Sides { height, width });
    }
    let shape = ImageShape {
        height: height as usize,
        width: width as usize,
        channels: 1,
    };
    Ok((count, shape))
}

/// Parses labels. The first two bytes tell whether they are gzipped.
///
/// # Errors
/// If the bytes are not an IDX file of labels.
pub(super) fn parse_labels(source: impl Read) -> Result<Vec<u8>, IdxProblem> {
    let mut source = unpack(source)?;
    let [count] = header(&mut source)?;
    body(source, &[count])
}

fn open(path: &Path) -> Result<BufReader<File>, IdxProblem> {
    Ok(BufReader::new(File::open(path)?))
}

fn unpack<'a>(mut source: impl Read + 'a) -> Result<Box<dyn Read + 'a>, IdxProblem> {
    let mut start = [0; 2];
    read_exactly(&mut source, &mut start)?;
    let whole = io::Cursor::new(start).chain(source);
    Ok(match start {
        GZIP => Box::new(GzDecoder::new(whole)),
        _ => Box::new(whole),
    })
}

fn header<const N: usize>(source: &mut dyn Read) -> Result<[u32; N], IdxProblem> {
    let mut magic = [0; 4];
    read_exactly(source, &mut magic)?;
    let [0, 0, UNSIGNED_BYTES, dimensions] = magic else {
        return Err(IdxProblem::Magic(magic));
    };
    if usize::from(dimensions) != N {
        return Err(IdxProblem::Dimensions {
            found: dimensions,
            needed: N as u8,
        });
    }
    let mut lengths = [0; N];
    for length in &mut lengths {
        let mut bytes = [0; 4];
        read_exactly(source, &mut bytes)?;
        *length = u32::from_be_bytes(bytes);
    }
    Ok(lengths)
}

/// Largest buffer to reserve from a header alone; larger than the images of MNIST.
const RESERVED_MAX: u64 = 64 << 20;

/// Reads the bytes that the header announces. Up to [`RESERVED_MAX`] it allocates the buffer at
/// once, because a growing buffer leaves smaller copies in the allocator, 20 MB for the bundled
/// images. If the header is wrong, the excess pages are never touched.
fn body(source: Box<dyn Read + '_>, lengths: &[u32]) -> Result<Vec<u8>, IdxProblem> {
    let needed = lengths
        .iter()
        .try_fold(1_u64, |product, &length| product.checked_mul(length.into()))
        .unwrap_or(u64::MAX);
    if needed > IDX_BYTES_MAX {
        return Err(IdxProblem::TooLarge { bytes: needed });
    }
    // One extra byte lets the reader find the end without another buffer.
    let mut bytes = Vec::with_capacity(needed.min(RESERVED_MAX) as usize + 1);
    source.take(needed + 1).read_to_end(&mut bytes)?;
    let found = bytes.len() as u64;
    if found < needed {
        return Err(IdxProblem::Short { found, needed });
    }
    if found > needed {
        return Err(IdxProblem::Long { needed });
    }
    bytes.shrink_to_fit();
    Ok(bytes)
}

fn read_exactly(source: &mut dyn Read, into: &mut [u8]) -> Result<(), IdxProblem> {
    let needed = into.len() as u64;
    let mut found = 0;
    while found < into.len() {
        match source.read(&mut into[found..]) {
            Ok(0) => {
                return Err(IdxProblem::Short {
                    found: found as u64,
                    needed,
                });
            }
            Ok(count) => found += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Encodes grey images as an uncompressed IDX file. Serves to make the bundled subset and test files.
pub fn encode_images(images: &Images) -> Vec<u8> {
    let lengths = [images.len(), images.shape.height, images.shape.width];
    encode(&lengths.map(|length| length as u32), &images.pixels)
}

/// Encodes labels as an uncompressed IDX file.
pub fn encode_labels(labels: &[u8]) -> Vec<u8> {
    encode(&[labels.len() as u32], labels)
}

fn encode(lengths: &[u32], bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0, 0, UNSIGNED_BYTES, lengths.len() as u8];
    for length in lengths {
        out.extend_from_slice(&length.to_be_bytes());
    }
    out.extend_from_slice(bytes);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use proptest::prelude::*;
    use std::io::Write;

    fn three() -> Images {
        let shape = ImageShape {
            height: 2,
            width: 3,
            channels: 1,
        };
        Images::new(shape, (0..18).collect())
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn what_was_written_is_read_gzipped_or_not() {
        let bytes = encode_images(&three());
        assert_eq!(parse_images(&bytes[..]).unwrap(), three());
        assert_eq!(parse_images(&gzip(&bytes)[..]).unwrap(), three());
        let labels = encode_labels(&[3, 1, 2]);
        assert_eq!(parse_labels(&gzip(&labels)[..]).unwrap(), [3, 1, 2]);
    }

    #[test]
    fn swapped_files_are_named() {
        let error = parse_images(&encode_labels(&[1])[..])
            .unwrap_err()
            .to_string();
        assert!(error.contains("swapped"), "{error}");
    }

    #[test]
    fn a_header_that_lies_is_refused() {
        let mut huge = vec![0, 0, 8, 3];
        huge.extend_from_slice(&[0xff; 4]);
        huge.extend_from_slice(&[0, 0, 4, 0, 0, 0, 4, 0]);
        assert!(matches!(
            parse_images(&huge[..]),
            Err(IdxProblem::TooLarge { .. })
        ));
        let mut sides = vec![0, 0, 8, 3];
        sides.extend_from_slice(&[0xff; 12]);
        assert!(matches!(
            parse_images(&sides[..]),
            Err(IdxProblem::Sides { .. })
        ));
        let lying = encode(&[600_000_000], &[0; 10]);
        let short = parse_labels(&lying[..]);
        assert!(matches!(
            short,
            Err(IdxProblem::Short {
                found: 10,
                needed: 600_000_000
            })
        ));
    }

    proptest! {
        #[test]
        fn hostile_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse_images(&bytes[..]);
            let _ = parse_labels(&bytes[..]);
        }

        #[test]
        fn a_valid_start_with_hostile_lengths_never_panics(
            lengths in proptest::array::uniform3(any::<u32>()),
            rest in proptest::collection::vec(any::<u8>(), 0..64),
        ) {
            let bytes = encode(&lengths, &rest);
            if let Ok(images) = parse_images(&bytes[..]) {
                prop_assert_eq!(images.pixels, rest);
            }
        }

        #[test]
        fn cut_or_lengthened_files_are_refused(cut in 0..34_usize, more in 1..5_usize) {
            let whole = encode_images(&three());
            prop_assume!(cut < whole.len());
            prop_assert!(parse_images(&whole[..cut]).is_err());
            let packed = gzip(&whole);
            prop_assert!(parse_images(&packed[..cut.min(packed.len() - 9)]).is_err());
            let mut longer = whole;
            longer.extend(std::iter::repeat_n(0, more));
            let long = matches!(parse_images(&longer[..]), Err(IdxProblem::Long { .. }));
            prop_assert!(long);
        }
    }
}
