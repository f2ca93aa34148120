//! A trainer in plain Rust: what the Python package does, step by step, so that tests can stop anywhere.

use murmurate_attach::{FromTrainer, Hello, TensorClaim, ToTrainer, Welcome};
use murmurate_strategies::Said;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Tensors of the tests: `w` of shape 2 x 2 and `b` of shape 1.
pub(crate) const VALUES: usize = 5;

/// What a test's trainer says of itself.
pub(crate) fn hello() -> Hello {
    let tensor = |name: &str, shape: &[u64]| TensorClaim {
        name: name.to_owned(),
        shape: shape.to_vec(),
        dtype: "float32".to_owned(),
    };
    Hello {
        version: 1,
        tensors: vec![tensor("w", &[2, 2]), tensor("b", &[1])],
        gradients: true,
        evaluate: true,
        state: true,
        faulthandler: false,
    }
}

/// An attached trainer: five parameters, and a state that counts its steps.
pub(crate) struct Client {
    stream: UnixStream,
    files: Vec<File>,
    pub(crate) welcome: Welcome,
    pub(crate) values: Vec<f32>,
    pub(crate) state: Vec<u8>,
    /// The factors on the learning rate that came with the orders to step.
    pub(crate) rates: Vec<f64>,
    /// Whether its steps change no parameter.
    pub(crate) still: bool,
    /// The named numbers of its evaluations, the next one first.
    pub(crate) named: VecDeque<Said>,
    current: u8,
}

/// How a trainer was answered.
pub(crate) enum Answer {
    Attached(Box<Client>),
    Refused(String),
}

impl Client {
    /// Connects and describes its tensors, with these parameters.
    pub(crate) fn try_attach(socket: &Path, hello: Hello, values: &[f32]) -> Answer {
        let mut stream = UnixStream::connect(socket).unwrap();
        send(&mut stream, &FromTrainer::Hello(hello));
        let (first, files) = with_files(&stream);
        stream.set_nonblocking(false).unwrap();
        let welcome = match first {
            ToTrainer::Welcome(welcome) => welcome,
            ToTrainer::Refuse { reason } => return Answer::Refused(reason),
            other => panic!("{other:?}"),
        };
        assert_eq!(files.len(), 3);
        let mut client = Self {
            stream,
            files,
            current: welcome.current,
            values: values.to_vec(),
            state: vec![0],
            rates: Vec::new(),
            still: false,
            named: VecDeque::new(),
            welcome,
        };
        if let Some(slot) = client.welcome.write {
            client.write(slot);
        }
        client.say(&FromTrainer::Ready);
        Answer::Attached(Box::new(client))
    }

    /// As [`Client::try_attach`], of one that is welcome.
    pub(crate) fn attach(socket: &Path, values: &[f32]) -> Self {
        match Self::try_attach(socket, hello(), values) {
            Answer::Attached(client) => *client,
            Answer::Refused(reason) => panic!("{reason}"),
        }
    }

    pub(crate) fn say(&mut self, message: &FromTrainer) {
        send(&mut self.stream, message);
    }

    /// The next order; `None` when the daemon has closed the connection.
    pub(crate) fn hear(&mut self) -> Option<ToTrainer> {
        let mut head = [0; 4];
        self.stream.read_exact(&mut head).ok()?;
        let mut text = vec![0; u32::from_le_bytes(head) as usize];
        self.stream.read_exact(&mut text).ok()?;
        Some(serde_json::from_slice(&text).unwrap())
    }

    /// Performs orders until the next step is due; false when training is over.
    pub(crate) fn serve(&mut self) -> bool {
        loop {
            match self.hear() {
                Some(ToTrainer::Go { rate }) => {
                    self.rates.push(rate);
                    return true;
                }
                Some(ToTrainer::Deal { shard }) => self.welcome.shard = shard,
                Some(ToTrainer::Stop | ToTrainer::Refuse { .. }) | None => return false,
                Some(order) => {
                    let answer = self.perform(&order);
                    self.say(&answer);
                }
            }
        }
    }

    /// Performs one order.
    pub(crate) fn perform(&mut self, order: &ToTrainer) -> FromTrainer {
        match *order {
            ToTrainer::Install {
                slot, ref ranges, ..
            } => {
                self.current = slot;
                let all = self.slot(slot);
                for (start, end) in ranges.iter().map(|(a, b)| (*a as usize, *b as usize)) {
                    self.values[start..end].copy_from_slice(&all[start..end]);
                }
                FromTrainer::Done
            }
            ToTrainer::Cut { slot, state } => {
                self.write(slot);
                self.current = slot;
                let state = state.map(|file| self.write_state(file));
                FromTrainer::Cut { state }
            }
            ToTrainer::Evaluate => FromTrainer::Score {
                loss: Some(f64::from(self.values[0])),
                accuracy: Some(0.5),
                samples: 10,
                named: self.named.pop_front().unwrap_or_default(),
            },
            ToTrainer::Save { file } => FromTrainer::Saved {
                bytes: self.write_state(file),
            },
            ToTrainer::Load { file, bytes } => {
                self.state = vec![0; bytes as usize];
                let file = &self.files[1 + usize::from(file)];
                file.read_exact_at(&mut self.state, 0).unwrap();
                FromTrainer::Done
            }
            ref other => panic!("{other:?}"),
        }
    }

    /// Adds one to every parameter and to the state, and says so.
    pub(crate) fn step(&mut self) {
        let change = if self.still { 0.0 } else { 1.0 };
        self.values.iter_mut().for_each(|value| *value += change);
        self.state[0] += 1;
        self.say(&FromTrainer::Step {
            samples: 8,
            loss: Some(0.5),
        });
    }

    /// Takes steps until training is over.
    pub(crate) fn train(mut self) -> Self {
        while self.serve() {
            self.step();
        }
        self
    }

    /// Writes values to the slot that is not in use.
    pub(crate) fn write_spare(&self, values: &[f32]) {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_ne_bytes()).collect();
        let at = 4 * (VALUES as u64) * u64::from(1 - self.current);
        self.files[0].write_all_at(&bytes, at).unwrap();
    }

    fn write(&self, slot: u8) {
        let bytes: Vec<u8> = self.values.iter().flat_map(|v| v.to_ne_bytes()).collect();
        let at = 4 * (VALUES as u64) * u64::from(slot);
        self.files[0].write_all_at(&bytes, at).unwrap();
    }

    fn slot(&self, slot: u8) -> Vec<f32> {
        let mut bytes = vec![0; 4 * VALUES];
        let at = 4 * (VALUES as u64) * u64::from(slot);
        self.files[0].read_exact_at(&mut bytes, at).unwrap();
        let values = bytes.as_chunks::<4>().0.iter();
        values.map(|b| f32::from_ne_bytes(*b)).collect()
    }

    fn write_state(&self, file: u8) -> u64 {
        let file = &self.files[1 + usize::from(file)];
        file.set_len(0).unwrap();
        file.write_all_at(&self.state, 0).unwrap();
        self.state.len() as u64
    }
}

fn send(stream: &mut UnixStream, message: &FromTrainer) {
    let text = serde_json::to_vec(message).unwrap();
    let mut bytes = u32::try_from(text.len()).unwrap().to_le_bytes().to_vec();
    bytes.extend(text);
    // A daemon that is gone is noticed when it does not answer.
    let _ = stream.write_all(&bytes);
}

/// The first message and its files.
fn with_files(stream: &UnixStream) -> (ToTrainer, Vec<File>) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut bytes = [0; 4096];
    let mut slices = [IoSliceMut::new(&mut bytes)];
    let got = recvmsg(stream, &mut slices, &mut control, RecvFlags::empty()).unwrap();
    let mut files = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(fds) = message {
            files.extend(fds.map(File::from));
        }
    }
    // The daemon writes a small message at once.
    let len = u32::from_le_bytes(*bytes.first_chunk().unwrap()) as usize;
    assert_eq!(got.bytes, 4 + len);
    (serde_json::from_slice(&bytes[4..4 + len]).unwrap(), files)
}
