//! Labelled images from any source, in memory or in files.

use super::bundled::{self, Bundled};
use super::error::{DataError, Problem, at};
use super::idx::{ImageShape, Images};
use super::labels::check_held;
use super::pictures::{Ahead, Decoded, Files, Listing};
use super::pictures::{decode_all, look, packs};
use super::{BadRecords, LabelledPair, ShardError, Shards};
use crate::config::{Classes, DataSource, ImageConfig, OnBadRecord};
use murmurate_protocol::Digest;
use std::path::Path;

/// The most bytes of decoded images that stay in memory, those held out included. More are decoded again
/// for each batch.
pub(crate) const DECODED_IN_MEMORY_MAX: usize = 256 << 20;

/// Images at which the contrast is looked for.
const LOOKED_AT: usize = 32;

/// The least difference of two values of these images, of 255. Those of a camera with 12 bits in files of 16
/// differ by at most 16.
const CONTRAST_MIN: u8 = 26;

/// The longest side of a first image whose size is taken.
const SMALL_SIDE: usize = 64;

/// Labelled images of one shape.
pub(crate) struct ImageSet {
    labels: Vec<u16>,
    pixels: Pixels,
    /// Those in memory that are left out, ascending.
    left_out: Vec<usize>,
}

/// A batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    /// The images that were asked for, but for those that are left out.
    pub images: Vec<u32>,
    /// Their bytes, `[images, height, width, channels]`.
    pub pixels: Vec<u8>,
}

enum Pixels {
    Memory(Images),
    /// In the binary, not yet unpacked.
    Bundled(Bundled),
    /// Not yet decoded.
    Files(Files),
    Ahead(Ahead),
}

impl ImageSet {
    /// Number of images.
    pub(crate) fn len(&self) -> usize {
        self.labels.len()
    }

    /// The class of each image.
    pub(crate) fn labels(&self) -> &[u16] {
        &self.labels
    }

    /// The bytes of these images. `upcoming(k)` returns the images of the batch k + 1 after this one, which
    /// may be decoded already; it does not change the result.
    ///
    /// # Errors
    /// If a file cannot be decoded.
    ///
    /// # Panics
    /// If an index is out of bounds, or the images were not loaded.
    pub(crate) fn take(
        &mut self,
        wanted: &[u32],
        upcoming: &mut dyn FnMut(usize) -> Option<Vec<u32>>,
    ) -> Result<Taken, DataError> {
        match &mut self.pixels {
            Pixels::Memory(images) => {
                let is_there =
                    |image: &u32| self.left_out.binary_search(&(*image as usize)).is_err();
                let wanted: Vec<u32> = wanted.iter().copied().filter(is_there).collect();
                let pixels = wanted.iter().map(|&image| images.image(image as usize));
                let pixels = pixels.collect::<Vec<_>>().concat();
                let images = wanted;
                Ok(Taken { pixels, images })
            }
            Pixels::Ahead(ahead) => {
                let area = ahead.area();
                Ok(without(wanted, ahead.take(wanted, upcoming)?, area))
            }
            Pixels::Bundled(_) | Pixels::Files(_) => {
                panic!("images are loaded before they are used")
            }
        }
    }

    /// Names the images by their classes, and by their pixels where these are in memory.
    pub(crate) fn fingerprint(&self) -> Digest {
        let labels = self.labels.iter().flat_map(|label| label.to_le_bytes());
        let labels: Vec<u8> = labels.collect();
        let mut digest = Digest::of(&labels);
        if let Pixels::Memory(images) = &self.pixels {
            for index in 0..self.labels.len() {
                digest = Digest::of(&[digest.as_bytes(), images.image(index)].concat());
            }
        }
        digest
    }

    fn of_files(files: Files) -> Self {
        Self {
            labels: files.labels.clone(),
            pixels: Pixels::Files(files),
            left_out: Vec::new(),
        }
    }

    fn load(
        &mut self,
        shape: ImageShape,
        in_memory: bool,
        bad: &BadRecords,
    ) -> Result<(), DataError> {
        self.pixels = match &self.pixels {
            Pixels::Memory(_) | Pixels::Ahead(_) => return Ok(()),
            Pixels::Bundled(set) => Pixels::Memory(set.images()),
            Pixels::Files(files) if in_memory => {
                let places: Vec<_> = (0..files.len() as u32).map(|i| files.place(i)).collect();
                let decoded = decode_all(&places, shape, bad)?;
                self.left_out = decoded.left_out;
                Pixels::Memory(Images::new(shape, decoded.pixels))
            }
            Pixels::Files(files) => Pixels::Ahead(Ahead::new(files.clone(), shape, bad.clone())),
        };
        Ok(())
    }
}

/// Training and held-out images of one shape.
pub(crate) struct ImageData {
    /// The training images.
    pub train: ImageSet,
    /// The held-out images, the same for all peers.
    pub held: ImageSet,
    /// Number of classes.
    pub classes: usize,
    /// Shape of all images.
    pub shape: ImageShape,
}

impl ImageData {
    /// Finds the images of a task. Those in files are not decoded yet.
    ///
    /// # Errors
    /// If images are missing or invalid, or differ from the configuration.
    pub(crate) fn find(config: &ImageConfig) -> Result<Self, DataError> {
        match &config.data {
            DataSource::Bundled => Self::bundled(config),
            DataSource::Path(dir) => Self::read(dir, config),
        }
    }

    /// The images in the binary.
    ///
    /// # Errors
    /// If `config` has another size, or too few classes.
    fn bundled(config: &ImageConfig) -> Result<Self, DataError> {
        let from = Path::new("bundled");
        let set = |set: Bundled| ImageSet {
            labels: set.labels(),
            pixels: Pixels::Bundled(set),
            left_out: Vec::new(),
        };
        let (train, held) = (set(Bundled::Train), set(Bundled::Held));
        let classes = config.classes.as_ref().map(Classes::count);
        if let Some(classes) = classes {
            check_held(from, &train.labels, classes, true)?;
        }
        check_shape(bundled::SHAPE, config, from)?;
        Ok(Self {
            classes: classes.unwrap_or(bundled::CLASSES),
            train,
            held,
            shape: bundled::SHAPE,
        })
    }

    /// Finds the images of a folder: IDX files, a folder of PNG and JPEG files for each class, or Parquet
    /// files with a column of such images. All but IDX files are not decoded yet, except for the first
    /// image.
    ///
    /// # Errors
    /// If images are missing or invalid.
    fn read(dir: &Path, config: &ImageConfig) -> Result<Self, DataError> {
        if dir.is_file() && dir.extension().is_none_or(|ending| ending != "parquet") {
            return Err(at(dir)(Problem::NotImages));
        }
        let count = config.classes.as_ref().map(Classes::count);
        if LabelledPair::is_in(dir) {
            let pair = LabelledPair::read(dir, config.held_out, count)?;
            return Self::of(pair, config, dir);
        }
        let packs = packs::find(dir)?;
        let listing = if packs.is_empty() {
            Listing::read(dir, config.held_out, config.classes.as_ref())?
        } else {
            packs::list(&packs, config.held_out, count)?
        };
        let shape = match (config.size, config.channels) {
            (Some([height, width]), Some(channels)) => ImageShape {
                height: height as usize,
                width: width as usize,
                channels: channels as usize,
            },
            _ => shape_of(look(&listing.train.place(0))?, config),
        };
        Ok(Self {
            train: ImageSet::of_files(listing.train),
            held: ImageSet::of_files(listing.held),
            classes: listing.classes,
            shape,
        })
    }

    fn of(pair: LabelledPair, config: &ImageConfig, from: &Path) -> Result<Self, DataError> {
        let shape = pair.held.images.shape();
        check_shape(shape, config, from)?;
        let set = |set: super::Labelled| ImageSet {
            labels: set.labels,
            pixels: Pixels::Memory(set.images),
            left_out: Vec::new(),
        };
        Ok(Self {
            classes: pair.classes,
            train: set(pair.train),
            held: set(pair.held),
            shape,
        })
    }

    /// Keeps one shard of the training images, and all held-out images.
    ///
    /// # Errors
    /// If the shard does not exist, or has fewer than `needed` images.
    pub(crate) fn keep_shard(&mut self, shards: &Shards, needed: usize) -> Result<(), ShardError> {
        let mine = shards.samples(&self.train.labels, needed)?;
        if mine.len() == self.train.len() {
            return Ok(());
        }
        let labels = mine.iter().map(|&index| self.train.labels[index as usize]);
        self.train.labels = labels.collect();
        match &mut self.train.pixels {
            Pixels::Memory(images) => *images = images.pick(&mine),
            Pixels::Bundled(set) => self.train.pixels = Pixels::Memory(set.chosen(&mine)),
            Pixels::Files(files) => files.keep(&mine),
            Pixels::Ahead(_) => panic!("a shard is kept before images are loaded"),
        }
        Ok(())
    }

    /// Decodes all images if they are at most `in_memory` bytes, such as [`DECODED_IN_MEMORY_MAX`];
    /// otherwise each batch will be decoded when it is taken.
    ///
    /// # Errors
    /// If a file cannot be decoded.
    pub(crate) fn load(&mut self, in_memory: usize, bad: &BadRecords) -> Result<(), DataError> {
        self.look_at_contrast(bad);
        let images = self.train.len() + self.held.len();
        let fits = images.saturating_mul(self.shape.area()) <= in_memory;
        self.train.load(self.shape, fits, bad)?;
        self.held.load(self.shape, fits, bad)
    }

    /// Tells the operator if images in files have so little contrast that a model hardly sees anything.
    fn look_at_contrast(&self, bad: &BadRecords) {
        let Pixels::Files(files) = &self.train.pixels else {
            return;
        };
        let some = (0..files.len()).step_by(files.len().div_ceil(LOOKED_AT).max(1));
        let places: Vec<_> = some.map(|image| files.place(image as u32)).collect();
        // What cannot be read is met again when it is used.
        let lenient = BadRecords::new(OnBadRecord::Skip);
        let decoded = decode_all(&places, self.shape, &lenient);
        let pixels = decoded.map_or(Vec::new(), |decoded| decoded.pixels);
        let (least, most) = (pixels.iter().min(), pixels.iter().max());
        if let (Some(least), Some(most)) = (least, most)
            && most - least < CONTRAST_MIN
        {
            bad.report().say(format!(
                "the images have hardly any contrast: all values of {} of them are from {least} to {most} \
                 of 255 (stretch them; a PNG file of 16 bits is taken to reach 65535)",
                places.len()
            ));
        }
    }
}

/// A batch without the images that are left out.
fn without(wanted: &[u32], decoded: Decoded, area: usize) -> Taken {
    let Decoded {
        mut pixels,
        left_out,
    } = decoded;
    let mut images = wanted.to_vec();
    for at in left_out.into_iter().rev() {
        images.remove(at);
        pixels.drain(at * area..(at + 1) * area);
    }
    Taken { images, pixels }
}

/// Refuses to resize images.
fn check_shape(shape: ImageShape, config: &ImageConfig, from: &Path) -> Result<(), DataError> {
    if shape_of(shape, config) == shape {
        return Ok(());
    }
    let ImageShape { height, width, .. } = shape;
    Err(at(from)(Problem::Shape { height, width }))
}

/// The wanted shape. By default the size is the image's, or 64 x 64 if it is larger, and channels are the image's.
fn shape_of(image: ImageShape, config: &ImageConfig) -> ImageShape {
    let small = image.height.max(image.width) <= SMALL_SIDE;
    let usual = if small {
        [image.height, image.width]
    } else {
        [SMALL_SIDE; 2]
    };
    let sides = config.size.map(|sides| sides.map(|side| side as usize));
    let [height, width] = sides.unwrap_or(usual);
    ImageShape {
        height,
        width,
        channels: config
            .channels
            .map_or(image.channels, |count| count as usize),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{ShardKind, png_of};
    use crate::tests::assert_has;
    use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;
    use std::ops::Range;
    use std::sync::Arc;

    fn folder() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for class in ["a", "b"] {
            std::fs::create_dir(dir.path().join(class)).unwrap();
            for value in 0..10 {
                let file = dir.path().join(format!("{class}/{value}.png"));
                let red = [0, 100][usize::from(class == "b")] + value;
                std::fs::write(file, png_of([3, 5, 3], &[red, 0, 0].repeat(15))).unwrap();
            }
        }
        dir
    }

    #[test]
    fn images_in_memory_and_in_files_are_the_same_in_each_shard() {
        let dir = folder();
        let shards = Shards {
            kind: ShardKind::Iid,
            index: 1,
            of: 2,
            seed: 3,
            ..Shards::whole()
        };
        let taken = |in_memory| {
            let mut data = ImageData::read(dir.path(), &ImageConfig::default()).unwrap();
            data.keep_shard(&shards, 1).unwrap();
            data.load(in_memory, &BadRecords::default()).unwrap();
            assert_eq!((data.train.len(), data.held.len(), data.classes), (9, 2, 2));
            let all: Vec<u32> = (0..9).collect();
            let mut bytes = data.train.take(&all, &mut |_| None).unwrap().pixels;
            for (image, label) in bytes.chunks(data.shape.area()).zip(data.train.labels()) {
                assert_eq!(u16::from(image[0] / 100), *label);
            }
            bytes.extend(data.held.take(&[1, 0], &mut |_| None).unwrap().pixels);
            bytes
        };
        assert_eq!(taken(usize::MAX), taken(0));
    }

    #[test]
    fn a_file_that_holds_no_images_names_the_other_tasks() {
        let dir = tempfile::tempdir().unwrap();
        let book = dir.path().join("book.txt");
        std::fs::write(&book, "Of Man's first disobedience").unwrap();
        let refused = ImageData::read(&book, &ImageConfig::default())
            .err()
            .unwrap()
            .to_string();
        assert_has(&refused, "`task.kind` = \"language-model\"");
    }

    /// Writes images and labels as data sets are published: a struct with the bytes, and a number.
    fn write_pack(path: &Path, labels: Range<i64>) {
        let schema = "message m { optional group image { optional binary bytes; optional binary path \
                      (UTF8); } required int64 label; }";
        let schema = Arc::new(parse_message_type(schema).unwrap());
        let file = std::fs::File::create(path).unwrap();
        let mut file = SerializedFileWriter::new(file, schema, Arc::default()).unwrap();
        for labels in [labels.start..labels.end - 3, labels.end - 3..labels.end] {
            let image =
                |label: i64| ByteArray::from(png_of([3, 5, 3], &[label as u8, 0, 0].repeat(15)));
            let images: Vec<_> = labels.clone().map(image).collect();
            let names = vec![ByteArray::from("a.png"); images.len()];
            let mut group = file.next_row_group().unwrap();
            for values in [images, names] {
                let mut column = group.next_column().unwrap().unwrap();
                let (levels, typed) = (vec![2; values.len()], column.typed::<ByteArrayType>());
                typed.write_batch(&values, Some(&levels), None).unwrap();
                column.close().unwrap();
            }
            let labels: Vec<i64> = labels.collect();
            let mut column = group.next_column().unwrap().unwrap();
            column
                .typed::<Int64Type>()
                .write_batch(&labels, None, None)
                .unwrap();
            column.close().unwrap();
            group.close().unwrap();
        }
        file.close().unwrap();
    }

    #[test]
    fn images_are_read_from_parquet_files() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("data")).unwrap();
        write_pack(&dir.path().join("data/train-0.parquet"), 0..40);
        write_pack(&dir.path().join("data/train-1.parquet"), 10..30);
        let check = |held_out, lengths: (usize, usize), in_memory| {
            let wanted = ImageConfig {
                held_out,
                ..ImageConfig::default()
            };
            let mut data = ImageData::read(dir.path(), &wanted).unwrap();
            assert_eq!((data.classes, data.shape.area()), (40, 45));
            data.load(in_memory, &BadRecords::default()).unwrap();
            for set in [&mut data.train, &mut data.held] {
                let all: Vec<u32> = (0..set.len() as u32).rev().collect();
                let bytes = set.take(&all, &mut |_| None).unwrap().pixels;
                for (image, label) in bytes.chunks(45).zip(set.labels().iter().rev()) {
                    assert_eq!(u16::from(image[0]), *label);
                }
            }
            assert_eq!((data.train.len(), data.held.len()), lengths);
        };
        write_pack(&dir.path().join("data/test-0.parquet"), 0..10);
        check(None, (60, 10), usize::MAX);
        check(None, (60, 10), 0);
        let few = ImageConfig {
            classes: Some(Classes::Count(35)),
            ..ImageConfig::default()
        };
        let error = ImageData::read(dir.path(), &few).err().unwrap().to_string();
        assert_has(&error, "train-0.parquet: item 35 has label 35");
        std::fs::remove_file(dir.path().join("data/test-0.parquet")).unwrap();
        let all = ImageData::read(dir.path(), &ImageConfig::default()).unwrap();
        assert_eq!(all.train.len() + all.held.len(), 60);
        assert!((1..20).contains(&all.held.len()), "{}", all.held.len());
        let path = dir.path().join("data/train-0.parquet");
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 9]).unwrap();
        let error = ImageData::read(dir.path(), &ImageConfig::default()).err();
        assert!(error.unwrap().to_string().contains("cut off"));
    }

    #[test]
    fn the_first_image_gives_what_is_not_said() {
        let dir = folder();
        let shape = |size, channels| {
            let wanted = ImageConfig {
                size,
                channels,
                ..ImageConfig::default()
            };
            ImageData::read(dir.path(), &wanted).unwrap().shape
        };
        let expected = |height, width, channels| ImageShape {
            height,
            width,
            channels,
        };
        assert_eq!(shape(None, None), expected(3, 5, 3));
        assert_eq!(shape(Some([8, 9]), Some(1)), expected(8, 9, 1));
        let wide = png_of([3, 65, 3], &[0; 585]);
        std::fs::write(dir.path().join("a/0.png"), &wide).unwrap();
        std::fs::write(dir.path().join("a/1.png"), &wide).unwrap();
        assert_eq!(shape(None, None), expected(64, 64, 3));
    }

    #[test]
    fn idx_images_keep_their_shape() {
        let wanted = ImageConfig {
            channels: Some(3),
            ..ImageConfig::default()
        };
        let error = ImageData::bundled(&wanted).err().unwrap().to_string();
        assert!(error.contains("28 x 28 grey images"), "{error}");
        let few = ImageConfig {
            classes: Some(Classes::Count(5)),
            ..ImageConfig::default()
        };
        let error = ImageData::bundled(&few).err().unwrap().to_string();
        assert!(error.contains("`task.classes` is 5"), "{error}");
    }
}
