//! Decodes batches of images before they are asked for.

use super::decode::{self, decode_all};
use super::listing::Files;
use super::place::Place;
use crate::data::BadRecords;
use crate::data::error::{DataError, Problem};
use crate::data::idx::ImageShape;
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// Batches that are decoded ahead.
const AHEAD: usize = 2;

type Decoded = Result<decode::Decoded, DataError>;

/// A batch to decode, and where to send it.
struct Request {
    places: Vec<Place>,
    reply: Sender<Decoded>,
}

/// Images that stay in their files. The result of [`Ahead::take`] depends only on the wanted indices: a
/// batch that was decoded ahead and is not the next one after all is dropped.
pub(in crate::data) struct Ahead {
    files: Files,
    shape: ImageShape,
    bad: BadRecords,
    /// The thread that decodes, from the first batch on. It ends with this sender.
    worker: Option<Sender<Request>>,
    /// Batches on their way, by their indices.
    queue: VecDeque<(Vec<u32>, Receiver<Decoded>)>,
}

impl Ahead {
    pub(in crate::data) const fn new(files: Files, shape: ImageShape, bad: BadRecords) -> Self {
        Self {
            files,
            shape,
            bad,
            worker: None,
            queue: VecDeque::new(),
        }
    }

    /// Values of an image.
    pub(in crate::data) const fn area(&self) -> usize {
        self.shape.area()
    }

    /// The pixels of these images. `upcoming(k)` returns the indices
    /// of the batch k + 1 after this one, if there is one.
    ///
    /// # Errors
    /// If a file cannot be decoded.
    pub(in crate::data) fn take(
        &mut self,
        wanted: &[u32],
        upcoming: &mut dyn FnMut(usize) -> Option<Vec<u32>>,
    ) -> Decoded {
        let mut found = None;
        while let Some((indices, decoded)) = self.queue.pop_front() {
            if indices == wanted {
                found = Some(decoded);
                break;
            }
        }
        let decoded = match found {
            Some(decoded) => decoded,
            None => self.request(wanted),
        };
        while self.queue.len() < AHEAD {
            let Some(indices) = upcoming(self.queue.len()) else {
                break;
            };
            let decoded = self.request(&indices);
            self.queue.push_back((indices, decoded));
        }
        let decoded = decoded.recv();
        decoded.unwrap_or(Err(DataError::nowhere(Problem::Stopped)))
    }

    fn request(&mut self, indices: &[u32]) -> Receiver<Decoded> {
        let (reply, decoded) = channel();
        let files = indices.iter().map(|&index| self.files.place(index));
        let request = Request {
            places: files.collect(),
            reply,
        };
        let (shape, bad) = (self.shape, &self.bad);
        let worker = self.worker.get_or_insert_with(|| start(shape, bad.clone()));
        // A worker that ended drops the request, and with it the reply.
        let _ = worker.send(request);
        decoded
    }
}

fn start(shape: ImageShape, bad: BadRecords) -> Sender<Request> {
    let (sender, requests) = channel::<Request>();
    thread::spawn(move || {
        for request in requests {
            // If the reply is not waited for any more, the batch was dropped.
            let _ = request.reply.send(decode_all(&request.places, shape, &bad));
        }
    });
    sender
}

#[cfg(test)]
mod tests {
    use super::super::listing::Listing;
    use super::super::png_of;
    use super::*;

    #[test]
    fn what_is_taken_does_not_depend_on_what_was_expected() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("a")).unwrap();
        for value in 0..12_u8 {
            let file = dir.path().join(format!("a/{value:02}.png"));
            std::fs::write(file, png_of([2, 2, 1], &[value; 4])).unwrap();
        }
        let listing = Listing::read(dir.path(), Some(0.1), None).unwrap();
        let shape = ImageShape {
            height: 2,
            width: 2,
            channels: 1,
        };
        let files = listing.train;
        let value = |index: &u32| {
            let stem = files.place(*index).name().file_stem().unwrap().to_owned();
            stem.to_str().unwrap().parse::<u8>().unwrap()
        };
        let expected = |batch: &[u32]| -> Vec<u8> {
            let values = batch.iter().map(value);
            values.flat_map(|value| [value; 4]).collect()
        };
        let mut ahead = Ahead::new(files.clone(), shape, BadRecords::default());
        let batches: [[u32; 3]; 6] = [
            [0, 1, 2],
            [3, 4, 5],
            [6, 7, 8],
            [9, 1, 0],
            [2, 2, 2],
            [5, 0, 5],
        ];
        for (number, batch) in batches.iter().enumerate() {
            let mut upcoming = |k: usize| batches.get(number + 1 + k).map(|b| b.to_vec());
            assert_eq!(
                ahead.take(batch, &mut upcoming).unwrap().pixels,
                expected(batch)
            );
        }
        // Another deal: what waits in the queue is not what is wanted.
        for batch in [&batches[4], &batches[1], &batches[1]] {
            let mut upcoming = |_: usize| Some(vec![7, 8]);
            assert_eq!(
                ahead.take(batch, &mut upcoming).unwrap().pixels,
                expected(batch)
            );
        }
        std::fs::write(files.place(4).name(), "torn").unwrap();
        let error = ahead
            .take(&[0, 4], &mut |_| None)
            .err()
            .unwrap()
            .to_string();
        let name = files.place(4).name().display().to_string();
        assert!(error.starts_with(&name), "{error}");
    }
}
