//! Models of Hugging Face directories against PyTorch: fixtures/make.py made what is expected.

use burn::tensor::{Device, Int, Tensor, TensorData};
use murmurate_strategies::inner::InnerKind;
use murmurate_strategies::{TensorSpec, Trainer};
use murmurate_tasks::model::{CausalLm, CausalShape, Lora, read_shape};
use murmurate_tasks::{
    BurnTrainer, DeviceChoice, ModelFileError, Score, Segments, Task, TaskError, burn, load_model,
    load_module, loss, parameters, read_model, take_steps, write_model,
};
use rand_chacha::ChaCha8Rng;
use safetensors::SafeTensors;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name)
}

/// What PyTorch made of a model.
struct Expected {
    /// `[12, 2, 17]`.
    ids: Vec<i32>,
    /// `[2, 17, vocabulary]`.
    logits: Vec<f32>,
    losses: Vec<f32>,
    trained: Vec<f32>,
}

impl Expected {
    fn read(name: &str) -> Self {
        let bytes = fs::read(fixture(name).join("expected.safetensors")).unwrap();
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let words = |name: &str| match file.tensor(name) {
            Ok(view) => view.data().as_chunks::<4>().0.to_vec(),
            Err(_) => Vec::new(),
        };
        let floats = |name: &str| words(name).into_iter().map(f32::from_le_bytes).collect();
        Self {
            ids: words("ids").into_iter().map(i32::from_le_bytes).collect(),
            logits: floats("logits"),
            losses: floats("losses"),
            trained: floats("trained"),
        }
    }

    fn batch(&self, number: usize) -> &[i32] {
        &self.ids[number * 34..(number + 1) * 34]
    }
}

/// A fixture as a task: batch `n` is the `n`-th of the ids.
struct Fixture {
    shape: CausalShape,
    lora: Option<Lora>,
    /// Weights that are frozen or the start.
    weights: PathBuf,
    expected: Expected,
}

impl Task for Fixture {
    type Model = CausalLm;
    type Batch = (Tensor<2, Int>, Tensor<1, Int>);

    fn model(&self, device: &Device) -> CausalLm {
        CausalLm::zeros(&self.shape, self.lora.as_ref(), device)
    }

    fn initial(&self, _: &TensorSpec, _: &mut [f32], _: &mut ChaCha8Rng) {}

    fn start(&self, model: CausalLm) -> Result<CausalLm, TaskError> {
        Ok(load_module(model, &self.weights)?)
    }

    fn samples(&self) -> u64 {
        2
    }

    fn batch(&mut self, number: u64, device: &Device) -> Result<Self::Batch, TaskError> {
        let rows: Vec<&[i32]> = self.expected.batch(number as usize).chunks(17).collect();
        let tokens: Vec<i32> = rows.iter().flat_map(|row| row[..16].to_vec()).collect();
        let next: Vec<i32> = rows.iter().flat_map(|row| row[1..].to_vec()).collect();
        Ok((
            Tensor::from_data(TensorData::new(tokens, [2, 16]), device),
            Tensor::from_data(TensorData::new(next, [32]), device),
        ))
    }

    fn loss(&self, model: &CausalLm, (tokens, next): Self::Batch, _: &mut Segments) -> Tensor<1> {
        loss::cross_entropy(model.forward(tokens), next)
    }

    fn held_batches(&self) -> usize {
        0
    }

    fn score(&mut self, _: &CausalLm, _: usize, _: &Device) -> Result<Score, TaskError> {
        Ok(Score::default())
    }
}

fn trainer(weights: &str, expected: &str, lora: Option<Lora>) -> BurnTrainer<Fixture> {
    let task = Fixture {
        shape: read_shape(&fixture(weights)).unwrap(),
        lora,
        weights: fixture(weights),
        expected: Expected::read(expected),
    };
    let inner = InnerKind::adam_w(1e-3);
    BurnTrainer::new(task, &inner, &DeviceChoice::Flex, 1).unwrap()
}

fn logits(trainer: &BurnTrainer<Fixture>) -> Vec<f32> {
    let device = Device::flex().autodiff();
    let ids = trainer.task().expected.batch(10).to_vec();
    let ids = Tensor::<2, Int>::from_data(TensorData::new(ids, [2, 17]), &device);
    let logits = trainer.model().forward(ids).into_data();
    logits.try_to_vec::<f32>().unwrap()
}

/// The largest difference.
fn gap(found: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(found.len(), expected.len());
    let largest = expected.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
    assert!(largest > 0.5, "the fixture says something");
    let gaps = found.iter().zip(expected).map(|(a, b)| (a - b).abs());
    gaps.fold(0.0, f32::max)
}

/// Logits, the losses of ten AdamW steps, and logits after them.
fn follows_pytorch(mut trainer: BurnTrainer<Fixture>) {
    let before = gap(&logits(&trainer), &trainer.task().expected.logits);
    assert!(before < 1e-5, "logits differ by {before}");
    let mut losses = Vec::new();
    for _ in 0..10 {
        losses.push(take_steps(&mut trainer, 1).unwrap().loss as f32);
    }
    let expected = &trainer.task().expected;
    assert!(losses[0] - losses[9] != 0.0);
    let apart = gap(&losses, &expected.losses);
    assert!(apart < 1e-3, "{losses:?} {:?}", expected.losses);
    let after = gap(&logits(&trainer), &expected.trained);
    assert!(after < 1e-3, "logits after training differ by {after}");
    println!("logits {before:.1e}, losses {apart:.1e}, logits after training {after:.1e}");
}

#[test]
fn a_llama_in_shards_follows_pytorch() {
    follows_pytorch(trainer("llama", "llama", None));
}

#[test]
fn a_gpt2_follows_pytorch() {
    follows_pytorch(trainer("gpt2", "gpt2", None));
}

#[test]
fn the_relatives_of_llama_follow_pytorch() {
    for name in ["qwen2", "qwen3", "mistral", "gemma2", "gemma3"] {
        println!("{name}");
        follows_pytorch(trainer(name, name, None));
    }
}

#[test]
fn half_precision_stretched_positions_and_a_tied_head_are_read() {
    let trainer = trainer("llama-bf16", "llama-bf16", None);
    let found = gap(&logits(&trainer), &trainer.task().expected.logits);
    assert!(found < 1e-4, "logits differ by {found}");
}

fn adapters(targets: &[&str]) -> Option<Lora> {
    Some(Lora {
        rank: 4,
        alpha: 8.0,
        targets: targets.iter().map(|&name| name.to_owned()).collect(),
    })
}

#[test]
fn adapters_follow_peft() {
    let cases = [
        ("llama", "llama-lora", &["q_proj", "v_proj"][..]),
        ("gpt2", "gpt2-lora", &["c_attn"]),
    ];
    for (base, folder, targets) in cases {
        let mut trainer = trainer(base, folder, adapters(targets));
        // Only the adapters travel.
        let names = trainer.layout().tensors().iter().map(|t| t.name.clone());
        assert!(names.clone().all(|name| name.contains(".lora_")), "{base}");
        assert_eq!(names.count(), 4 * targets.len());
        load_model(&mut trainer, &fixture(folder).join("start")).unwrap();
        follows_pytorch(trainer);
    }
}

#[test]
fn trained_adapters_of_peft_are_read() {
    let mut trainer = trainer("llama", "llama-lora", adapters(&["q_proj", "v_proj"]));
    load_model(&mut trainer, &fixture("llama-lora/trained")).unwrap();
    let found = gap(&logits(&trainer), &trainer.task().expected.trained);
    assert!(found < 1e-4, "logits differ by {found}");
}

#[test]
fn a_written_model_is_read_to_the_bit_and_always_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let mut trainer = trainer("gpt2", "gpt2", None);
    take_steps(&mut trainer, 2).unwrap();
    let values = parameters(&mut trainer);
    let about = BTreeMap::from([("format".to_owned(), "pt".to_owned())]);
    let files = ["a.safetensors", "b.safetensors"].map(|name| dir.path().join(name));
    for file in &files {
        write_model(file, trainer.layout(), &values, &about).unwrap();
    }
    assert_eq!(fs::read(&files[0]).unwrap(), fs::read(&files[1]).unwrap());
    let read = read_model(&files[0], trainer.layout()).unwrap();
    let bits = |values: &[f32]| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&read), bits(&values));
}

/// A copy of a fixture that a test may damage.
fn copy(name: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(fixture(name)).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), dir.path().join(entry.file_name())).unwrap();
    }
    dir
}

fn refusal(shape: &str, weights: &Path) -> String {
    let shape = read_shape(&fixture(shape)).unwrap();
    let model = CausalLm::zeros(&shape, None, &Device::flex());
    let error: ModelFileError = load_module(model, weights).unwrap_err();
    let line = error.to_string();
    assert!(!line.contains('\n'), "{line}");
    line
}

#[test]
fn other_weights_are_refused_with_the_tensor_and_both_shapes() {
    let line = refusal("gpt2", &fixture("llama"));
    let other = "tensor `model.embed_tokens.weight` is not of this model";
    assert!(line.contains(other), "{line}");
    // The same names with another vocabulary.
    let dir = copy("llama-bf16");
    let path = dir.path().join("config.json");
    let config = fs::read_to_string(&path).unwrap();
    fs::write(
        &path,
        config.replace("\"vocab_size\": 64", "\"vocab_size\": 65"),
    )
    .unwrap();
    let shape = read_shape(dir.path()).unwrap();
    let model = CausalLm::zeros(&shape, None, &Device::flex());
    let line = load_module(model, dir.path()).unwrap_err().to_string();
    let shapes = "tensor `model.embed_tokens.weight` is BF16 [64, 32], this model has F32 [65, 32]";
    assert!(line.contains(shapes), "{line}");
    // A head of its own, which the file of a tied model does not have.
    fs::write(
        &path,
        config.replace("embeddings\": true", "embeddings\": false"),
    )
    .unwrap();
    let shape = read_shape(dir.path()).unwrap();
    let model = CausalLm::zeros(&shape, None, &Device::flex());
    let line = load_module(model, dir.path()).unwrap_err().to_string();
    assert!(
        line.contains("tensor `lm_head.weight` is missing"),
        "{line}"
    );
}

#[test]
fn damaged_folders_are_refused_by_the_file() {
    let dir = copy("llama");
    fs::remove_file(dir.path().join("model-00002-of-00003.safetensors")).unwrap();
    let line = refusal("llama", dir.path());
    assert!(line.contains("model-00002-of-00003.safetensors"), "{line}");
    fs::write(dir.path().join("model.safetensors.index.json"), "{}").unwrap();
    let line = refusal("llama", dir.path());
    assert!(line.contains("`weight_map` is missing"), "{line}");
    let index = "{\"weight_map\": {\"no.such\": \"model-00001-of-00003.safetensors\"}}";
    fs::write(dir.path().join("model.safetensors.index.json"), index).unwrap();
    let line = refusal("llama", dir.path());
    assert!(line.contains("tensor `no.such` is not in it"), "{line}");
    // As `transformers`, which does not look at the index then.
    fs::write(dir.path().join("model.safetensors"), "junk").unwrap();
    let line = refusal("llama", dir.path());
    assert!(
        line.contains("model.safetensors: it is not a safetensors"),
        "{line}"
    );
    let empty = tempfile::tempdir().unwrap();
    let line = refusal("llama", empty.path());
    assert!(line.contains("neither model.safetensors nor"), "{line}");
}
